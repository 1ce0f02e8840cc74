"""Look behind encodings: what a reader would see after decoding, unpacking or unescaping."""

import base64
import binascii
import bz2
import html
import io
import lzma
import re
import sqlite3
import tarfile
import tempfile
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_to_bytes

__all__ = ["MOST", "views"]

MOST: Final = 1 << 28  # bytes that one output may unfold to
_DEEPEST = 3
_PACKED = ("gzip", "archive", "SQLite", "UTF-16")
_SMALLEST = 4
_GAP = b"\n"
_ENDING = 1 << 16  # how far from its end the directory of a zip may begin
_BASE32 = re.compile(rb"[A-Z2-7]{16,}")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{11,}")
_HEX = re.compile(rb"[0-9A-Fa-f]{8,}")
_APART = re.compile(rb"(?:[0-9A-Fa-f]{2}[ :-]){3,}[0-9A-Fa-f]{2}(?![0-9A-Fa-f])")
_UUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_BYTES = re.compile(rb"(?<!\d)\d{1,3}(?:[,\s]{1,8}\d{1,3}){11,}(?!\d)")
_ESCAPED = re.compile(rb"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")  # escaped twice as well
_LINE = re.compile(rb"[\t -~]{4,}")
_WIDE = re.compile(rb"(?:\0{1,3}[ -~]){6,}|(?:[ -~]\0{1,3}){6,}")
_STREAM = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]|BZh[1-9]1AY&SY|\xfd7zXZ\0")


def views(content: bytes, *, packed: bool = False) -> Iterator[tuple[str, bytes]]:
    """Yield the content itself, then what it decodes to, up to three encodings deep.

    ``packed`` asks for what compression, archives and databases hide, and not for other encodings.

    >>> [name for name, _ in views(b"%64%65%62%75%67 c2FsYXJ5IDQ3MTE=")]
    ['', 'base64', 'percent']
    """
    known: set[bytes] = set()
    decoders = {word: _DECODERS[word] for word in _PACKED} if packed else _DECODERS
    waiting, room = deque([("", content, 0)]), MOST
    while waiting:
        name, here, depth = waiting.popleft()
        if here in known or (depth and len(here) > room):
            continue
        known.add(here)
        room -= len(here)
        yield name, here
        if depth < _DEEPEST:
            for word, decode in decoders.items():
                inner = decode(here)
                if inner is not None and len(inner) >= _SMALLEST:
                    waiting.append((f"{name}, {word}" if name else word, inner, depth + 1))


def _base64(content: bytes) -> bytes | None:
    """Decode every long word from each of four beginnings: it may be glued to something."""
    found = []
    for word in _BASE64.findall(content):
        usual = word.replace(b"-", b"+").replace(b"_", b"/")
        for start in range(4):
            rest = usual[start:]
            rest = rest[: len(rest) - (len(rest) % 4 == 1)]
            found.append(binascii.a2b_base64(rest + b"=" * (-len(rest) % 4)))
    return _GAP.join(found) if found else None


def _base32(content: bytes) -> bytes | None:
    found = []
    for word in _BASE32.findall(content):
        whole = word[: len(word) - (len(word) % 8 in (1, 3, 6))]
        found.append(base64.b32decode(whole + b"=" * (-len(whole) % 8)))
    return _GAP.join(found) if found else None


def _hexadecimal(content: bytes) -> bytes | None:
    """Decode every long word from both beginnings; a number may have lost its leading zero."""
    found = []
    words = _HEX.findall(content)
    for apart in (_APART, _UUID):  # as dumps, fingerprints and identifiers are written
        words += [re.sub(rb"[ :-]", b"", word) for word in apart.findall(content)]
    for word in words:
        for rest in (word, word[1:], *([b"0" + word] if len(word) % 2 else [])):
            found.append(binascii.unhexlify(rest[: len(rest) // 2 * 2]))
    return _GAP.join(found) if found else None


def _ordinals(content: bytes) -> bytes | None:
    """Read lists of bytes that are written as numbers, as JSON does."""
    found = []
    for written in _BYTES.findall(content):
        numbers = [int(one) for one in re.findall(rb"\d+", written)]
        if max(numbers) < 256:
            found.append(bytes(numbers))
    return _GAP.join(found) if found else None


def _percent(content: bytes) -> bytes | None:
    return _of_lines(content, b"%", lambda line: unquote_to_bytes(line.replace(b"+", b" ")))


def _entities(content: bytes) -> bytes | None:
    return _of_lines(content, b"&", lambda line: html.unescape(line.decode("ascii")).encode())


def _escapes(content: bytes) -> bytes | None:
    def plain(found: re.Match[bytes]) -> bytes:
        return chr(int(found[1] or found[2], 16)).encode("utf-8", "replace")

    return _of_lines(content, b"\\", lambda line: _ESCAPED.sub(plain, line))


def _of_lines(content: bytes, mark: bytes, decode: Callable[[bytes], bytes]) -> bytes | None:
    """Decode the stretches of plain text that have the mark: bytes of other kinds mean no code."""
    lines = [line for line in _LINE.findall(content) if mark in line] if mark in content else []
    return _GAP.join(map(decode, lines)) if lines else None


def _wide(content: bytes) -> bytes | None:
    """Read UTF-16 and UTF-32 of either byte order as far as it is ASCII."""
    found = [one[0].replace(b"\0", b"") for one in _WIDE.finditer(content)]
    return _GAP.join(found) if found else None


def _inflating(mark: bytes) -> Any:
    if mark.startswith(b"BZh"):
        return bz2.BZ2Decompressor()
    if mark.startswith(b"\xfd"):
        return lzma.LZMADecompressor()
    return zlib.decompressobj(zlib.MAX_WBITS | 32)


def _compressed(content: bytes) -> bytes | None:
    """Inflate every compressed stream, wherever it begins; a cut one as far as it goes."""
    found, end, whole = [], 0, memoryview(content)
    for start in _STREAM.finditer(content):
        if start.start() < end:
            continue
        stream = _inflating(start[0])
        try:
            inside = stream.decompress(whole[start.start() :], MOST)
        except (zlib.error, OSError, lzma.LZMAError):
            continue  # the two or three bytes meant something else
        if stream.eof or len(inside) >= _SMALLEST:
            found.append(inside)
        if stream.eof:
            end = len(content) - len(stream.unused_data)
    return _GAP.join(found) if found else None


def _archive(content: bytes) -> bytes | None:
    file = io.BytesIO(content)
    try:
        if content[:4] == b"PK\3\4" or b"PK\5\6" in content[-_ENDING:]:  # a program before it
            with zipfile.ZipFile(file) as archive:
                parts = [(one.filename, archive.read(one)) for one in archive.infolist()]
        elif content[257:262] == b"ustar":
            with tarfile.open(fileobj=file) as archived:
                parts = [
                    (one.name, member.read() if (member := archived.extractfile(one)) else b"")
                    for one in archived.getmembers()
                ]
        else:
            return None
    except (OSError, RuntimeError, ValueError, zipfile.BadZipFile, tarfile.TarError):
        return None  # not whole: its raw bytes are searched anyway
    return _GAP.join(part for name, inside in parts for part in (name.encode(), inside))


def _database(content: bytes) -> bytes | None:
    """Read a SQLite file table by table: a row may be spread over pages."""
    if content[:16] != b"SQLite format 3\0":
        return None
    rows: list[bytes] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy.db")
        copy.write_bytes(content)
        try:
            with closing(sqlite3.connect(f"file:{copy}?immutable=1", uri=True)) as opened:
                opened.text_factory = bytes
                tables = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                for (table,) in tables.fetchall():
                    quoted = table.decode().replace('"', '""')
                    for row in opened.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608
                        rows += (
                            cell if isinstance(cell, bytes) else repr(cell).encode() for cell in row
                        )
        except (sqlite3.Error, UnicodeDecodeError):
            return _GAP.join(rows) or None
    return _GAP.join(rows) or None


_DECODERS: Final[dict[str, Callable[[bytes], bytes | None]]] = {
    "gzip": _compressed,
    "archive": _archive,
    "SQLite": _database,
    "base64": _base64,
    "base32": _base32,
    "hex": _hexadecimal,
    "bytes as numbers": _ordinals,
    "percent": _percent,
    "HTML": _entities,
    "escapes": _escapes,
    "UTF-16": _wide,
}
