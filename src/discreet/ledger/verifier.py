r"""Check a receipt of a ledger without the ledger: this file and ``cryptography`` are all it takes.

Copy it, read it, and run ``python verifier.py receipt.json --key ledger.pub``. It imports nothing
else of discreet. docs/explanation/receipts.md has all it takes to write another one.
"""

import argparse
import base64
import hashlib
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple, final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

LOG, COSIGNER = 0x01, 0x04  # signature types of C2SP signed-note and tlog-cosignature
LARGEST = 2**63 - 1  # of sizes and times
LONGEST = 2**24  # characters of a document
# Points of small order, with the sign left out: a signature under one fits many texts.
_SMALL_ORDER = frozenset(
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)
CHARGES = ("charge", "reserve")


class NotProven(ValueError):
    """What was shown is malformed or does not prove what it claims.

    >>> issubclass(NotProven, ValueError)
    True
    """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The size and the root hash of a log at one moment.

    >>> Checkpoint(origin="example.com/ledger", size=1, root=leaf_hash(b"first")).size
    1
    """

    origin: str
    size: int
    root: bytes


class VerifierKey(NamedTuple):
    """A public key, with the name and the signature type (1: log, 4: witness) it is for.

    >>> VerifierKey("example.com/ledger", 1, bytes(32)).key_id.hex()
    '6fc1a891'
    """

    name: str
    algorithm: int
    public: bytes

    @property
    def key_id(self) -> bytes:
        """The four bytes that mark this key's signatures."""
        told = self.name.encode() + b"\n" + bytes([self.algorithm]) + self.public
        return hashlib.sha256(told).digest()[:4]

    def has_signed(self, message: bytes, signature: bytes) -> bool:
        """Say whether a signature over a message is this key's.

        >>> VerifierKey("example.com/ledger", 1, bytes([7] * 32)).has_signed(b"text", bytes(64))
        False
        """
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True


class Cosigned(NamedTuple):
    """Who cosigned a checkpoint, and when (seconds since 1970).

    >>> print(Cosigned("witness.example/w1", 1679315147))
    cosigned by witness.example/w1 at 2023-03-20T12:25:47Z
    """

    name: str
    time: int

    def __str__(self) -> str:
        try:
            when = f"{datetime.fromtimestamp(self.time, UTC):%Y-%m-%dT%H:%M:%SZ}"
        except (OverflowError, ValueError, OSError):  # after the year 9999
            when = f"second {self.time}"
        return f"cosigned by {self.name} at {when}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a receipt proves; ``str`` tells it in words.

    ``vkey`` is the key that signed; ``answer`` is the index of the release entry that commits to
    the answer that was compared, None where none was.

    >>> charge = {"index": 0, "kind": "charge", "account": "salaries", "loss": {"epsilon": 1}}
    >>> signed = {"origin": "example.com/ledger", "size": 1, "root": leaf_hash(b""), "vkey": "..."}
    >>> print(Verified(**signed, entries=(charge,), witnesses=(), answer=None))
    proven: these entries are in the log of example.com/ledger, as of size 1
    entry 0, charge: account salaries, loss {"epsilon":1}
    """

    origin: str
    size: int
    root: bytes
    vkey: str
    entries: tuple[dict[str, Any], ...]
    witnesses: tuple[Cosigned, ...]
    answer: int | None

    def __str__(self) -> str:
        lines = [f"proven: these entries are in the log of {self.origin}, as of size {self.size}"]
        for entry in self.entries:
            about = ("account", "charge", "act", "subject", "policy")
            names = (*about, "who", "purpose", "loss", "time", "answer")
            facts = ", ".join(f"{name} {_shown(entry[name])}" for name in names if name in entry)
            lines.append(f"entry {entry['index']}, {_shown(entry['kind'])}: {facts}")
        if self.answer is not None:
            lines.append(f"the answer is the one that entry {self.answer} commits to")
        lines += [str(witness) for witness in self.witnesses]
        # Between words only, so that every digest can be copied.
        how: Any = {"break_long_words": False, "break_on_hyphens": False}
        return "\n".join("\n".join(wrap(one, 80, subsequent_indent="  ", **how)) for one in lines)


def leaf_hash(body: bytes) -> bytes:
    """Return the hash of one entry.

    >>> leaf_hash(b"").hex()[:16]
    '6e340b9cffb37a98'
    """
    return hashlib.sha256(b"\x00" + body).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two neighbouring subtrees.

    >>> node_hash(leaf_hash(b""), leaf_hash(bytes(1))).hex()[:16]
    'fac54203e7cc696c'
    """
    return hashlib.sha256(b"\x01" + left + right).digest()


def check_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> None:
    """Refuse unless the entry with this leaf hash is number ``index`` of the tree.

    >>> a, b = leaf_hash(b"a"), leaf_hash(b"b")
    >>> check_inclusion(b, 1, 2, [a], node_hash(a, b))
    """
    if not 0 <= index < size <= LARGEST:
        raise NotProven(f"a log of size {size} has no entry {index}")
    # Up to the level where the paths to this leaf and to the last one meet, each node has a
    # sibling; above, the path runs along the right edge, and only left siblings remain.
    inner = (index ^ (size - 1)).bit_length()
    if len(proof) != inner + (index >> inner).bit_count() or not _are_hashes(proof):
        raise NotProven(f"the proof of entry {index} does not have the right hashes")
    top = leaf
    for level, sibling in enumerate(proof):
        is_right = level >= inner or index >> level & 1
        top = node_hash(sibling, top) if is_right else node_hash(top, sibling)
    if top != root:
        raise NotProven(f"entry {index} is not the one in the log, or its proof is wrong")


def check_consistency(
    old_size: int, old_root: bytes, new_size: int, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Refuse unless the old tree is the beginning of the new one.

    >>> a, b = leaf_hash(b"a"), leaf_hash(b"b")
    >>> check_consistency(1, a, 2, node_hash(a, b), [b])
    >>> check_consistency(1, b, 2, node_hash(a, b), [b])
    Traceback (most recent call last):
    discreet.ledger.verifier.NotProven: the log of size 2 is not shown to continue that of size 1
    """
    refusal = NotProven(
        f"the log of size {new_size} is not shown to continue that of size {old_size}"
    )
    if not 0 <= old_size <= new_size <= LARGEST:
        raise refusal
    if old_size in (0, new_size):
        if proof or old_root != (new_root if old_size else hashlib.sha256().digest()):
            raise refusal
        return
    # The path starts at the last complete subtree of the old tree, and so does the proof, unless
    # that subtree is the whole old tree, whose hash is known.
    shift = (old_size & -old_size).bit_length() - 1
    path, last = (old_size - 1) >> shift, (new_size - 1) >> shift
    hashes = [old_root, *proof] if path == 0 else proof
    inner = (path ^ last).bit_length()
    if len(hashes) != 1 + inner + (path >> inner).bit_count() or not _are_hashes(proof):
        raise refusal
    old = new = hashes[0]
    for level, sibling in enumerate(hashes[1:]):
        if level >= inner or path >> level & 1:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
        else:
            new = node_hash(new, sibling)
    if (old, new) != (old_root, new_root):
        raise refusal


def parse_vkey(text: str) -> VerifierKey:
    """Read a public key written as name, key ID and key, with plus signs between.

    >>> parse_vkey("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW").name
    'PeterNeumann'
    """
    name, key_id, encoded = [*text.split("+", 2), "", ""][:3]
    raw = _base64(encoded, "a public key", length=33)
    key = VerifierKey(_name(name), raw[0], raw[1:])
    if key.algorithm not in (LOG, COSIGNER) or key.key_id.hex() != key_id:
        raise NotProven("a public key does not fit its key ID, or is of an unknown kind")
    if bytes((*key.public[:31], key.public[31] & 0x7F)) in _SMALL_ORDER:
        raise NotProven("a public key is one under which anybody can sign anything")
    return key


def first_vkey(text: str) -> str:
    """Return the public key that is the first line of a file like ``ledger.pub``.

    >>> first_vkey("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")[:21]
    'PeterNeumann+c74f20a3'
    """
    if text.lstrip().startswith("{") and '"private"' in text:
        raise NotProven("this file holds a secret key: give the public key, such as ledger.pub")
    vkey = text.split("\n")[0].rstrip("\r")
    parse_vkey(vkey)
    return vkey


def parse_note(note: str) -> tuple[str, list[tuple[str, bytes, bytes]]]:
    r"""Split a signed note into its text and its signatures: names, key IDs, bytes.

    >>> parse_note("hello\n\n\u2014 example.com/a AAAAAAE=\n")
    ('hello\n', [('example.com/a', b'\x00\x00\x00\x00', b'\x01')])
    """
    text, gap, tail = note.rpartition("\n\n")
    lines = tail.split("\n")
    if not gap or lines.pop() or re.search(r"[\x00-\x09\x0b-\x1f\ud800-\udfff]", note):
        raise NotProven("the checkpoint is not a signed note")
    if len(lines) > 100:
        raise NotProven("the checkpoint has too many signatures")
    signatures = []
    for line in lines:
        dash, name, encoded = [*line.split(" ", 2), "", ""][:3]
        raw = _base64(encoded, "a signature")
        if dash != "\N{EM DASH}" or len(raw) < 5:
            raise NotProven("the checkpoint has a malformed signature line")
        signatures.append((_name(name), raw[:4], raw[4:]))
    return text + "\n", signatures


def parse_checkpoint(note: str) -> Checkpoint:
    r"""Read what a signed note says about a log. This checks no signature.

    >>> empty = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    >>> parse_checkpoint(f"example.com/ledger\n0\n{empty}\n\n\u2014 example.com/a AAAAAAE=\n").size
    0
    """
    lines = parse_note(note)[0].split("\n")
    if len(lines) != 4 or not re.fullmatch(r"0|[1-9][0-9]{0,18}", lines[1]):
        raise NotProven("the checkpoint is not an origin, a size and a root hash on three lines")
    if int(lines[1]) > LARGEST:
        raise NotProven("the checkpoint is of a log larger than any")
    root = _base64(lines[2], "the root hash", length=32)
    return Checkpoint(origin=_name(lines[0]), size=int(lines[1]), root=root)


def check_checkpoint(note: str, vkey: str) -> Checkpoint:
    """Return the checkpoint in a note; refuse if the log's key did not sign it.

    >>> key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    >>> check_checkpoint("not a note", key)
    Traceback (most recent call last):
    discreet.ledger.verifier.NotProven: the checkpoint is not a signed note
    """
    key, checkpoint, (text, signatures) = parse_vkey(vkey), parse_checkpoint(note), parse_note(note)
    if key.algorithm != LOG or key.name != checkpoint.origin:
        raise NotProven(f"the key given is not that of a log called {checkpoint.origin}")
    mine = [raw for name, key_id, raw in signatures if (name, key_id) == (key.name, key.key_id)]
    if not mine or not all(key.has_signed(text.encode(), raw) for raw in mine):
        raise NotProven("the checkpoint is not signed by the key given, nor by one it leads to")
    return checkpoint


def check_cosignatures(note: str, witnesses: Sequence[str]) -> tuple[Cosigned, ...]:
    r"""Return which of these witnesses cosigned; refuse if a cosignature of theirs is false.

    >>> check_cosignatures("text\n\n\u2014 example.com/a AAAAAAE=\n", [])
    ()
    """
    text, signatures = parse_note(note)
    keys = [parse_vkey(vkey) for vkey in witnesses]
    if len({key.public for key in keys}) < len(keys) or any(k.algorithm != COSIGNER for k in keys):
        raise NotProven("the keys of the witnesses are not different keys of witnesses")
    times: dict[VerifierKey, int] = {}
    for key in keys:
        for raw in (raw for name, i, raw in signatures if (name, i) == (key.name, key.key_id)):
            time = int.from_bytes(raw[:8])
            told = f"cosignature/v1\ntime {time}\n{text}".encode()
            if time > LARGEST or not key.has_signed(told, raw[8:]):
                raise NotProven(f"the cosignature of {key.name} is false")
            times[key] = max(time, times.get(key, 0))
    return tuple(Cosigned(key.name, time) for key, time in times.items())


def rotation_text(origin: str, index: int, vkey: str) -> bytes:
    """Return what the old and the new key both sign when entry ``index`` rotates the key.

    >>> rotation_text("example.com/ledger", 7, "example.com/ledger+...").splitlines()[2]
    b'7'
    """
    return f"discreet-ledger rotate v1\n{origin}\n{index}\n{vkey}\n".encode()


def follow_rotations(vkey: str, rotations: Sequence[object], checkpoint: Checkpoint) -> str:
    """Return the key that signs after these ``rotate`` entries, which the log must all hold.

    >>> key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    >>> log = Checkpoint(origin="PeterNeumann", size=0, root=hashlib.sha256().digest())
    >>> follow_rotations(key, [], log) == key
    True
    """
    shape = {"vkey": str, "by_old": str, "by_new": str}
    steps = [_members(entry, shape, "a rotation") for entry in _entries(rotations, checkpoint)]
    if any(step["kind"] != "rotate" for step in steps):
        raise NotProven("an entry among the rotations rotates no key")
    # The key may have been handed out after some of them: start behind the one that made it.
    start = max((n for n, step in enumerate(steps, 1) if step["vkey"] == vkey), default=0)
    for step in steps[start:]:
        old, new = parse_vkey(vkey), parse_vkey(step["vkey"])
        told = rotation_text(old.name, step["index"], step["vkey"])
        by_old, by_new = (_base64(step[by], "a rotation", length=64) for by in ("by_old", "by_new"))
        is_signed = old.has_signed(told, by_old) and new.has_signed(told, by_new)
        if not is_signed or (new.name, new.algorithm) != (old.name, LOG):
            raise NotProven(f"entry {step['index']} does not lead from the key given to another")
        vkey = step["vkey"]
    return vkey


def check_receipt(
    document: str | bytes,
    vkey: str,
    *,
    answer: bytes | None = None,
    witnesses: Sequence[str] = (),
    quorum: int | None = None,
) -> Verified:
    """Return what a receipt proves; refuse, with the reason, if it does not.

    An ``answer`` is compared with what the ledger committed to. Of the ``witnesses``, given by
    their public keys, at least ``quorum`` must have cosigned: all of them, where it is not said.

    >>> key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    >>> check_receipt("{}", key)
    Traceback (most recent call last):
    discreet.ledger.verifier.NotProven: the receipt has no format
    """
    shape = {"format": str, "checkpoint": str, "entries": list, "rotations": list}
    receipt = _members(_json(document, "the receipt"), shape, "the receipt", exactly=True)
    if receipt["format"] != "discreet-receipt/1":
        raise NotProven("the receipt is of a format that this verifier does not know")
    note = receipt["checkpoint"]
    signer = follow_rotations(vkey, receipt["rotations"], parse_checkpoint(note))
    checkpoint, cosigned = check_checkpoint(note, signer), check_cosignatures(note, witnesses)
    needed = len(witnesses) if quorum is None else quorum
    if not 0 <= needed <= len(cosigned):
        raise NotProven(f"{len(cosigned)} of the witnesses given cosigned, and {needed} must")
    entries = _entries(receipt["entries"], checkpoint)
    releases = [_release(e, entries) for e in entries if e["kind"] == "release"]
    digest = None if answer is None else hashlib.sha256(answer).hexdigest()
    answered = next((e["index"] for e in releases if e["answer"] == digest), None)
    if not entries:
        raise NotProven("the receipt shows no entry")
    if answer is not None and answered is None:
        raise NotProven("the receipt is not about this answer")
    return Verified(
        **asdict(checkpoint),
        vkey=signer,
        entries=tuple(entries),
        witnesses=cosigned,
        answer=answered,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Check a receipt from the command line: 0 if proven, 1 if not, 2 if a file cannot be read.

    >>> main(["no-such-receipt.json", "--key", "no-such-ledger.pub"])
    2
    """
    parser = argparse.ArgumentParser(description="Check a receipt of a ledger.")
    parser.add_argument("receipt", type=Path, help="the receipt, a JSON file")
    parser.add_argument("--key", type=Path, required=True, help="the ledger's public key")
    parser.add_argument("--answer", type=Path, help="the answer that came with the receipt")
    parser.add_argument("--witness", type=Path, action="append", default=[], help="its public key")
    parser.add_argument("--quorum", type=int, help="how many witnesses must have cosigned (all)")
    parser.add_argument("--json", action="store_true", help="tell it in JSON")
    asked = parser.parse_args(argv)
    try:
        vkey, *witnesses = [first_vkey(p.read_text("utf-8")) for p in (asked.key, *asked.witness)]
        answer = None if asked.answer is None else asked.answer.read_bytes()
        document, options = asked.receipt.read_bytes(), {"answer": answer, "quorum": asked.quorum}
        proven = check_receipt(document, vkey, witnesses=witnesses, **options)
        report = json.dumps(_plain(proven)) if asked.json else str(proven)
    except (NotProven, RecursionError) as refusal:
        if asked.json:
            sys.stdout.write(json.dumps({"proven": False, "reason": str(refusal)}) + "\n")
        else:
            sys.stderr.write(_lines(f"NOT PROVEN: {refusal}"))
        return 1
    except (OSError, UnicodeDecodeError) as trouble:
        sys.stderr.write(_lines(f"cannot read a file: {trouble}"))
        return 2
    sys.stdout.write(f"{report}\n")
    return 0


def _lines(text: str) -> str:
    return "\n  ".join(wrap(text, 78, break_long_words=False, break_on_hyphens=False)) + "\n"


def _plain(proven: Verified) -> dict[str, object]:
    fields = {name: getattr(proven, name) for name in ("origin", "size", "vkey", "answer")}
    root = base64.b64encode(proven.root).decode()
    witnesses = [witness._asdict() for witness in proven.witnesses]
    listed = {"root": root, "witnesses": witnesses, "entries": proven.entries}
    return {"proven": True, **fields, **listed}


def _entries(items: Sequence[object], checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """Return the entries shown, which must be in the log and in ascending order."""
    entries: list[dict[str, Any]] = []
    for item in items:
        shape = {"index": int, "body": str, "proof": list}
        shown = _members(item, shape, "a shown entry", exactly=True)
        proof = [_base64(text, "a hash in a proof", length=32) for text in shown["proof"]]
        leaf = leaf_hash(shown["body"].encode("utf-8", "surrogatepass"))
        check_inclusion(leaf, shown["index"], checkpoint.size, proof, checkpoint.root)
        entry = _members(_json(shown["body"], "an entry"), {"index": int, "kind": str}, "an entry")
        if entry["index"] != shown["index"]:
            raise NotProven(f"entry {shown['index']} says that it is another one")
        if entries and entry["index"] <= entries[-1]["index"]:
            raise NotProven("the entries shown are not in ascending order")
        entries.append(entry)
    return entries


def _release(entry: dict[str, Any], entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a release entry whose charge is shown, came before it, and is of the same account."""
    release = _members(entry, {"account": str, "charge": int, "answer": str}, "a release")
    for paid in entries:
        is_it = paid["index"] == release["charge"] < release["index"]
        if is_it and paid["kind"] in CHARGES and paid.get("account") == release["account"]:
            return release
    raise NotProven(f"the charge that paid for entry {release['index']} is not shown")


def _json(document: str | bytes, what: str) -> object:
    """Read JSON in which nothing is said twice and every number is one."""

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a member is named twice")
        return dict(pairs)

    def number(text: str) -> float:
        if not math.isfinite(float(text)):
            raise ValueError("a number is not finite")
        return float(text)

    try:
        text = document.decode() if isinstance(document, bytes) else document
        if len(text) > LONGEST:
            raise ValueError("too long")
        return json.JSONDecoder(
            object_pairs_hook=members, parse_float=number, parse_constant=number
        ).decode(text)
    except (ValueError, RecursionError) as error:
        raise NotProven(f"{what} is not proper JSON") from error


def _members(
    value: object, shape: Mapping[str, type], what: str, *, exactly: bool = False
) -> dict[str, Any]:
    """Return an object whose members have these types; ``exactly`` these members, if asked."""
    if not isinstance(value, dict):
        raise NotProven(f"{what} is not an object")
    for name, kind in shape.items():
        if type(value.get(name)) is not kind:  # isinstance would take True for a number
            raise NotProven(f"{what} has no {name}" + " of the right type" * (name in value))
    if exactly and len(value) > len(shape):
        raise NotProven(f"{what} has a member that does not belong there")
    return value


def _base64(text: object, what: str, *, length: int | None = None) -> bytes:
    """Read Base64 written in the one canonical way."""
    try:
        raw = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        raw = b""
    if not raw or base64.b64encode(raw).decode() != text or length not in (None, len(raw)):
        raise NotProven(f"{what} is not proper Base64 of the right length")
    return raw


def _are_hashes(proof: Sequence[bytes]) -> bool:
    return all(len(item) == 32 for item in proof)


def _name(text: str) -> str:
    if not 0 < len(text) <= 255 or not text.isprintable() or " " in text or "+" in text:
        raise NotProven("the name of a key or log is not one")
    return text


def _shown(value: object) -> str:
    """Write a value on one line that cannot move a terminal's cursor."""
    if isinstance(value, str) and value.isprintable():
        return value
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    sys.exit(main())
