"""Write and sign checkpoints: C2SP signed-note, tlog-checkpoint and tlog-cosignature.

Reading and checking them is up to :mod:`discreet.ledger.verifier`.
"""

from binascii import b2a_base64

from discreet.errors import ParameterError
from discreet.ledger.log.keys import SigningKey, WitnessKey
from discreet.ledger.verifier import LARGEST, parse_checkpoint, parse_note

__all__ = ["add_signature", "checkpoint_text", "cosign", "sign_checkpoint"]


def checkpoint_text(origin: str, size: int, root: bytes) -> str:
    r"""Return the text of a checkpoint, which is what a log signs.

    >>> checkpoint_text("example.com/ledger", 0, bytes(32)).splitlines()[:2]
    ['example.com/ledger', '0']
    """
    return f"{origin}\n{size}\n{b2a_base64(root).decode()}"  # the Base64 brings its own newline


def sign_checkpoint(key: SigningKey, size: int, root: bytes) -> str:
    """Return a checkpoint of a log as a signed note.

    >>> key = SigningKey.generate("example.com/ledger")
    >>> parse_checkpoint(sign_checkpoint(key, 1, bytes(32))).size
    1
    """
    text = checkpoint_text(key.name, size, root)
    return f"{text}\n{_line(key.name, key.key_id + key.sign(text.encode()))}"


def cosign(key: WitnessKey, note: str, time: int) -> str:
    """Return a witness's signature line for a checkpoint. Whether to sign was decided elsewhere.

    >>> note = sign_checkpoint(SigningKey.generate("example.com/ledger"), 1, bytes(32))
    >>> cosign(WitnessKey.generate("witness.example/w1"), note, 1679315147).count("witness")
    1
    """
    if not 0 <= time <= LARGEST:
        raise ParameterError("a time is a number of seconds since 1970.", parameter="time")
    text = parse_note(note)[0]
    signature = key.sign(f"cosignature/v1\ntime {time}\n{text}".encode())
    return _line(key.name, key.key_id + time.to_bytes(8) + signature)


def add_signature(note: str, line: str) -> str:
    """Return a note with one or more signature lines added; those it has already are not repeated.

    >>> note = sign_checkpoint(SigningKey.generate("example.com/ledger"), 1, bytes(32))
    >>> line = cosign(WitnessKey.generate("witness.example/w1"), note, 1679315147)
    >>> add_signature(note, line) == add_signature(add_signature(note, line), line) == note + line
    True
    """
    signatures = note.rpartition("\n\n")[2].splitlines()
    fresh = [one for one in line.rstrip("\n").split("\n") if one not in signatures]
    joined = note + "".join(f"{one}\n" for one in fresh)
    parse_checkpoint(joined)  # which refuses anything but signature lines behind a checkpoint
    return joined


def _line(name: str, signature: bytes) -> str:
    return f"\N{EM DASH} {name} {b2a_base64(signature).decode()}"
