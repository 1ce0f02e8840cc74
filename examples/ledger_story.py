"""A week in the life of a ledger.

A custodian opens one account for all employees. Two analysts ask; one asks again, for nothing. A
training job reserves a thousand steps, stops early, and gives back what never began. Somebody
edits a copy of the ledger, somebody else restores an old one, and both are caught. At the end a
stranger checks a receipt with one file of code and no ledger.
"""

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from discreet import datasets
from discreet.accounting import GaussianLoss
from discreet.errors import BudgetExceeded, TamperingFound
from discreet.ledger import Account, Ledger, Release, Witness, verifier
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee, Unit


def open_account(ledger: Ledger) -> Account:
    """Open the one account of the population, and share its budget out."""
    account = ledger.create(
        "staff",
        unit=Unit.record(),
        neighbours="add_remove",
        guarantee=Guarantee(epsilon=3, delta=1e-6),
        kind="renyi",  # counts training step by step, and questions somewhat dearer
        sources=[{"name": "census", "version": "2026-11", "identities": ["hr.census"]}],
    )
    account.limit(Guarantee(epsilon=1, delta=1e-6), analyst="*")
    print(f"The custodian opens an account: {account.guarantee} for {account.unit}, all together,")
    print("and epsilon 1 for each analyst.\n")
    return account


def ask(account: Account, *, who: str, epsilon: float) -> Release[int] | None:
    """Ask how many adults there are."""
    ages = np.asarray(datasets.census(n=2_000, seed=1)["age"], dtype=np.int64)
    adults = int((ages >= 18).sum())
    count = DiscreteLaplace.calibrated(epsilon=epsilon, sensitivity=1)
    try:
        release = account.answer(
            count,
            lambda: adults,
            who=who,
            purpose="report",
            query="count(*) where age >= 18",
            version="2026-11",
        )
    except BudgetExceeded as refusal:
        print(f"  {who}: refused. {refusal.budget} would be at {refusal.would_be:.0%}.")
        return None
    print(f"  {who}: {release}; {account.used:.1%} of the total is used")
    return release


def train(account: Account) -> None:
    """Reserve a thousand steps and stop after two hundred."""
    step = GaussianLoss(noise_multiplier=4).sampled(rate=0.01)
    before = account.used
    with account.reserve(step * 1000, who="trainer", purpose="model") as job:
        held = account.used
        for _ in range(4):
            job.spend(step * 50)  # durable; the data would be touched only now
    print(f"  1,000 steps set aside {held - before:.2%} of the total.")
    print(f"  After 200 the noisy loss was good enough: {account.used - before:.2%} is gone,")
    print("  and the rest came back.\n")


def tamper(copy: Path) -> None:
    """Make the second charge in a copy look cheaper, and let the copy be verified."""
    with closing(sqlite3.connect(copy)) as database, database:
        sql = 'UPDATE entries SET body = replace(body, \'"who":"ben"\', \'"who":"ana"\')'
        database.execute(sql)
    with Ledger.open(copy, read_only=True) as ledger:
        try:
            ledger.verify()
        except TamperingFound as found:
            print(f"  The edited copy: {found}")


def restore(old: Path, key: Path, witness: Witness) -> None:
    """Put an old copy in the place of the ledger. It is sound, but this host has seen more.

    Another host, which never saw the ledger, does not know; a witness remembers.
    """
    try:
        Ledger.open(old, key=key)
    except TamperingFound as found:
        print(f"  The old copy, on this host: {str(found).partition('. ')[0]}.")
    elsewhere = shutil.copy(key, key.with_name("elsewhere.key"))
    with Ledger.open(old, key=elsewhere) as ledger:
        print(f"  On another one: {ledger.verify()}, and yet the witness says:")
        try:
            ledger.witness(witness)
        except TamperingFound as found:
            print(f"  {found}\n")


def check_as_a_stranger(folder: Path, receipt: Path, public: Path) -> None:
    """Run the verifier by itself, from a folder that has nothing else of discreet."""
    alone = shutil.copy(verifier.__file__, folder / "verifier.py")
    command = [sys.executable, "-I", alone, str(receipt), "--key", str(public)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    for line in told.stdout.splitlines():
        print(f"  {line[:96]}")


def main() -> None:
    """Tell the story."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        witness = Witness.create(folder / "witness", name="witness.example/w1")
        with Ledger.open(folder / "budget.db", name="example.com/staff") as ledger:
            account = open_account(ledger)
            print("Two analysts ask how many adults there are:")
            first = ask(account, who="ana", epsilon=0.5)
            ask(account, who="ana", epsilon=0.5)  # the same again: free
            ask(account, who="ben", epsilon=0.5)  # his own limit pays, the total does not
            ask(account, who="ben", epsilon=0.75)  # more accurate, so a new question
            ledger.backup(folder / "old.db")
            print("\nA model is trained:")
            train(account)
            ledger.witness(witness)
            ledger.backup(folder / "copy.db")
            assert first is not None
            ledger.prove(first.receipt).save(folder / "receipt.json")
            (folder / "ledger.pub").write_text(f"{ledger.vkey}\n")
            print(f"The custodian verifies: {ledger.verify()}. Then two copies turn up.")
        tamper(folder / "copy.db")
        restore(folder / "old.db", folder / "budget.db.key", witness)
        print("A stranger has Ana's receipt, the public key, and one file of code:")
        check_as_a_stranger(folder, folder / "receipt.json", folder / "ledger.pub")


if __name__ == "__main__":
    main()
