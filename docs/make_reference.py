"""Write docs/reference from the docstrings: `make reference`."""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import discreet

ROOMS = discreet._ROOMS


def page(room: str) -> str:
    """Return the Markdown page of one room."""
    module = importlib.import_module(f"discreet.{room}")
    parts = [f"# discreet.{room}", _prose(module.__doc__ or "")]
    for name in module.__all__:
        value = getattr(module, name)
        parts += _door(name, value) if inspect.ismodule(value) else [_entry(name, value)]
    return "\n\n".join(parts) + "\n"


def _door(name: str, module: ModuleType) -> list[str]:
    """Return the entries of a folder that people enter by its own name."""
    inner = [_entry(f"{name}.{one}", getattr(module, one)) for one in module.__all__]
    return [f"# `{name}`", _prose(module.__doc__ or ""), *inner]


def _entry(name: str, value: object) -> str:
    doc = inspect.getdoc(value) if callable(value) else None
    title = f"## `{name}{_signature(value)}`"
    if doc is None:
        return f"{title}\n\nA value of type `{type(value).__name__}`."
    parts = [title, _prose(doc)]
    if inspect.isclass(value) and not name.endswith("Conformance"):  # whose methods are tests
        for method, function in sorted(members(value).items()):
            inner = getattr(value, method)
            if not method.startswith("_") and inspect.getdoc(inner) and callable(inner):
                parts.append(
                    f"### `.{method}{_signature(inner)}`\n\n{_prose(inspect.getdoc(inner))}"
                )
            elif isinstance(function, property) and function.__doc__:
                parts.append(f"### `.{method}`\n\n{_prose(inspect.getdoc(function) or '')}")
    return "\n\n".join(parts)


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
    text = re.sub(r"\*<class '([\w.]+)'>", r"Unpack[\1]", text)
    return text if len(text) <= 400 else "(...)"


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
