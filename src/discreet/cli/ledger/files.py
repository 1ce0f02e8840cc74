"""Text files that go in and out: keys, checkpoints, receipts."""

from pathlib import Path

from discreet.cli.ledger.opening import refusals
from discreet.errors import LedgerUnavailable, ParameterError

_LONGEST = 1 << 26  # characters: a device may never end, and no key or receipt is so long


def read_file(path: Path) -> str:
    """Return the text of a file.

    >>> read_file(Path("/no/such/file"))
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: /no/such/file cannot be read as text.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(_LONGEST)
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"{path} cannot be read as text.", parameter="file") from None


def read_vkey(path: Path) -> str:
    """Return the public key in a file such as ledger.pub."""
    from discreet.ledger.verifier import first_vkey

    with refusals():
        return first_vkey(read_file(path))


def write_file(path: Path, text: str, *, over: bool = True) -> Path:
    """Write a text file; ``over`` an old one or not."""
    try:
        with path.open("w" if over else "x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        raise ParameterError(
            f"{path} exists already. It was not touched.", parameter="file"
        ) from None
    except OSError as error:
        raise LedgerUnavailable(f"{path} cannot be written ({error.strerror}).") from error
    return path
