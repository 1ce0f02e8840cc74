"""Execute the tutorials that are notebooks, and keep them with their outputs.

A page under docs/tutorials with the line `<!-- notebook -->` is one story: its Python blocks share
their variables, as cells do. `python docs/make_notebooks.py` runs them and writes `.ipynb` files
into build/notebooks, which git ignores. As a hook of the site, which comes before the others, this
module shows the outputs below the cells, and offers the notebook for download.
"""

import base64
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs/tutorials"
BUILD: Final = ROOT / "build/notebooks"
MARK: Final = "<!-- notebook -->\n"
LINK: Final = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:)[^)]*\)")
CELL: Final = re.compile(r"^```python\n.*?^```\n", re.M | re.S)
SECONDS: Final = 300


def pages() -> list[Path]:
    """Return the tutorials that are notebooks."""
    return [page for page in sorted(FOLDER.glob("*.md")) if MARK in page.read_text()]


def notebook(page: Path) -> Any:
    """Return a page as a notebook without outputs.

    Links to other pages become plain words: a downloaded notebook stands alone.
    """
    import jupytext

    made = jupytext.reads(page.read_text().replace(MARK, ""), fmt="md")
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(r"\1", cell.source)
    made.metadata["kernelspec"] = {
        "name": "python3", "display_name": "Python 3", "language": "python",
    }  # fmt: skip
    return made


def executed(page: Path) -> Any:
    """Return the notebook of a page, with what its cells print and draw."""
    from nbclient import NotebookClient

    made = notebook(page)
    with TemporaryDirectory() as place:
        resources = {"metadata": {"path": place}}
        NotebookClient(
            made,
            timeout=SECONDS,
            kernel_name="python3",
            coalesce_streams=True,
            resources=resources,
        ).execute(env=os.environ | {"OMP_NUM_THREADS": "1"})  # as in tests: tensors are tiny
    return made


def with_outputs(text: str, made: Any, *, name: str) -> tuple[str, dict[str, bytes]]:
    """Return a page with outputs below its cells, and the pictures among them by file name."""
    cells = iter([cell for cell in made.cells if cell.cell_type == "code"])
    pictures: dict[str, bytes] = {}

    def shown(block: re.Match[str]) -> str:
        parts = [block[0]]
        for output in next(cells).get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode(data["image/png"])
                parts.append(f"\n![What the cell above draws]({file})\n")
            elif words := (output.get("text") or data.get("text/plain")):
                parts.append(f"\n```text\n{words.rstrip()}\n```\n")
        return "".join(parts)

    head = f"[Download this page as a notebook, with its outputs]({name}.ipynb).\n"
    return CELL.sub(shown, text.replace(MARK, head)), pictures


_made: dict[str, str] = {}  # pages with their outputs, by where the site has them


def on_files(files: Any, *, config: Any) -> Any:
    """Add executed notebooks and their pictures to the site."""
    import nbformat
    from mkdocs.structure.files import File

    for page in pages():
        path = BUILD / f"{page.stem}.ipynb"
        if not path.exists():
            continue  # the page is then shown without outputs
        made = nbformat.read(path, as_version=4)
        text, pictures = with_outputs(page.read_text(), made, name=page.stem)
        _made[f"tutorials/{page.name}"] = text
        contents = {path.name: path.read_bytes(), **pictures}
        for name, content in contents.items():
            files.append(File.generated(config, f"tutorials/{name}", content=content))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Show a tutorial with its outputs, where it was executed."""
    return _made.get(page.file.src_uri, markdown)


if __name__ == "__main__":
    import nbformat

    BUILD.mkdir(parents=True, exist_ok=True)
    for source in pages():
        if not sys.argv[1:] or source.stem in sys.argv[1:]:
            nbformat.write(executed(source), BUILD / f"{source.stem}.ipynb")
            print(BUILD / f"{source.stem}.ipynb")
