"""Documents from anywhere are read or refused in plain words; none of them breaks the reader."""

import ast
import json
import os
from pathlib import Path

import pytest

import discreet
from discreet import accounting
from discreet._json import DEEPEST, read_json
from discreet.errors import DiscreetError
from discreet.ledger.checking.exports import Export
from discreet.ledger.checking.verification import Verification
from discreet.ledger.checking.witness import _read as read_memory
from discreet.ledger.log.keys import _load as read_key
from discreet.ledger.rules.entry import decode
from discreet.ledger.verifier import NotProven, check_receipt
from discreet.tables.declarations.reading import load
from discreet.tables.results.wire import read_result

DEEP = 100_000
LOSS = '{"epsilon":1,"kind":"pure","version":1}'


def around(inner, times=DEEP):
    return '{"inner":' * times + inner + ',"kind":"sampled","rate":0.5,"version":1}' * times


DOCUMENTS = {
    "lists": "[" * DEEP + "]" * DEEP,
    "open lists": "[" * DEEP,
    "objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "losses": around(LOSS),
    "a few losses": around(LOSS, 150),
    "a long number": f'{{"kind":"pure","version":1,"epsilon":1{"0" * 5000}}}',
    "a long fraction": f'{{"kind":"pure","version":1,"epsilon":"1/{"3" * 5000}"}}',
    "no number": '{"kind":"pure","version":1,"epsilon":NaN}',
    "infinity": '{"kind":"pure","version":1,"epsilon":-Infinity}',
    "twice": '{"kind":"pure","version":1,"epsilon":1,"epsilon":2}',
    "half a character": '{"kind":"pure","version":1,"epsilon":1,"name":"\\ud800"}',
    "a list for a kind": '{"kind":[1],"version":1}',
    "an object for a kind": '{"kind":{},"version":1}',
    "text for parts": '{"kind":"composed","version":1,"parts":"ab"}',
    "a part without a number": f'{{"kind":"composed","version":1,"parts":[[{LOSS},"1"]]}}',
    "bytes": b"\xff\xfe{",
    "nothing": "",
    "null": "null",
}


def as_bytes(document):
    return document if isinstance(document, bytes) else document.encode()


def in_file(read):
    def of(document, path):
        path.write_bytes(as_bytes(document))
        path.chmod(0o600)
        return read(path)

    return of


def settings(document, path):
    pytest.importorskip("torch")
    from discreet.learn.run.promise import Promise

    return Promise.from_json(as_bytes(document), sampling=None, clipping=None)


def declaration(path):
    path.write_text("a = " + path.read_text(encoding="latin-1").replace("{", "["), "latin-1")
    return load(path)


READERS = {
    "loss": lambda document, _: accounting.from_json(document),
    "result": lambda document, _: read_result(document),
    "entry": lambda document, _: decode(document),
    "receipt": lambda document, _: check_receipt(document, vkey="none"),
    "settings": settings,
    "export": in_file(Export),
    "verification": in_file(Verification.load),
    "witness": in_file(read_memory),
    "key": in_file(lambda path: read_key(path, "x", ("a",))),
    "declaration": in_file(declaration),
}
REFUSED = {"entry": (ValueError,), "receipt": (NotProven,)}
READABLE = {"entry": {name for name, text in DOCUMENTS.items() if str(text).startswith('{"kind"')}}
READABLE["entry"] -= {"a long number"}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_reader_refuses_in_plain_words(reader, name, tmp_path):
    if name in READABLE.get(reader, ()):
        READERS[reader](DOCUMENTS[name], tmp_path / "document")
        return
    with pytest.raises(REFUSED.get(reader, DiscreetError)) as found:
        READERS[reader](DOCUMENTS[name], tmp_path / "document")
    assert len(str(found.value)) < 500


def test_losses_may_be_nested_up_to_a_depth():
    nested = accounting.PureLoss(epsilon=1)
    for _ in range(DEEPEST - 10):
        nested = nested.sampled(rate=0.5)
    assert accounting.from_json(accounting.to_json(nested)) == nested


@pytest.mark.parametrize("inner", ["[{}]", '{{"a":{}}}'])
def test_the_depth_is_counted_exactly(inner):
    text = "1"
    for _ in range(DEEPEST):
        text = inner.replace("{}", text) if inner[0] == "[" else inner.format(text)
    assert read_json(text) == json.loads(text)
    with pytest.raises(ValueError, match="more than 100 deep"):
        read_json(f"[{text}]")


def test_width_is_not_depth():
    text = json.dumps([[[i]] for i in range(10_000)])
    assert read_json(text, strict=True) == json.loads(text)


def test_text_in_other_languages_is_fine():
    text = json.dumps({"name": "Åsa \N{SNOWMAN} \N{GRINNING FACE}"})
    for form in (text, json.loads(text)["name"].join('""'), text.encode()):
        assert read_json(form, strict=True) == json.loads(form)


def test_nothing_else_reads_json():
    """Whoever reads JSON does it here, but for the verifier, which must stand alone."""
    root = Path(discreet.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if named and node.value.id == "json" and node.attr in ("load", "loads", "JSONDecoder"):
                found.add(path.relative_to(root).as_posix().replace(os.sep, "/"))
    assert found <= {"_json.py", "ledger/verifier.py"} | {f for f in found if f[:7] == "testing"}
