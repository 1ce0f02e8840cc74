"""The modules are small, depend on nothing, and the minified one is that of the sources."""

import hashlib
import re

import pytest

from discreet.errors import ParameterError
from discreet.local.browser import MODULES, read_module


def test_the_minified_module_is_small_and_that_of_the_sources():
    minified = read_module("discreet-local.min.js")
    assert len(minified) < 12_000
    sources = read_module("discreet-local.js") + read_module("discreet-seal.js")
    assert hashlib.sha256(sources).hexdigest().encode() in minified, "run: make browser"


@pytest.mark.parametrize("name", MODULES)
def test_modules_load_nothing_from_elsewhere_and_make_no_code_of_texts(name):
    text = read_module(name).decode()
    found = re.findall(r'from\s*"([^"]+)"', re.sub(r"/\*.*?\*/", "", text, flags=re.S))
    assert found == (["./discreet-seal.js"] if name == "discreet-local.js" else [])
    assert not re.search(r"\beval\b|\bFunction\(|\bimport\(|Math\.random|https?://", text)


def test_there_is_no_other_module():
    with pytest.raises(ParameterError, match="one of"):
        read_module("../wire/kinds.py")
