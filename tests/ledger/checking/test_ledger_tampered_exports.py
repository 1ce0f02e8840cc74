"""Exports and receipts of which a byte was altered."""

import json
from base64 import b64decode
from pathlib import Path

import pytest
from ledger_attacks import Original

from discreet.accounting import LaplaceLoss
from discreet.errors import (
    ParameterError,
    TamperingFound,
)
from discreet.ledger import Export, Ledger, Witness
from discreet.ledger.verifier import NotProven, check_receipt

pytestmark = pytest.mark.lengthy


def logical(text: bytes) -> object:
    """Return what an export says, whatever way the lines that are not hashed are written."""
    head, *rest = text.split(b"\n")
    header = json.loads(head)
    size = header["size"]
    tail = [json.loads(line) for line in rest[size:] if line]
    for line in tail:
        if "answer" in line:
            line["answer"] = b64decode(line["answer"], validate=True)
    return header, rest[:size], tail, text.endswith(b"\n")


def check_export(text: bytes, original: Original, place: Path, *, blamed: int | None) -> str | None:
    place.write_bytes(text)
    try:
        is_same = logical(text) == logical(original.export.read_bytes())
    except (ValueError, KeyError, TypeError):
        is_same = False
    try:
        Export(place).verify(vkey=original.vkey)
    except TamperingFound as error:
        # What an entry says of the one before it may be wrong on either side: no hash is stored.
        is_right = blamed is None or error.entry in (blamed, max(blamed - 1, 0))
        return None if is_right else f"blamed {error.entry} for {blamed}"
    except ParameterError:  # the first line no longer says that it is an export
        return None if blamed is None else "no longer an export"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if is_same else "not found"


def test_an_edit_of_any_line_of_an_export_is_found(original, tmp_path, rng):
    lines = original.export.read_bytes().splitlines(keepends=True)
    missed = []
    for number, line in enumerate(lines * 3):
        number %= len(lines)
        changed = bytearray(line)
        at = rng.randrange(len(line))
        changed[at] = rng.choice([byte for byte in range(256) if byte != line[at]])
        text = b"".join([*lines[:number], bytes(changed), *lines[number + 1 :]])
        blamed = number - 1 if 1 <= number <= original.size else None
        missed += [
            f"byte {at} of line {number}, {line[at]} -> {changed[at]}: {why}"
            for why in [check_export(text, original, tmp_path / "log.ndjson", blamed=blamed)]
            if why
        ]
    assert not missed, "\n".join(missed)


def test_lines_of_an_export_cannot_go_come_or_change_places(original, tmp_path, rng):
    lines = original.export.read_bytes().splitlines(keepends=True)
    texts = {"cut off": b"".join(lines)[: rng.randrange(1, len(b"".join(lines)))]}
    for number in range(1, len(lines)):
        if not original.size < number < len(lines) - 1:  # an answer; see below
            texts[f"without line {number}"] = b"".join(lines[:number] + lines[number + 1 :])
            texts[f"line {number} twice"] = b"".join(lines[: number + 1] + lines[number:])
        i, j = sorted(rng.sample(range(1, len(lines)), 2))
        swapped = [*lines]
        swapped[i], swapped[j] = lines[j], lines[i]
        if not original.size < i < j < len(lines) - 1:  # answers have no order
            texts[f"lines {i} and {j} swapped"] = b"".join(swapped)
    nothing = json.dumps({**json.loads(lines[0]), "size": 0}).encode() + b"\n"
    texts["no entries"] = nothing + lines[-1]
    renamed = json.dumps({**json.loads(lines[0]), "origin": "example.com/other"}).encode() + b"\n"
    texts["another origin"] = b"".join([renamed, *lines[1:]])
    missed = []
    for name, text in texts.items():
        why = check_export(text, original, tmp_path / "log.ndjson", blamed=None)
        missed += [f"{name}: {why}"] if why else []
    assert not missed, "\n".join(missed)


def test_a_kept_answer_cannot_be_removed_from_an_export(original, tmp_path):
    lines = original.export.read_bytes().splitlines(keepends=True)
    missed = []
    for number in range(original.size + 1, len(lines) - 1):
        text = b"".join(lines[:number] + lines[number + 1 :])
        missed += [check_export(text, original, tmp_path / "log.ndjson", blamed=None)]
    assert missed == [None] * len(missed) != []


def test_an_edited_export_is_not_imported(original, tmp_path):
    text = original.export.read_bytes()
    (tmp_path / "log.ndjson").write_bytes(text.replace(b'"who":"ana"', b'"who":"eve"', 1))
    with pytest.raises(TamperingFound):
        Ledger.imported(tmp_path / "log.ndjson", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("number", [0, 1])
def test_an_edit_of_any_byte_of_a_receipt_is_found(original, rng, number):
    receipt = original.receipts[number]
    witnesses = [Witness.open(original.witness).vkey] * number
    options = {"vkey": original.vkey, "witnesses": witnesses}
    check_receipt(receipt, **options)
    raw = receipt.encode()
    missed = []
    for at in rng.sample(range(len(raw)), 400):
        changed = bytearray(raw)
        changed[at] = rng.choice([byte for byte in range(256) if byte != raw[at]])
        try:
            is_same = json.loads(bytes(changed)) == json.loads(raw)
        except ValueError:
            is_same = False
        try:
            check_receipt(bytes(changed), **options)
        except NotProven:
            continue
        except Exception as error:
            missed.append(f"byte {at}: {type(error).__name__}")
        else:
            missed += [] if is_same else [f"byte {at}: {raw[at]} -> {changed[at]}"]
    assert not missed, "\n".join(missed)


def test_a_receipt_of_a_fork_is_of_no_use_against_a_witness(restored, original):
    with Ledger.open(restored) as fork:
        receipt = fork["salaries"].charge(LaplaceLoss(noise_multiplier=40), who="eve", purpose="x")
        told = fork.prove(receipt).to_json()
    check_receipt(told, original.vkey)
    with pytest.raises(NotProven):
        check_receipt(told, original.vkey, witnesses=[Witness.open(original.witness).vkey])
