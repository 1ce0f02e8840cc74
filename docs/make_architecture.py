"""Draw the house of docs/ARCHITECTURE.md from contracts.toml: `make reference`."""

import ast
import statistics
import textwrap
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "discreet"
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
WIDTH = 96


def house() -> str:
    """Return the picture: floors from top to bottom, and inside a room its folders likewise."""
    contracts = _contracts()
    (floors,) = (one["layers"] for one in contracts if "containers" not in one and "layers" in one)
    inside = {one["containers"][0]: one["layers"] for one in contracts if "containers" in one}
    drawn = []
    for floor in floors:
        rooms = [room.removeprefix("discreet.") for room in _names(floor)]
        drawn.append([(room, _storeys(room, inside.get(f"discreet.{room}", ()))) for room in rooms])
    lines = [_rule()]
    for rooms in drawn:
        lines += [*_side_by_side(rooms), _rule()]
    return "```text\n" + "\n".join(lines) + "\n```"


def purposes() -> dict[str, str]:
    """Return what each folder is for: the first sentence of its docstring."""
    places = sorted({path.parent for path in _modules()} - {SOURCE})
    return {place.relative_to(SOURCE).as_posix(): _purpose(place) for place in places}


def folders() -> str:
    """Return the table of folders with their files and lines."""
    rows = ["| folder | purpose | files | lines | largest |", "|---|---|---|---|---|"]
    for name, purpose in purposes().items():
        lengths = {path.stem: _length(path) for path in (SOURCE / name).glob("*.py")}
        largest = max(lengths, key=lambda stem: lengths[stem])
        total = f"{len(lengths)} | {sum(lengths.values()):,}"
        rows.append(f"| `{name}` | {purpose} | {total} | {largest} {lengths[largest]} |")
    return "\n".join(rows)


def sizes() -> dict[str, int]:
    """Return the number of lines of every module that holds more than a table of contents."""
    return {
        path.relative_to(SOURCE).as_posix(): _length(path)
        for path in _modules()
        if path.name != "__init__.py"
    }


def written(page: str) -> str:
    """Return the page with its drawn parts made anew."""
    found = sizes()
    median, most = statistics.median(found.values()), max(found, key=lambda name: found[name])
    summary = (
        f"{len(found)} files with code, {sum(found.values()):,} lines; the median file has "
        f"{median:.0f}, the largest, `{most}`, {found[most]}."
    )
    for mark, text in (("house", house()), ("folders", folders()), ("sizes", summary)):
        before, _, rest = page.partition(f"<!-- {mark} -->\n")
        _, end, after = rest.partition(f"<!-- /{mark} -->")
        page = f"{before}<!-- {mark} -->\n{text}\n{end}{after}"
    return page


def _contracts() -> list[dict[str, list[str]]]:
    with (ROOT / "contracts.toml").open("rb") as file:
        found: list[dict[str, list[str]]] = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return [one for one in found if "layers" in one]


def _names(layer: str) -> list[str]:
    return [name.strip() for name in layer.replace("|", " ").replace(":", " ").split()]


def _storeys(room: str, layers: Iterable[str]) -> list[str]:
    """Return a room's folders, a line for each layer; single files are its front door."""
    lines = []
    for layer in layers:
        names = [name for name in _names(layer) if not name.startswith("_")]
        if not names:
            continue
        inner = [name for name in names if (SOURCE / room / name).is_dir()]
        files = len(names) - len(inner)
        shown = " | ".join(f"{name}/" for name in inner) or ", ".join(names)
        lines.append(f"{shown} + {files} files" if inner and files else shown)
    return lines


def _side_by_side(rooms: Sequence[tuple[str, list[str]]]) -> list[str]:
    room_width = (WIDTH - 1) // len(rooms)
    columns = []
    for i, (name, storeys) in enumerate(rooms):
        width = room_width - 3 if i < len(rooms) - 1 else WIDTH - 1 - room_width * i - 3
        text = [name.upper()]
        for storey in storeys:
            text += textwrap.wrap(storey, width - 2, initial_indent="  ", subsequent_indent="    ")
        columns.append([line.ljust(width) for line in text])
    height = max(map(len, columns))
    for column in columns:
        column += [" " * len(column[0])] * (height - len(column))
    return ["| " + " | ".join(parts) + " |" for parts in zip(*columns, strict=True)]


def _rule() -> str:
    return "+" + "-" * (WIDTH - 2) + "+"


def _modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py"))


def _length(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _purpose(folder: Path) -> str:
    doc = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return doc.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
