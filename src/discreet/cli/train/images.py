"""Training on images in IDX files, as MNIST and its relatives come: a folder of four files."""

import gzip
import hashlib
import math
from collections.abc import Callable
from contextlib import ExitStack
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from discreet._exact import whole
from discreet.cli.ledger.opening import writing
from discreet.cli.numbers import parse
from discreet.cli.train.evaluations import OnPublic
from discreet.cli.train.request import TrainRequest, train_and_tell, whole_number
from discreet.errors import DataError, ParameterError

if TYPE_CHECKING:
    from discreet.learn.recipes import EncodedRows
    from discreet.ledger import Account

__all__ = ["train_on_images"]

TRAINING: Final = "train"
HELD_OUT: Final = "t10k"
_BYTES: Final = 8  # the code of unsigned bytes
_LARGEST: Final = 1 << 36


def train_on_images(
    request: TrainRequest,
    folder: Path,
    *,
    model: str,
    classes: str,
    account: str | None,
    ledger: str,
) -> None:
    """Do what ``discreet train images`` was asked for."""
    many = whole(parse(classes), name="classes", minimum=2)
    has_public = has_images(folder, HELD_OUT)
    request.require_judge(has_public, remedy="the t10k files in the folder")
    if account is not None:
        request.refuse_twin(f"images of the account {account!r}")
    with ExitStack() as stack:
        charged: Account | None = None
        if account is not None:
            charged = stack.enter_context(writing(ledger, None))[account]
        rows = read_images(folder, TRAINING, classes=many)
        evaluation = None
        if has_public:
            evaluation = OnPublic(
                rows=read_images(folder, HELD_OUT, classes=many),
                words="the t10k images, which were declared public",
            )
        if charged is not None:
            register_images(charged, folder)
        experiment = request.experiment(
            model,
            classes=many,
            account=charged,
            who=request.who or getuser(),
            population=whole_number(request.population, "population"),
        )
        on = f"images of {folder.resolve().name}"
        train_and_tell(request, experiment, rows, evaluation, on=on)


def has_images(folder: Path, part: str) -> bool:
    """Say whether a folder has the images and labels of a part.

    >>> has_images(Path("/no/such/folder"), HELD_OUT)
    False
    """
    return all(_found(folder, part, what) is not None for what in ("images", "labels"))


def read_images(folder: Path, part: str, *, classes: int) -> "EncodedRows":
    """Read images and labels; bytes are scaled to -1..1, a label that is no class is none.

    The range of a byte is public, so no statistic of the images is used.
    """
    from discreet.learn.recipes import NO_LABEL, EncodedRows

    images, labels = (read_idx(_file(folder, part, what)) for what in ("images", "labels"))
    if images.ndim not in (3, 4) or labels.ndim != 1 or len(images) != len(labels):
        raise DataError(
            f"{folder}: the {part} files must hold images (three or four axes) and one label each."
        )
    # Grey images have no axis of channels; coloured ones have it last.
    planes = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    classified = labels.astype(np.int64)
    return EncodedRows(
        names=(),
        matrix=np.ascontiguousarray(planes, dtype=np.float32) / np.float32(127.5) - np.float32(1),
        labels=np.where(classified < classes, classified, NO_LABEL),
    )


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Read one IDX file of bytes, packed by gzip or not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels"
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
    ...     read_idx(path)
    array([7, 9], dtype=uint8)
    """
    try:
        reader: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
        with reader(path, "rb") as file:
            head = file.read(4)
            axes = head[3] if len(head) == 4 and head[:3] == bytes([0, 0, _BYTES]) else 0
            shape = np.frombuffer(file.read(4 * axes), dtype=">u4").astype(np.int64).tolist()
            is_sound = 0 < axes == len(shape) and 0 < math.prod(shape) < _LARGEST
            body = file.read(math.prod(shape) + 1) if is_sound else b""
    except (OSError, EOFError, ValueError):
        is_sound, body, shape = False, b"", []
    if not is_sound or len(body) != math.prod(shape):
        raise DataError(f"{path.name} is no IDX file of bytes, or is damaged.")
    return np.frombuffer(body, dtype=np.uint8).reshape(shape)


def register_images(account: "Account", folder: Path) -> None:
    """Tell the ledger whose images these are, so that no second account is charged for them."""
    path = _file(folder, TRAINING, "images").resolve()
    state = path.stat()
    content = f"{state.st_size}:{state.st_mtime_ns}"
    version = account.ledger.fingerprint(content, domain="version")[:32]
    name = folder.resolve().name or "images"
    if account.sources().get(name) != version:
        # By its content, too, so that a copy is known, packed or not.
        images = hashlib.sha256(read_idx(path).tobytes()).hexdigest()
        account.register(name, version=version, identities=[str(path), f"images:{images}"])


def _file(folder: Path, part: str, what: str) -> Path:
    found = _found(folder, part, what)
    if found is None:
        raise ParameterError(
            f"the folder {str(folder)!r} has no {_names(part, what)[0]} (or .gz). Give a folder of "
            "IDX files, as MNIST comes: train-images-idx3-ubyte, train-labels-idx1-ubyte, and the "
            "same with t10k for the public held-out images.",
            parameter="folder",
        )
    return found


def _found(folder: Path, part: str, what: str) -> Path | None:
    places = (folder / name for name in _names(part, what))
    return next((place for place in places if place.is_file()), None)


def _names(part: str, what: str) -> list[str]:
    axes = (3, 4) if what == "images" else (1,)
    stems = [f"{part}-{what}{dot}idx{n}-ubyte" for n in axes for dot in ("-", ".")]
    return [stem + packed for stem in stems for packed in ("", ".gz")]
