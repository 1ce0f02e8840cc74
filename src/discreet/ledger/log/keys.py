"""Secret keys: how they are made, kept in files and used, and how they stay secret."""

import base64
import hmac
import json
import os
import secrets
import stat
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path
from typing import Final, NoReturn, final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from discreet._json import read_json
from discreet.errors import LedgerError, LedgerUnavailable, NotCopyable, ParameterError
from discreet.ledger.verifier import COSIGNER, LOG, NotProven, VerifierKey, parse_vkey

__all__ = ["SigningKey", "WitnessKey", "sync_folder", "write_file"]

_LEDGER: Final = "discreet-ledger-key/1"
_WITNESS: Final = "discreet-witness-key/1"


@final
class SigningKey:
    """The secrets of a ledger: an Ed25519 key that signs, and a salt that hides query texts.

    >>> key = SigningKey.generate("example.com/ledger")
    >>> key.vkey.startswith("example.com/ledger+")
    True
    """

    __slots__ = ("_private", "_salt", "_sealing", "key_id", "name", "sign", "vkey")

    def __init__(self, name: str, private: bytes, salt: bytes) -> None:
        if len(salt) != 32:
            raise ParameterError("the salt must have 32 bytes.", parameter="salt")
        self._private, self.vkey, self.key_id = _opened(name, private, LOG)
        self._salt, self.name = salt, name
        self._sealing = hmac.digest(salt, b"discreet-ledger seal v1" + private, "sha256")
        self.sign = self._private.sign  # no detour: every durable step waits for it

    @classmethod
    def generate(cls, name: str) -> "SigningKey":
        """Make fresh secrets for a ledger of this name, such as ``example.com/ledger``.

        >>> SigningKey.generate("example.com/ledger").name
        'example.com/ledger'
        """
        return cls(name, secrets.token_bytes(32), secrets.token_bytes(32))

    def rotated(self) -> "SigningKey":
        """Return a key to go on with: new private key, same name, same fingerprints.

        >>> key = SigningKey.generate("example.com/ledger")
        >>> key.rotated().vkey == key.vkey
        False
        """
        return SigningKey(self.name, secrets.token_bytes(32), self._salt)

    def fingerprint(self, text: str, *, domain: str = "query") -> str:
        """Return a text's fingerprint, which tells nothing about it to who has no key.

        Texts can often be guessed, so a plain hash of one would give it away.

        >>> key = SigningKey.generate("example.com/ledger")
        >>> key.fingerprint("a") == key.rotated().fingerprint("a") != key.fingerprint("b")
        True
        """
        # NUL cannot be in a domain, so no text in one domain is a text in another.
        if "\x00" in domain:
            raise ParameterError("a domain must not contain NUL.", parameter="domain")
        return hmac.digest(self._salt, f"{domain}\x00{text}".encode(), "sha256").hex()

    def seal(self, message: bytes, *, to: bytes | None = None) -> bytes:
        """Return a message that others who know the secret can tell from a forged one.

        An answer is sealed ``to`` its request, so that it cannot be given to another one.

        >>> key = SigningKey.generate("example.com/ledger")
        >>> key.unsealed(key.seal(b"yes", to=b"question"), to=b"question")
        b'yes'
        """
        return hmac.digest(self._sealing, _said(to) + message, "sha256") + message

    def unsealed(self, sealed: bytes, *, to: bytes | None = None) -> bytes | None:
        """Return the message, or None where it was not sealed with this secret.

        >>> key = SigningKey.generate("example.com/ledger")
        >>> print(key.unsealed(bytes(40)), key.unsealed(key.seal(b"yes", to=b"a"), to=b"b"))
        None None
        """
        message = sealed[32:]
        seal = hmac.digest(self._sealing, _said(to) + message, "sha256")
        return message if hmac.compare_digest(seal, sealed[:32]) else None

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the secrets to a file that only its owner can read; never over another one.

        With ``replace``, over the one that is there, whole or not at all.
        """
        _save(Path(path), _LEDGER, self.name, self._private, {"salt": self._salt}, replace=replace)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SigningKey":
        """Read the secrets from a file; refuse one that others can read."""
        name, secret = _load(Path(path), _LEDGER, ("private", "salt"))
        return cls(name, secret["private"], secret["salt"])

    def __repr__(self) -> str:
        return f"SigningKey({self.vkey!r})"

    def __reduce_ex__(self, protocol: object, /) -> NoReturn:
        _refuse_copy()


@final
class WitnessKey:
    """The secret of a witness: an Ed25519 key for nothing but cosignatures.

    >>> WitnessKey.generate("witness.example/w1").vkey.startswith("witness.example/w1+")
    True
    """

    __slots__ = ("_private", "key_id", "name", "sign", "vkey")

    def __init__(self, name: str, private: bytes) -> None:
        self._private, self.vkey, self.key_id = _opened(name, private, COSIGNER)
        self.name = name
        self.sign = self._private.sign

    @classmethod
    def generate(cls, name: str) -> "WitnessKey":
        """Make a fresh key for a witness of this name.

        >>> WitnessKey.generate("witness.example/w1").name
        'witness.example/w1'
        """
        return cls(name, secrets.token_bytes(32))

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the secret to a file that only its owner can read; never over another one."""
        _save(Path(path), _WITNESS, self.name, self._private, {}, replace=replace)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "WitnessKey":
        """Read the secret from a file; refuse one that others can read."""
        name, secret = _load(Path(path), _WITNESS, ("private",))
        return cls(name, secret["private"])

    def __repr__(self) -> str:
        return f"WitnessKey({self.vkey!r})"

    def __reduce_ex__(self, protocol: object, /) -> NoReturn:
        _refuse_copy()


def _said(to: bytes | None) -> bytes:
    """Return what tells a request from an answer, and answers to two requests apart."""
    return b"?" if to is None else b"!" + to[:32]


def _refuse_copy() -> NoReturn:
    raise NotCopyable("a secret key is not copied or pickled. Load it again from its file.")


def _opened(name: str, private: bytes, algorithm: int) -> tuple[Ed25519PrivateKey, str, bytes]:
    if len(private) != 32:
        raise ParameterError("a private key must have 32 bytes.", parameter="private")
    key = Ed25519PrivateKey.from_private_bytes(private)
    public = VerifierKey(name, algorithm, key.public_key().public_bytes_raw())
    encoded = base64.b64encode(bytes([algorithm]) + public.public).decode()
    try:
        vkey = f"{name}+{public.key_id.hex()}+{encoded}"
        if parse_vkey(vkey) == public:
            return key, vkey, public.key_id
    except (NotProven, UnicodeEncodeError):
        pass
    raise ParameterError(
        "a name must have 1 to 255 printable characters, no spaces and no plus sign, "
        "best a host and path of yours, like example.com/ledger.",
        parameter="name",
    ) from None


# --- files ---


def _save(
    path: Path,
    form: str,
    name: str,
    private: Ed25519PrivateKey,
    more: dict[str, bytes],
    *,
    replace: bool,
) -> None:
    raw = {"private": private.private_bytes_raw(), **more}
    told = {n: base64.b64encode(value).decode() for n, value in raw.items()}
    text = json.dumps({"format": form, "name": name, **told}, indent=1)
    write_file(path, f"{text}\n".encode(), replace=replace)


def _load(path: Path, form: str, members: tuple[str, ...]) -> tuple[str, dict[str, bytes]]:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(1 << 16)
    except OSError as error:
        raise LedgerUnavailable(
            f"there is no readable key at {path} ({error.strerror})."
        ) from error
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise LedgerError(
            f"the secret key {path} can be read by others on this machine, so it is not used. "
            f"Run: chmod 600 '{path}'. Rotate the key if somebody may have read it."
        )
    try:
        found = read_json(text, strict=True)
        if found["format"] == form and found.keys() == {"format", "name", *members}:
            secret = {member: base64.b64decode(found[member], validate=True) for member in members}
            if isinstance(found["name"], str) and {len(raw) for raw in secret.values()} == {32}:
                return found["name"], secret
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # with no cause shown: it might quote the file
    raise LedgerError(f"{path} is not a key of the format {form}.") from None


def write_file(path: Path, data: bytes, *, replace: bool, mode: int = 0o600) -> None:
    """Write a file durably and whole, or not at all; over an existing one only if asked."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(file, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            if replace:
                os.replace(part, path)
            else:
                _name_new(part, path)
        finally:
            with suppress(FileNotFoundError):
                part.unlink()
        sync_folder(path.parent)
    except FileExistsError:
        raise LedgerError(f"{path} exists already. Nothing was written.") from None
    except OSError as error:
        todo = "Free some space on its disk and try again" if error.errno == ENOSPC else "Try again"
        why = f"{path} could not be written ({error.strerror})."
        raise LedgerUnavailable(f"{why} Nothing was written. {todo}.") from error


def _name_new(part: Path, path: Path) -> None:
    try:
        os.link(part, path)  # unlike a rename, refuses where something is
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: take the name first, then fill it
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(part, path)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
