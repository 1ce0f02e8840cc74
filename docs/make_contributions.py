"""Try what CONTRIBUTING.md promises: add things to a copy, test them, count what was touched.

`make contributions` writes the table anew; a test holds each contribution to its limit.
"""

import difflib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
RECIPES = ROOT / "docs" / "contributions"


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What somebody adds: whole files from ``docs/contributions/<folder>``, and lines elsewhere.

    ``lines`` are by file: pairs of a mark that is there once, and what is put in before it.
    """

    title: str
    folder: str
    most: int  # source files that it may touch
    lines: dict[str, list[tuple[str, str]]]


@dataclass(frozen=True, kw_only=True)
class Touched:
    """What a contribution took: source files with their lines, and whether its test passed."""

    files: dict[str, int]
    passed: bool
    output: str


def tried(contribution: Contribution) -> Touched:
    """Carry out a contribution in a temporary copy and run its test there."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("src", "tests"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        tests = _apply(contribution, copy)
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
            cwd=copy, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(copy / "src")},
        )  # fmt: skip
        return Touched(files=_added(copy), passed=run.returncode == 0, output=run.stdout)


def _apply(contribution: Contribution, copy: Path) -> list[str]:
    """Change the copy; return the tests that came with the contribution."""
    tests = []
    recipe = RECIPES / contribution.folder
    for path in sorted(recipe.rglob("*.py")):
        name = path.relative_to(recipe)
        shutil.copy(path, copy / name)
        if path.name.startswith("test_"):
            tests.append(str(name))
    for name, edits in contribution.lines.items():
        text = (copy / name).read_text(encoding="utf-8")
        for mark, added in edits:
            assert text.count(mark) == 1, f"{name}: {mark!r} is there {text.count(mark)} times"
            text = text.replace(mark, added + mark)
        (copy / name).write_text(text, encoding="utf-8")
    return tests


def _added(copy: Path) -> dict[str, int]:
    """Return the source files that differ from ours, with the number of lines added."""
    found = {}
    for path in sorted((copy / "src").rglob("*.py")):
        ours = ROOT / path.relative_to(copy)
        old = ours.read_text(encoding="utf-8").splitlines() if ours.exists() else []
        new = path.read_text(encoding="utf-8").splitlines()
        if old != new:
            changes = difflib.ndiff(old, new) if old else [f"+ {line}" for line in new]
            found[str(path.relative_to(copy / "src" / "discreet"))] = sum(
                line.startswith("+ ") for line in changes
            )
    return found


_SUBTRACT = '''\
def subtract(rec: Recorder, func: Any, input: Any, other: Any, **options: Any) -> Tensor:
    """Follow a parameter that is subtracted from a batch, or a batch from it."""
    if options or not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return cast("Tensor", fallback(rec, func, input, other, **options))
    owner, sign = (input, 1) if rec.is_followed(input) else (other, -1)
    out = func(constant(rec, input), constant(rec, other))
    (axis,) = rec.results or (None,)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(owner, Dense(sign * per_unit_sum(rec, grad, axis, owner.shape)))

    return rec.watch(out, owner, then=then)


'''

CONTRIBUTIONS = [
    Contribution(
        title="a mechanism with a loss of its own",
        folder="mechanism",
        most=4,
        lines={
            "src/discreet/accounting/losses/__init__.py": [
                (
                    "from discreet.accounting.losses.zcdp import",
                    "from discreet.accounting.losses.two_sided import TwoSidedLoss\n",
                ),
                ('    "WithoutReplacementLoss",\n', '    "TwoSidedLoss",\n'),
            ],
            "src/discreet/mechanisms/__init__.py": [
                (
                    "from discreet.mechanisms.responses.warner import",
                    "from discreet.mechanisms.responses.two_sided import TwoSidedResponse\n",
                ),
                ('    "Warner",\n', '    "TwoSidedResponse",\n'),
            ],
        },
    ),
    Contribution(
        title="an aggregate that is a rewrite of others: `GEOMEAN(x)`",
        folder="aggregate",
        most=1,
        lines={
            "src/discreet/tables/model/aggregates.py": [
                (
                    '    AggregateSpec(kind="correlation"',
                    '    Rewrite(names=("GEOMEAN",), sql="EXP(AVG(LN(x)))"),\n',
                )
            ]
        },
    ),
    Contribution(
        title="an engine, of plain Python and without SQL",
        folder="engine",
        most=1,
        lines={},
    ),
    Contribution(
        title="a layer rule: subtraction of a parameter",
        folder="layer_rule",
        most=2,
        lines={
            "src/discreet/learn/rules/elementwise.py": [("def multiply(", _SUBTRACT)],
            "src/discreet/learn/rules/table.py": [
                (
                    "    **dict.fromkeys((torch.mul, T.mul,",
                    "    **dict.fromkeys((torch.sub, T.sub, T.__sub__), subtract),\n",
                ),
                (
                    "from discreet.learn.rules.embeddings import",
                    "from discreet.learn.rules.elementwise import subtract\n",
                ),
            ],
        },
    ),
]


def table() -> str:
    """Return the table of CONTRIBUTING.md, every contribution tried."""
    rows = ["| contribution | source files (at most) | lines added | where |", "|---|---|---|---|"]
    for one in CONTRIBUTIONS:
        touched = tried(one)
        if not touched.passed:
            raise SystemExit(f"{one.title} fails:\n{touched.output}")
        where = ", ".join(f"`{name}` {lines}" for name, lines in touched.files.items())
        total = sum(touched.files.values())
        rows.append(f"| {one.title} | {len(touched.files)} ({one.most}) | {total} | {where} |")
    return "\n".join(rows)


def main() -> None:
    """Write the table into the guide."""
    before, mark, rest = GUIDE.read_text(encoding="utf-8").partition("<!-- contributions -->\n")
    _, end, after = rest.partition("<!-- /contributions -->")
    found = table()
    GUIDE.write_text(f"{before}{mark}{found}\n{end}{after}", encoding="utf-8")
    print(found)


if __name__ == "__main__":
    main()
