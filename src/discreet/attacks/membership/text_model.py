"""A small text model that learns one character from those before it, with and without privacy."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet._exact import Number
from discreet.attacks.membership.observations import Floats
from discreet.attacks.membership.threads import torch_in_one_thread
from discreet.errors import DataError, PrivacyWarning
from discreet.privacy import Guarantee

if TYPE_CHECKING:
    import torch

__all__ = ["CharacterModel", "train_text_model"]

_LETTERS = "\n abcdefghijklmnopqrstuvwxyz0123456789:.,"
_CONTEXT, _WIDTH, _HIDDEN = 12, 8, 96
_PAST = -100  # the label of places after the end of a line, which torch leaves out


@final
class CharacterModel:
    """A trained text model; :func:`train_text_model` makes one.

    >>> model = train_text_model(["the tide is low"] * 20, epochs=30, seed=0)
    >>> model.complete("the tide", length=7)
    ' is low'
    """

    def __init__(self, network: "torch.nn.Module") -> None:
        self._network = network

    def log_likelihoods(self, prefix: str, endings: Sequence[str]) -> Floats:
        """Return the log-probability of each ending after a prefix; all are equally long.

        >>> model = train_text_model(["the tide is low"] * 20, epochs=30, seed=0)
        >>> low, high = model.log_likelihoods("the tide is ", ["low", "top"])
        >>> bool(low > high)
        True
        """
        lines = np.array([_codes(prefix + ending) for ending in endings])
        total = np.zeros(len(endings))
        for place in range(len(prefix), lines.shape[1]):
            chances = self._log_chances(_windows(lines, place))
            total += chances[np.arange(len(lines)), lines[:, place]]
        return total

    def complete(self, prefix: str, *, length: int) -> str:
        """Write on from a prefix, each time the likeliest character.

        >>> train_text_model(["abababab"] * 20, epochs=30, seed=0).complete("ab", length=4)
        'abab'
        """
        text = prefix
        for _ in range(length):
            line = np.array([_codes(text)])
            text += _LETTERS[int(self._log_chances(_windows(line, len(text))).argmax())]
        return text[len(prefix) :]

    def _log_chances(self, contexts: Any) -> Floats:
        with torch_in_one_thread() as torch, torch.no_grad():
            out = self._network(torch.from_numpy(contexts))
        return np.asarray(out.log_softmax(-1).numpy(), dtype=np.float64)


def train_text_model(
    lines: Sequence[str],
    *,
    epochs: Number = 40,
    batch_size: int = 50,
    guarantee: Guarantee | None = None,
    learning_rate: float = 0.01,
    seed: int | None = None,
) -> CharacterModel:
    """Train a small network to go on with a text; with a ``guarantee``, privately for each line.

    Characters are lower-case letters, digits, spaces and ``: . ,``. ``seed`` fixes where weights
    start and ordinary batches; private batches and noise are never seeded.

    >>> lines = [f"item {i:03}" for i in range(200)]
    >>> model = train_text_model(lines, epochs=1, guarantee=Guarantee(epsilon=2, delta=1e-5))
    >>> len(model.complete("item ", length=3))
    3
    """
    long = max((len(line) for line in lines), default=0)
    if not long:
        raise DataError("lines must hold at least one line with text in it.")
    codes = np.array([_codes(line.ljust(long, "\n")) for line in lines])
    with torch_in_one_thread() as torch:
        x = torch.from_numpy(np.stack([_windows(codes, place) for place in range(long)], axis=1))
        # The end of a line is learned, but not the padding behind it.
        ends = np.array([len(line) for line in lines])[:, None]
        y = torch.from_numpy(np.where(np.arange(long) <= ends, codes, _PAST))
        with torch.random.fork_rng(enabled=seed is not None):
            if seed is not None:
                torch.manual_seed(seed)
            network = torch.nn.Sequential(
                torch.nn.Embedding(len(_LETTERS), _WIDTH),
                torch.nn.Flatten(-2),
                torch.nn.Linear(_CONTEXT * _WIDTH, _HIDDEN),
                torch.nn.Tanh(),
                torch.nn.Linear(_HIDDEN, len(_LETTERS)),
            )
            optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
            if guarantee is None:
                for _ in range(round(float(epochs))):
                    for chosen in torch.randperm(len(lines)).split(batch_size):
                        optimizer.zero_grad()
                        _losses(network, (x[chosen], y[chosen])).mean().backward()
                        optimizer.step()
            else:
                _train_privately(network, optimizer, (x, y), guarantee, epochs, batch_size)
    return CharacterModel(network)


def _train_privately(
    network: "torch.nn.Module",
    optimizer: "torch.optim.Optimizer",
    data: "tuple[torch.Tensor, torch.Tensor]",
    guarantee: Guarantee,
    epochs: Number,
    batch_size: int,
) -> None:
    from discreet.learn import prepare

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # of other runs on the same generated text
        private = prepare(
            network,
            optimizer,
            data,
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            epochs=epochs,
            batch_size=batch_size,
            clip=1.0,
        )
    with private:
        for batch in private.batches():
            private.step(batch, _losses)


def _losses(
    network: "torch.nn.Module", batch: "tuple[torch.Tensor, torch.Tensor]"
) -> "torch.Tensor":
    """Return the loss of each line: the mean over its characters."""
    from torch.nn import functional

    x, y = batch
    out = network(x).transpose(1, 2)
    losses: torch.Tensor = functional.cross_entropy(out, y, reduction="none", ignore_index=_PAST)
    return losses.mean(dim=1)


def _codes(text: str) -> list[int]:
    codes = [_LETTERS.find(letter) for letter in text]
    if -1 in codes:
        raise DataError("texts must consist of a to z, 0 to 9, spaces, colons, commas and stops.")
    return codes


def _windows(codes: Any, place: int) -> Any:
    """Return the characters before a place, filled up with line ends in front."""
    before = codes[:, max(0, place - _CONTEXT) : place]
    return np.pad(before, ((0, 0), (_CONTEXT - before.shape[1], 0)))
