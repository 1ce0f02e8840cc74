"""Run README's first block and show its answer there: what it prints, and the picture of it.

`python docs/make_answer.py` asks again, with other noise.
"""

import contextlib
import io
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from discreet import plotting

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def asked() -> tuple[str, Any]:
    """Return what the block prints, and its answer."""
    found = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert found is not None
    printed, names = io.StringIO(), dict[str, Any]()
    shown = contextlib.redirect_stdout(printed)
    with TemporaryDirectory() as folder, contextlib.chdir(folder), shown:
        exec(compile(found[1], "README.md", "exec"), names)
    return printed.getvalue(), names["answer"]


def main() -> None:
    """Write both into README and docs/assets."""
    printed, answer = asked()
    plotting.save(answer.plot()[0].figure, ROOT / "docs/assets/answer.png")
    with plotting.dark():
        plotting.save(answer.plot()[0].figure, ROOT / "docs/assets/answer-dark.png")
    page = README.read_text(encoding="utf-8")
    before, mark, rest = page.partition("<!-- answer -->\n")
    _, end, after = rest.partition("<!-- /answer -->")
    text = f"{before}{mark}```text\n{printed}```\n{end}{after}"
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
