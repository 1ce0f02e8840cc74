"""Keys stay secret and whole; notes are what the specifications say."""

import base64
import copy
import json
import os
import pickle
import stat

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from discreet.errors import LedgerError, LedgerUnavailable, NotCopyable, ParameterError
from discreet.ledger.log import keys as _keys
from discreet.ledger.log.keys import SigningKey, WitnessKey
from discreet.ledger.log.notes import add_signature, checkpoint_text, cosign, sign_checkpoint
from discreet.ledger.verifier import (
    NotProven,
    Verified,
    check_checkpoint,
    check_cosignatures,
    parse_vkey,
)

NAME = "example.com/ledger"
ROOT = bytes(range(32))
KINDS = [SigningKey, WitnessKey]


def secrets_of(key):
    found = [key._private.private_bytes_raw()]
    return [*found, key._salt] if isinstance(key, SigningKey) else found


# --- keys ---


def test_a_known_key_of_another_program_gets_the_same_public_key():
    # From the documentation of golang.org/x/mod/sumdb/note.
    seed = base64.b64decode("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz")[1:]
    key = SigningKey("PeterNeumann", seed, bytes(32))
    assert key.vkey == "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    text = (
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
    )
    encoded = base64.b64encode(key.key_id + key.sign(text.encode())).decode()
    assert encoded == (
        "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
    )


@pytest.mark.parametrize("kind", KINDS)
def test_keys_differ_and_are_for_one_purpose(kind):
    one, two = kind.generate(NAME), kind.generate(NAME)
    assert one.vkey != two.vkey
    assert not set(secrets_of(one)) & set(secrets_of(two))
    assert parse_vkey(one.vkey).algorithm == {SigningKey: 1, WitnessKey: 4}[kind]
    assert parse_vkey(one.vkey).has_signed(b"text", one.sign(b"text"))
    assert not parse_vkey(two.vkey).has_signed(b"text", one.sign(b"text"))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_shows_or_copies_a_secret(kind):
    key = kind.generate(NAME)
    for shown in (repr(key), str(key), f"{key}"):
        for secret in secrets_of(key):
            assert secret.hex() not in shown
            assert base64.b64encode(secret).decode() not in shown
            assert repr(secret) not in shown
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotCopyable):
            copying(key)
    with pytest.raises(TypeError):
        vars(key)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["", "a b", "a+b", "a\nb", "a\u2003b", "a\x7f", "a\ud800", "a" * 256]
)
def test_names_that_no_note_can_carry_are_refused(kind, name):
    with pytest.raises(ParameterError) as refusal:
        kind.generate(name)
    assert refusal.value.parameter == "name"


def test_secrets_of_the_wrong_length_are_refused():
    with pytest.raises(ParameterError):
        SigningKey(NAME, bytes(31), bytes(32))
    with pytest.raises(ParameterError):
        SigningKey(NAME, bytes(32), bytes(31))
    with pytest.raises(ParameterError):
        WitnessKey(NAME, bytes(33))


def test_fingerprints_hide_texts_and_keep_domains_apart():
    key, other = SigningKey.generate(NAME), SigningKey.generate(NAME)
    seen = {
        key.fingerprint("SELECT 1"),
        key.fingerprint("SELECT 2"),
        key.fingerprint("SELECT 1", domain="source"),
        key.fingerprint("eSELECT 1", domain="sourc"),
        other.fingerprint("SELECT 1"),
    }
    assert len(seen) == 5
    assert all(len(text) == 64 for text in seen)
    assert key.rotated().fingerprint("SELECT 1") in seen
    assert key.rotated().name == key.name
    with pytest.raises(ParameterError):
        key.fingerprint("b", domain="a\x00")


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_key_is_the_same_key_and_only_its_owner_reads_it(kind, tmp_path):
    key, path = kind.generate(NAME), tmp_path / "secret.key"
    mask = os.umask(0)
    try:
        key.save(path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = kind.load(path)
    assert again.vkey == key.vkey
    assert secrets_of(again) == secrets_of(key)
    assert os.listdir(tmp_path) == ["secret.key"]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_key_is_never_overwritten_by_accident(tmp_path, monkeypatch, has_links):
    if not has_links:

        def link(*_):
            raise PermissionError(1, "no links here")

        monkeypatch.setattr(_keys.os, "link", link)
    path = tmp_path / "secret.key"
    first, second = SigningKey.generate(NAME), SigningKey.generate(NAME)
    first.save(path)
    with pytest.raises(LedgerError, match="exists already"):
        second.save(path)
    assert SigningKey.load(path).vkey == first.vkey
    second.save(path, replace=True)
    assert SigningKey.load(path).vkey == second.vkey
    assert os.listdir(tmp_path) == ["secret.key"]


def test_a_failed_write_leaves_the_old_key(tmp_path, monkeypatch):
    path = tmp_path / "secret.key"
    first = SigningKey.generate(NAME)
    first.save(path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_keys.os, "fsync", full)
    with pytest.raises(LedgerUnavailable, match="No space left"):
        first.rotated().save(path, replace=True)
    monkeypatch.undo()
    assert SigningKey.load(path).vkey == first.vkey
    assert os.listdir(tmp_path) == ["secret.key"]


def test_the_file_and_its_name_are_synced_in_this_order(tmp_path, monkeypatch):
    steps = []
    fsync, link = os.fsync, os.link

    def watched_fsync(handle):
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def watched_link(*where):
        steps.append("name")
        link(*where)

    monkeypatch.setattr(_keys.os, "fsync", watched_fsync)
    monkeypatch.setattr(_keys.os, "link", watched_link)
    SigningKey.generate(NAME).save(tmp_path / "secret.key")
    assert steps == ["file", "name", "folder"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are a POSIX matter")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o666])
def test_a_key_that_others_can_read_is_refused_with_the_remedy(tmp_path, mode):
    path = tmp_path / "secret.key"
    SigningKey.generate(NAME).save(path)
    path.chmod(mode)
    with pytest.raises(LedgerError, match="chmod 600"):
        SigningKey.load(path)


def test_files_that_are_no_keys_are_refused_without_quoting_them(tmp_path):
    path = tmp_path / "secret.key"
    with pytest.raises(LedgerUnavailable, match="no readable key"):
        SigningKey.load(path)
    SigningKey.generate(NAME).save(path)
    good = json.loads(path.read_text())
    assert set(good) == {"format", "name", "private", "salt"}
    with pytest.raises(LedgerError, match="not a key of the format discreet-witness-key/1"):
        WitnessKey.load(path)
    for bad in [
        "",
        "secret",
        "[]",
        "[" * 30_000,
        good | {"format": "discreet-ledger-key/2"},
        good | {"name": 3},
        good | {"extra": 3},
        good | {"salt": "AAAA"},
        good | {"private": "AAAA"},
        good | {"private": None},
        good | {"private": "\u00e9"},
        {name: value for name, value in good.items() if name != "salt"},
    ]:
        path.write_text(bad if isinstance(bad, str) else json.dumps(bad))
        with pytest.raises(LedgerError) as refusal:
            SigningKey.load(path)
        assert good["private"] not in str(refusal.value)
        assert refusal.value.__cause__ is None


# --- notes ---


def test_a_checkpoint_is_written_as_specified():
    key = SigningKey.generate(NAME)
    note = sign_checkpoint(key, 1234, ROOT)
    text = f"{NAME}\n1234\n{base64.b64encode(ROOT).decode()}\n"
    assert checkpoint_text(NAME, 1234, ROOT) == text
    head, signature = note.split(f"\n\N{EM DASH} {NAME} ")
    assert head == text
    raw = base64.b64decode(signature)
    public = base64.b64decode(key.vkey.split("+", 2)[2])[1:]
    Ed25519PublicKey.from_public_bytes(public).verify(raw[4:], text.encode())
    assert raw[:4].hex() == key.vkey.split("+")[1]
    assert note.endswith("\n")
    checked = check_checkpoint(note, key.vkey)
    assert (checked.origin, checked.size, checked.root) == (NAME, 1234, ROOT)
    with pytest.raises(NotProven):
        check_checkpoint(note, key.rotated().vkey)


def test_cosignatures_are_added_and_found():
    note = sign_checkpoint(SigningKey.generate(NAME), 7, ROOT)
    witnesses = [WitnessKey.generate(f"witness.example/w{n}") for n in range(3)]
    cosigned = note
    for time, witness in enumerate(witnesses):
        cosigned = add_signature(cosigned, cosign(witness, cosigned, time))
    assert cosigned.startswith(note)
    found = check_cosignatures(cosigned, [witness.vkey for witness in witnesses])
    assert found == tuple((f"witness.example/w{n}", n) for n in range(3))
    assert check_cosignatures(note, [witnesses[0].vkey]) == ()


def test_two_witnesses_of_one_name_are_two_witnesses():
    note = sign_checkpoint(SigningKey.generate(NAME), 7, ROOT)
    one, two = WitnessKey.generate("w"), WitnessKey.generate("w")
    note = add_signature(note, cosign(one, note, 1) + cosign(two, note, 2))
    assert check_cosignatures(note, [one.vkey, two.vkey]) == (("w", 1), ("w", 2))


def test_only_signature_lines_can_be_added():
    note = sign_checkpoint(SigningKey.generate(NAME), 7, ROOT)
    line = cosign(WitnessKey.generate("w"), note, 1)
    assert add_signature(note, line) == add_signature(note, line.rstrip("\n")) == note + line
    assert add_signature(note + line, line + line) == note + line
    for bad in ["", "x", f"\n{line}", f"x\n\n{line}", line.replace("w", "w w"), line + "x", "\x00"]:
        with pytest.raises(NotProven):
            add_signature(note, bad)
    for time in (-1, 2**63):
        with pytest.raises(ParameterError):
            cosign(WitnessKey.generate("w"), note, time)


def test_what_is_proven_is_told_within_80_columns():
    entry = {"index": 3, "kind": "charge", "account": "people", "who": "a" * 60, "time": "now"}
    told = Verified(
        origin="discreet-ledger/ed55494fe86b9028", size=35, root=b"", vkey="", entries=(entry,),
        witnesses=(), answer=3,
    )  # fmt: skip
    lines = str(told).splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(lines[:2]).endswith("ed55494fe86b9028, as of  size 35")
