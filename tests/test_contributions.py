"""What the guide says of contributions holds: so few files, and what was added works."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
try:
    from make_contributions import CONTRIBUTIONS, GUIDE, tried
finally:
    sys.path.pop(0)


@pytest.mark.lengthy
@pytest.mark.parametrize("contribution", CONTRIBUTIONS, ids=lambda one: one.folder)
def test_a_contribution_touches_few_files_and_works(contribution):
    touched = tried(contribution)
    assert touched.passed, touched.output
    assert len(touched.files) <= contribution.most
    assert f"| {contribution.title} | {len(touched.files)} (" in GUIDE.read_text(), (
        "run: make contributions"
    )
