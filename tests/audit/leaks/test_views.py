"""Canaries are seen behind encodings, and in whatever holds them."""

import base64
import bz2
import gzip
import hashlib
import io
import json
import lzma
import pickle
import tarfile
import uuid
import zipfile

import pytest

from discreet import audit

PLANTED = audit.plant(rows=60)
NAME = PLANTED.table["name"][3]
ID = PLANTED.table["person_id"][5]
TEXT = NAME.encode()


class Answer:
    """A result whose text does not show what it holds."""

    def __init__(self, truth):
        self.truth = truth

    def __repr__(self):
        return "Answer"


class Silent(Answer):
    """One that keeps it to itself."""

    def __init__(self, truth):
        self._truth = truth


def in_tar(mode):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        member = tarfile.TarInfo("answers.csv")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
    return file.getvalue()


def after_a_program():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("answers.csv", TEXT * 9)
    return b"#!/usr/bin/env python\n" + file.getvalue()


SHOWN = {
    "bzip2": bz2.compress(TEXT),
    "xz": lzma.compress(" ".join(PLANTED.table["name"]).encode()),
    "gzip": gzip.compress(TEXT),
    "a tar with bzip2": in_tar("w:bz2"),
    "a zip after a program": after_a_program(),
    "base32": base64.b32encode(TEXT),
    "base64 for addresses": base64.urlsafe_b64encode(b"\xff\xfe\xfb" + TEXT),
    "hex, colons": TEXT.hex(":"),
    "a dump": "\n".join(f"{at:08x}  {TEXT[at : at + 16].hex(' ')}" for at in (0, 16)),
    "bytes as numbers": json.dumps(list(TEXT)),
    "bytes in a list": list(TEXT),
    "escaped twice": json.dumps("".join(f"\\u{ord(letter):04x}" for letter in NAME)),
    "a number in hex": hex(ID),
    "an identifier": uuid.UUID(int=ID),
    "a pickle": pickle.dumps(ID),
    "short hashes": [hashlib.sha256(n.encode()).hexdigest()[:8] for n in PLANTED.table["name"]],
    "a file in memory": io.BytesIO(TEXT),
    "a text in memory": io.StringIO(NAME),
    "an attribute": [Answer(NAME)],
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_there_is_seen(name):
    assert not audit.scan(lambda: SHOWN[name], PLANTED).passed


@pytest.mark.parametrize(
    "content", [Silent(NAME), [len(NAME)] * 20, [300, 400] * 20, b"BZh91AY&SY cut", "f" * 41]
)
def test_what_shows_nothing_is_none(content):
    assert audit.scan(lambda: content, PLANTED).passed


def test_a_file_is_not_closed_by_the_search():
    buffered = io.BufferedReader(io.BytesIO(b"a line"))
    audit.scan(lambda: buffered, PLANTED)
    assert not buffered.closed
    buffered.seek(0)  # detached, it would raise
