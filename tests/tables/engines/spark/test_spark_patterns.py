"""Which regular expressions Java may have, and how LIKE is written so that it never goes back."""

import re

import pytest

from discreet.tables.engines.compile.dialect import Lacking
from discreet.tables.engines.compile.scalars import scalar_sql
from discreet.tables.engines.spark.dialect import SPARK
from discreet.tables.model.scalar import Call, ColumnRef, Literal

LINEAR = [
    "b.u", "[0-9]+", "n.*", "^a[b-d]*x", "^[^@]+@x", "(k)=(v)", r"\d{4}-\d{2}", "north|south",
    "ab?c", "a{2,5}", r"\s+", r"^\S+", "x$", r"\.\*", "^$",
]  # fmt: skip
NOT_LINEAR = [
    "(a+)+", "a+b", ".*x", "[a-z]*[a-z]*h", "(a|b)*", "(ab){2}", "(a)?", r"\bnorth", "a+$",
    "^a*b*c", "^a|b", "a?" * 12 + "b", r"[\S]x", "[a-z]+?x",
]  # fmt: skip


def written(function, *arguments):
    literals = tuple(Literal(one, "text") for one in arguments)
    return scalar_sql(Call(function, (ColumnRef("x"), *literals)), SPARK)


@pytest.mark.parametrize("pattern", LINEAR)
def test_patterns_that_take_a_time_in_proportion(pattern):
    assert "RLIKE" in written("matches", pattern, "")


@pytest.mark.parametrize("pattern", NOT_LINEAR)
def test_patterns_that_could_take_longer(pattern):
    for function, more in (("matches", [""]), ("replace_matches", ["", "g"])):
        with pytest.raises(Lacking, match="very long"):
            written(function, pattern, *more)


@pytest.mark.parametrize("pattern", ["a+b", "[a-z]+", "ab?c*"])
def test_the_whole_of_a_text_may_have_one_repeat(pattern):
    assert "\\A" in written("matches_whole", pattern, "")


@pytest.mark.parametrize("pattern", ["a+b+", "(a|b)*", "a*b*c"])
def test_the_whole_of_a_text_may_not_have_two(pattern):
    with pytest.raises(Lacking):
        written("matches_whole", pattern, "")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("abc", "(\"x\" = 'abc')"),
        ("ab%", "(startswith(\"x\", 'ab'))"),
        ("%ab", "(endswith(\"x\", 'ab'))"),
        ("%ab%", "contains(\"x\", 'ab')"),
        ("a%ba", '(startswith("x", \'a\') AND endswith("x", \'ba\') AND length("x") >= 3)'),
    ],
)
def test_plain_patterns_of_like(pattern, text):
    assert written("like", pattern) == text


def test_several_percent_signs_are_taken_once_each():
    found = written("like", "a%b_%c.%d")
    assert found == "(\"x\" RLIKE '(?s)\\Aa(?>.*?b.)(?>.*?c\\.).*d\\z')"
    pattern = re.compile("(?s)\\Aa(?>.*?b.)(?>.*?c\\.).*d\\Z")
    assert pattern.match("axxbbyc.zd")
    assert not pattern.match("axxbyc!zd")
