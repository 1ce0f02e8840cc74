"""Command lines made from the tree of commands itself, so that a new command is among them."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import EnumType
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from command_line import did

from discreet.cli import app
from discreet.datasets import census

VALUES = (
    "", " ", "0", "-0.0", "-1", "1", "2.5", "1e-300", "5e-324", "1e300", "1e999", "1e-999",
    "9" * 400, "1/0", "1/3", "nan", "inf", "-inf", "true", "--", "\u0665", "s\u00fc \U0001f4a5",
    "\x1b[2J", "\udcff", "a" * 5000, "none", "none/at/all.json", ".", "..", "binary", "empty",
    "budget.db", "budget.db.key", "people.toml", "people.parquet",
    "/proc/none/x", "x" * 300 + "/y", "SELECT COUNT(*) FROM people",
    "SELECT 'x", "postgresql://nobody@127.0.0.1:1/none", "{}", "people",
)  # fmt: skip
"""Missing, empty, tiny, huge, no numbers, letters of the world, files of every wrong kind."""

NUMBERS = (
    "0",
    "1",
    "3",
    "0.1",
    "1e-6",
    "1e-12",
    "1e-300",
    "1e3",
    "1e6",
    "1e12",
    "1e300",
    "0.999999",
)

USUAL = {
    "epsilon": "0.5", "delta": "1e-6", "n": "1000", "prior": "0.1", "name": "people",
    "sources": "people.parquet", "unit": "person_id", "noise_multiplier": "4", "steps": "10",
    "question": "SELECT COUNT(*) AS n FROM people", "receipt": "receipt.json", "index": "1",
    "file": "copy.jsonl", "target": "rich", "epochs": "1", "batch_size": "50", "folder": ".",
    "who": "ana", "reason": "because", "people": "16", "questions": "16", "only": "warner",
    "samples": "200", "processes": "1", "function": "operator:neg", "pair": "[0, 1]",
    "role": "analyst",
}  # fmt: skip
"""What makes a command work, by the name of the parameter; others are left out, or 1 if needed."""


@dataclass(frozen=True)
class Leaf:
    """One command: the words that call it, and its parameters."""

    words: tuple[str, ...]
    params: tuple[Any, ...]

    def line(self, change: dict[str, str | None]) -> list[str]:
        """Return the usual command line, with some parameters given other values or none."""
        found = list(self.words)
        for param in self.params:
            usual = USUAL.get(param.name, "1" if param.required else None)
            value = change.get(param.name, usual)
            if value is None:
                continue
            if param.param_type_name == "argument":
                found.append(value)
            elif getattr(param, "is_flag", False):
                found.append(param.opts[-1])
            else:
                found += [param.opts[-1], value]
        return found

    def drawn(self, random: Random) -> list[str]:
        """Return a command line with some parameters changed, at random."""
        changed = random.sample(self.params, min(len(self.params), random.randint(1, 4)))
        return self.line({param.name: random.choice(_values(param)) for param in changed})


def _values(param: Any) -> list[str]:
    """Return what one may try for a parameter: where it is a choice, mostly what it offers."""
    kind = getattr(param, "bare_type", None)
    offered = [str(one.value) for one in kind] if isinstance(kind, EnumType) else []
    return offered or [*VALUES, *NUMBERS]


def leaves(command: Any = None, words: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Yield all commands of the application."""
    command = typer.main.get_command(app) if command is None else command
    params = tuple(param for param in command.params if param.name not in ("help", "version"))
    inner = getattr(command, "commands", {})
    if not inner or getattr(command, "invoke_without_command", False):
        yield Leaf(words=words, params=params)
    for name, one in inner.items():
        yield from leaves(one, (*words, name))


def furnish() -> None:
    """Put into the working directory what commands read: tables, a used ledger, copies, rubbish."""
    rows = census(200, seed=1)
    pq.write_table(pa.table({**rows, "rich": rows["income"] > 25_000}), "people.parquet")
    Path("binary").write_bytes(bytes(range(256)) * 8)
    Path("empty").write_bytes(b"")
    did("protect", "people.parquet", "--name", "people", "--unit", "person_id", "--rows", "1",
        "--epsilon", "3", "--delta", "1e-6")  # fmt: skip
    did("query", "people", USUAL["question"], "--epsilon", "0.1", "--receipt", "receipt.json")
    did("ledger", "export", "copy.jsonl")
    with contextlib.suppress(AssertionError):
        did("ledger", "checkpoint", "--out", "checkpoint.txt", "--public", "budget.db.pub")
