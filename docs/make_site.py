"""What `mkdocs.yml` cannot say of the site: links into the repository, lists, scripts in files."""

import hashlib
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BESIDE = "repository"  # where the site keeps what pages link to outside docs/
LINK = re.compile(
    r"""(?:(?<=\]\()|(?<=src=")|(?<=srcset="))(?![a-z]+:|#)([^)"\s#]+)(#[^)"\s]*)?(?=[)"])"""
)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)#]+)\.png\)")
CITED = re.compile(r"\[([A-Z][^\[\]]*?\d\d[^\[\]]*)\](?!\()")
KEY = re.compile(r"(?:^|(?<=; ))([A-Z][A-Za-z]*\d\d)(?=$|[,;])")
PIECES = re.compile(r"^(`{3,}.*?^`{3,}[^\n]*$)", re.M | re.S)  # blocks of code, and prose
SERVED = {".md", ".png", ".svg", ".ipynb"}  # what of docs/ the site has as it is
LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml", ".json": "json", ".sh": "sh"}

# Newcomers search for how something is done; who wants a name's page knows where names are.
BOOSTS = {"how-to": 3, "tutorials": 2, "explanation": 2, "reference": 0.3, BESIDE: 0.1}

_scripts: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the addresses that a forge gives them, and short ones to signatures."""
    config.mdx_configs["toc"]["slugify"] = slug
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page for each file outside docs/ that a page links to, and for what those link to."""
    unread = [DOCS / file.src_uri for file in files.documentation_pages()]
    seen: set[Path] = set()
    while unread:
        page = unread.pop()
        for target in _targets(page):
            if target.exists() and target not in seen and not _is_served(target):
                seen.add(target)
                files.append(File.generated(config, _uri(target), content=_content(target)))
                unread.append(target)
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Lead links to the site's copies, write lists as Python-Markdown reads them; rank the page."""
    uri = page.file.src_uri
    page.meta["search"] = {"boost": BOOSTS.get(uri.split("/")[0], 1)}
    page.meta["tags"] = config.extra["keywords"].get(uri, [])
    start = posixpath.dirname(uri)
    here = ROOT / uri.removeprefix(f"{BESIDE}/") if uri.startswith(BESIDE) else DOCS / uri

    def led(match: re.Match[str]) -> str:
        target = (here.parent / match[1]).resolve()
        there = target.relative_to(DOCS).as_posix() if _is_served(target) else _uri(target)
        return posixpath.relpath(there, start or ".") + (match[2] or "")

    def in_two(match: re.Match[str]) -> str:
        if not (here.parent / f"{match[2]}-dark.png").exists():
            return match[0]
        light, dark = f"{match[2]}.png#only-light", f"{match[2]}-dark.png#only-dark"
        return f"![{match[1]}]({light})![{match[1]}]({dark})"

    references = posixpath.relpath("references.md", start or ".")
    pieces = PIECES.split(markdown)
    pieces[::2] = [
        _spaced(_cited(LINK.sub(led, PICTURE.sub(in_two, prose)), references=references))
        for prose in pieces[::2]
    ]
    return "".join(pieces)


def on_post_page(output: str, *, page: Page, **_: Any) -> str:
    """Move scripts out of the page, so that a gateway may forbid all that are in pages."""
    return _without_scripts(output, posixpath.relpath("assets", posixpath.dirname(page.url) or "."))


def on_post_build(*, config: MkDocsConfig) -> None:
    """Write the scripts that were moved."""
    for name, script in _scripts.items():
        (Path(config.site_dir) / "assets" / name).write_text(script, encoding="utf-8")


def slug(text: str, separator: str) -> str:
    """Return the address of a heading; of a signature that is its name.

    >>> slug("How fast", "-"), slug("Laplace(*, sensitivity: float, scale: float)", "-")
    ('how-fast', 'laplace')
    """
    name = re.match(r"\.?([\w.]+)\(", text)
    words = name[1] if name else text
    return re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", separator)


def _targets(page: Path) -> list[Path]:
    prose = "".join(PIECES.split(_content(page))[::2])
    return [(page.parent / match[1]).resolve() for match in LINK.finditer(prose)]


def _is_served(target: Path) -> bool:
    return DOCS in target.parents and target.suffix in SERVED


def _uri(target: Path) -> str:
    """Return where the site has a file or folder of the repository."""
    name = f"{BESIDE}/{target.relative_to(ROOT).as_posix()}"
    return name if target.suffix == ".md" else f"{name}.md"


def _content(target: Path) -> str:
    if target.is_dir():
        names = sorted(one.name for one in target.iterdir() if not one.name.startswith(("_", ".")))
        inside = [f"- [{name}]({target.name}/{name})" for name in names]
        return "\n".join([f"# {target.relative_to(ROOT)}", "", *inside]) + "\n"
    text = target.read_text(encoding="utf-8")
    if target.suffix == ".md":
        return text
    return f"# {target.name}\n\n`````{LANGUAGES.get(target.suffix, 'text')}\n{text}\n`````\n"


def _spaced(prose: str) -> str:
    """Put an empty line before lists and tables that follow a line of text or a comment."""
    prose = re.sub(r"(?m)^(?![-*|\s]|\d+\.)(.+)\n(?=- |1\. )", r"\1\n\n", prose)
    prose = re.sub(r"(?m)^ {2,3}(?=- )", "    ", prose)
    return re.sub(r"(?m)^(<!--.*-->)\n(?=\|)", r"\1\n\n", prose)


def _cited(prose: str, *, references: str) -> str:
    """Lead keys of published sources to their entries, which get places of their own."""
    if "\n**[" in prose and references == "references.md":
        return re.sub(r"(?m)^\*\*\[(\w+)\]\*\*", r'<a id="\1"></a>**[\1]**', prose)

    def led(match: re.Match[str]) -> str:
        return KEY.sub(rf"[\1]({references}#\1)", match[1]).join("[]")

    return CITED.sub(led, prose)


def _without_scripts(html: str, assets: str) -> str:
    def moved(match: re.Match[str]) -> str:
        name = f"inline-{hashlib.sha256(match[1].encode()).hexdigest()[:12]}.js"
        _scripts[name] = match[1]
        return f'<script src="{assets}/{name}"></script>'

    return re.sub(r"<script>(.*?)</script>", moved, html, flags=re.S)
