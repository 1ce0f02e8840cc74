"""Old copies and forks, sound in themselves; going on from an earlier verification."""

import shutil
from pathlib import Path

import pytest
from ledger_attacks import Original, look, random_edits

from discreet.accounting import LaplaceLoss
from discreet.errors import (
    LedgerError,
    TamperingFound,
)
from discreet.ledger import Ledger, Witness
from discreet.ledger.checking.verification import Verification
from discreet.ledger.verifier import NotProven


def witness_of(original: Original, folder: Path) -> Witness:
    """Return a copy of the witness, so that one test does not teach it for another."""
    shutil.copytree(original.witness, folder / "witness")
    return Witness.open(folder / "witness")


def test_a_restored_copy_is_sound_in_itself(restored, original):
    assert look(restored, vkey=original.vkey).size < original.size


def test_a_restored_copy_is_found_by_a_pinned_checkpoint(restored, original, tmp_path):
    size = look(restored).size
    with pytest.raises(TamperingFound) as error:
        look(restored, pinned=original.pinned)
    assert error.value.entry == size
    with pytest.raises(TamperingFound) as error:
        Ledger.open(restored, pinned=original.pinned)
    assert error.value.entry == size
    (tmp_path / "pinned").write_text(original.pinned)
    with pytest.raises(TamperingFound):
        Ledger.open(restored, pinned=tmp_path / "pinned")


def test_a_restored_copy_is_found_by_an_earlier_verification(restored, original):
    latest = look(original.path)
    with pytest.raises(TamperingFound):
        look(restored, since=latest)


def test_a_restored_copy_is_found_by_a_witness(restored, original, tmp_path):
    witness = witness_of(original, tmp_path)
    with Ledger.open(restored) as ledger:
        size = ledger.size
        with pytest.raises(TamperingFound):
            ledger.witness(witness)
        assert ledger.size == size
    assert witness.last("example.com/ledger").size > size


@pytest.mark.parametrize("more", [1, 3, 4, 5, 9])
def test_a_fork_signed_with_the_real_key_is_found(restored, original, tmp_path, more):
    """A copy that goes on by itself, shorter than the ledger, as long, or longer."""
    witness = witness_of(original, tmp_path)
    with Ledger.open(restored) as fork:
        for n in range(more):
            loss = LaplaceLoss(noise_multiplier=40 + n)
            fork["salaries"].charge(loss, who="eve", purpose="x")
        fork.verify(vkey=original.vkey)  # sound in itself
        for pinned in (original.pinned,):
            with pytest.raises(TamperingFound):
                fork.verify(pinned=pinned)
            with pytest.raises(TamperingFound):
                Ledger.open(restored, pinned=pinned)
        size = fork.size
        with pytest.raises(TamperingFound):
            fork.witness(witness)
        assert fork.size == size
        other = fork.checkpoint()
    # And the other way round: who pinned the fork finds out about the ledger.
    with pytest.raises(TamperingFound):
        look(original.path, pinned=other)


def test_of_two_continuations_a_witness_cosigns_one(restored, original, tmp_path):
    second = tmp_path / "second.db"
    shutil.copyfile(restored, second)
    shutil.copy2(f"{restored}.key", f"{second}.key")
    witness = Witness.create(tmp_path / "fresh", name="witness.example/w2")
    for place, who in ((restored, "ana"), (second, "bo")):
        with Ledger.open(place) as ledger:
            for _ in range(3):
                ledger["salaries"].charge(LaplaceLoss(noise_multiplier=40), who=who, purpose="x")
    with Ledger.open(restored) as ledger:
        ledger.witness(witness)
    with Ledger.open(second) as ledger, pytest.raises(TamperingFound):
        ledger.witness(witness)
    with Ledger.open(restored) as ledger:
        ledger.witness(witness)  # the first goes on


def test_a_key_that_was_rotated_away_signs_no_continuation(original, tmp_path):
    """Whoever stole the old key can only fork from before its end, which others remember."""
    place = tmp_path / "budget.db"
    shutil.copyfile(original.oldest, place)
    shutil.copy2(original.oldest_key, f"{place}.key")
    witness = witness_of(original, tmp_path)
    seen = witness.last("example.com/ledger")
    with Ledger.open(place) as fork:
        for step in ("charge", "rotate"):  # with the old key, or a third one that it leads to
            for _ in range(20):
                loss = LaplaceLoss(noise_multiplier=40)
                fork["salaries"].charge(loss, who="eve", purpose="x")
            if step == "rotate":
                fork.rotate()
            fork.verify(vkey=original.vkey)
            with pytest.raises(TamperingFound):
                fork.verify(pinned=original.pinned)
            with pytest.raises((LedgerError, NotProven)):
                fork.witness(witness)
    assert witness.last("example.com/ledger") == seen


def test_a_statement_of_a_witness_about_another_log_is_found(restored, original):
    """A fork cannot show the cosignature that the witness gave to the ledger."""
    with Ledger.open(original.path, read_only=True) as ledger:
        statement = [entry for entry in ledger.history() if entry["kind"] == "witness"][-1]
    with Ledger.open(restored) as fork:
        while fork.size < original.size:
            fork["salaries"].charge(LaplaceLoss(noise_multiplier=40), who="eve", purpose="x")
        place = fork.size
        taken = {name: statement[name] for name in ("kind", "note", "vkey")}
        fork._session.submit({**taken, "key": "taken"})  # as somebody with the key could
        with pytest.raises(TamperingFound) as error:
            fork.verify()
        assert error.value.entry == place


def test_a_write_ahead_log_that_is_taken_away_is_a_restored_copy(original, tmp_path):
    place = tmp_path / "budget.db"
    shutil.copyfile(original.path, place)
    shutil.copy2(original.key, f"{place}.key")
    ledger = Ledger.open(place)
    try:
        for n in range(3):
            loss = LaplaceLoss(noise_multiplier=40 + n)
            ledger["salaries"].charge(loss, who="ana", purpose="x")
        pinned = ledger.checkpoint()
        alone = tmp_path / "alone.db"
        shutil.copyfile(place, alone)  # without the write-ahead log beside it
    finally:
        ledger.close()
    look(place, pinned=pinned)
    with pytest.raises(TamperingFound):
        look(alone, pinned=pinned)


def test_an_emptied_file_is_no_fresh_budget(original, tmp_path):
    place = tmp_path / "budget.db"
    place.touch()
    shutil.copy2(original.key, f"{place}.key")
    with pytest.raises(LedgerError):
        Ledger.open(place)
    place.unlink()
    with pytest.raises(LedgerError):
        Ledger.open(place)


@pytest.mark.lengthy
def test_from_a_marker_on_every_edit_is_found(sqlite_site, original, rng):
    marker = original.older_verified
    edits = [
        attack
        for attack in random_edits(sqlite_site, rng, any_byte=False)
        if attack.blamed is None or attack.blamed >= marker.size
    ]
    missed = []
    for attack in edits:
        sqlite_site.reset()
        sqlite_site.execute_all(attack.statements)
        try:
            look(sqlite_site.location, since=marker)
        except TamperingFound as error:
            if attack.blamed not in (None, error.entry):
                missed.append(f"{attack.name}: blamed {error.entry}")
        else:
            missed.append(attack.name)
    assert not missed, "\n".join(missed)


def test_before_the_marker_only_the_state_is_looked_at(sqlite_site, original, rng):
    """What lies before a marker was verified then; who edits it later is found by a full pass."""
    marker = original.older_verified
    i = 7
    sqlite_site.execute("UPDATE entries SET body = body || ' ' WHERE idx = ?", i)
    assert look(sqlite_site.location, since=marker).start == marker.size
    with pytest.raises(TamperingFound) as error:
        look(sqlite_site.location)
    assert error.value.entry == i


def test_a_marker_survives_its_file(original, tmp_path):
    original.older_verified.save(tmp_path / "marker.json")
    marker = Verification.load(tmp_path / "marker.json")
    assert look(original.path, since=marker).size == original.size
