"""One loss for each row, of models whose own loss is the mean over a batch."""

from collections.abc import Callable
from typing import Any, Final

from torch import Tensor, nn
from torch.nn import functional

from discreet.errors import ParameterError

__all__ = ["per_example_loss"]

_IGNORED: Final = -100  # the label of a position that does not count


def per_example_loss(model: nn.Module, rows: Any) -> Tensor:
    """Return the loss of each row, as the model's own loss would be for this row alone.

    A model of transformers returns the mean over a batch, which cannot be taken apart. This one
    knows causal and masked language models, and classification of sequences, images and tokens,
    and question answering. Positions with the label -100 do not count.

    >>> import torch
    >>> class ForTokenClassification(nn.Module):
    ...     def forward(self, x):
    ...         return {"logits": x}
    >>> rows = {"x": torch.zeros(2, 3, 4), "labels": torch.tensor([[1, 2, -100], [0, -100, -100]])}
    >>> per_example_loss(ForTokenClassification(), rows)
    tensor([1.3863, 1.3863])
    """
    labels, compute = _loss_of(model)
    missing = [label for label in labels if label not in rows]
    if missing:
        raise ParameterError(
            f"the rows have no {' or '.join(map(repr, missing))}, of which the loss is computed. "
            "Add it to the dataset, or pass a loss_fn= of your own.",
            parameter="loss_fn",
        )
    inputs = {key: value for key, value in rows.items() if key not in labels}
    return compute(model, model(**inputs), *(rows[label] for label in labels))


def _loss_of(model: nn.Module) -> tuple[tuple[str, ...], Callable[..., Tensor]]:
    """Return the names of a model's labels, and how they and its output become losses."""
    name = getattr(model, "loss_type", None) or type(model).__name__
    for ending, found in _LOSSES.items():
        if name.endswith(ending):
            return found
    raise ParameterError(
        f"it is not known how {type(model).__name__} turns its output into one loss for each row. "
        "Pass loss_fn=, a function of (model, rows) that returns a tensor with these losses.",
        parameter="loss_fn",
    )


def _tokens(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over each row's positions that count."""
    each = functional.cross_entropy(
        logits.float().transpose(1, -1), labels, ignore_index=_IGNORED, reduction="none"
    )
    counts = (labels != _IGNORED).sum(1).clamp(min=1)
    return each.sum(1) / counts


def _next_tokens(model: nn.Module, outputs: Any, labels: Tensor) -> Tensor:
    return _tokens(outputs["logits"][:, :-1], labels[:, 1:])


def _same_tokens(model: nn.Module, outputs: Any, labels: Tensor) -> Tensor:
    return _tokens(outputs["logits"], labels)


def _classes_of_rows(model: nn.Module, outputs: Any, labels: Tensor) -> Tensor:
    logits: Tensor = outputs["logits"].float()
    kind = getattr(model.config, "problem_type", None)
    if kind is None:  # by the same rule as the models of transformers
        is_whole = not (labels.is_floating_point() or labels.is_complex())
        kind = "single_label_classification" if is_whole else "multi_label_classification"
        kind = "regression" if logits.shape[-1] == 1 else kind
    if kind == "regression":
        return (logits - labels.reshape(logits.shape).float()).square().mean(1)
    if kind == "multi_label_classification":
        each = functional.binary_cross_entropy_with_logits(logits, labels.float(), reduction="none")
        return each.mean(1)
    return functional.cross_entropy(
        logits, labels.reshape(-1), ignore_index=_IGNORED, reduction="none"
    )


def _spans(model: nn.Module, outputs: Any, start: Tensor, end: Tensor) -> Tensor:
    losses = []
    for name, places in (("start_logits", start), ("end_logits", end)):
        logits = outputs[name].float()
        length = logits.shape[1]  # a place outside of the row does not count
        places = places.reshape(-1).clamp(0, length)
        losses.append(
            functional.cross_entropy(logits, places, ignore_index=length, reduction="none")
        )
    return (losses[0] + losses[1]) / 2


_LOSSES: Final[dict[str, tuple[tuple[str, ...], Callable[..., Tensor]]]] = {
    "ForCausalLM": (("labels",), _next_tokens),
    "GPT2LMHeadModel": (("labels",), _next_tokens),
    "ForMaskedLM": (("labels",), _same_tokens),
    "ForTokenClassification": (("labels",), _same_tokens),
    "ForSequenceClassification": (("labels",), _classes_of_rows),
    "ForImageClassification": (("labels",), _classes_of_rows),
    "ForQuestionAnswering": (("start_positions", "end_positions"), _spans),
}
