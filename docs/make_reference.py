"""Write docs/reference from the docstrings, by task: `make reference`."""

import importlib
import inspect
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import discreet

ROOMS = discreet._ROOMS
TASKS = Path(__file__).parent / "reference.toml"


def page(room: str) -> str:
    """Return the Markdown page of one room."""
    module = importlib.import_module(f"discreet.{room}")
    parts = [f"# discreet.{room}", _prose(module.__doc__ or "")]
    for task, names in tasks(room).items():
        values = {name: getattr(module, name) for name in names}
        if all(inspect.ismodule(value) for value in values.values()):
            for name, value in values.items():
                parts += _door(name, value)
        else:
            parts += [f"## {task}", *(_entry(name, value) for name, value in values.items())]
    return "\n\n".join(parts) + "\n"


def tasks(room: str) -> Mapping[str, Sequence[str]]:
    """Return a room's names by what people do with them; refuse to forget one."""
    with TASKS.open("rb") as file:
        found: dict[str, list[str]] = tomllib.load(file).get(room, {})
    listed = [name for names in found.values() for name in names]
    shown = importlib.import_module(f"discreet.{room}").__all__
    if sorted(listed) != sorted(shown):
        odd = set(listed) ^ set(shown) or {name for name in listed if listed.count(name) > 1}
        raise ValueError(
            f"{TASKS.name} must name each name of {room} once; look for {sorted(odd)}."
        )
    return found


def _door(name: str, module: ModuleType) -> list[str]:
    """Return the entries of a folder that people enter by its own name."""
    inner = [_entry(f"{name}.{one}", getattr(module, one)) for one in module.__all__]
    return [f"## `{name}`", _prose(module.__doc__ or ""), *inner]


def _entry(name: str, value: object) -> str:
    doc = inspect.getdoc(value) if callable(value) else None
    if doc is None:
        return f"### `{name}`\n\nA value of type `{type(value).__name__}`."
    parts = [_title("###", name, value), _prose(doc)]
    if inspect.isclass(value) and not name.endswith("Conformance"):  # whose methods are tests
        for method, function in sorted(members(value).items()):
            inner = getattr(value, method)
            if not method.startswith("_") and inspect.getdoc(inner) and callable(inner):
                parts += [_title("####", f".{method}", inner), _prose(inspect.getdoc(inner) or "")]
            elif isinstance(function, property) and function.__doc__:
                parts.append(f"#### `.{method}`\n\n{_prose(inspect.getdoc(function) or '')}")
    return "\n\n".join(parts)


def _title(level: str, name: str, value: object) -> str:
    """Return the name as a heading, and how it is called below it."""
    called = _signature(value)
    if not called:
        return f"{level} `{name}`"
    return f"{level} `{name}`\n\n```py\n{_in_lines(name + called)}\n```"


def _in_lines(call: str) -> str:
    """Write a call that is long with a line for each parameter."""
    if len(call) <= 88:
        return call
    begin, lines, depth, end = call.index("(") + 1, [""], 0, 0
    for end, sign in enumerate(call[begin:], begin):  # noqa: B007 - where it ends is needed below
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            break
        if sign == "," and depth == 0:
            lines.append("")
        else:
            lines[-1] += sign
    inner = "".join(f"    {line.strip()},\n" for line in lines)
    return f"{call[:begin]}\n{inner}{call[end:]}"


def members(value: type) -> dict[str, object]:
    """Return what a class has, also what is in bases of ours that no page has an entry for."""
    known = {name for room in ROOMS for name in importlib.import_module(f"discreet.{room}").__all__}
    bases = [one for one in reversed(value.__mro__[1:]) if one.__module__.startswith("discreet.")]
    halves = [one for one in bases if one.__name__ not in known]
    return {name: one for half in (*halves, value) for name, one in vars(half).items()}


def _signature(value: object) -> str:
    try:
        text = str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    # Addresses of default objects and full module paths tell a reader nothing.
    text = re.sub(r"<([\w.]+) object at 0x[0-9a-f]+>", r"\1", text)
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)
    text = re.sub(r"<[\w.]+: ('?\w+'?)>", r"\1", text).replace("<factory>", "...")
    return re.sub(r"\*<class '([\w.]+)'>", r"Unpack[\1]", text)


def _prose(doc: str) -> str:
    """Turn doctests into fenced blocks that the block runner leaves alone."""
    lines, out, inside = inspect.cleandoc(doc).splitlines(), [], False
    for line in lines:
        if line.startswith(">>>") and not inside:
            out.append("```pycon")
            inside = True
        elif inside and not line.strip():
            out.append("```")
            inside = False
        out.append(line)
    if inside:
        out.append("```")
    return re.sub(r":(?:func|class|meth):`([^`]+)`", r"`\1`", "\n".join(out))


def main() -> None:
    """Write every page."""
    folder = Path(__file__).parent / "reference"
    folder.mkdir(exist_ok=True)
    for room in ROOMS:
        (folder / f"{room}.md").write_text(page(room), encoding="utf-8")


if __name__ == "__main__":
    main()
