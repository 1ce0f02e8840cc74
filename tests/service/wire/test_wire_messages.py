"""Messages as bytes, as the protocol's documentation has them."""

import asyncio
import struct

import pytest

from discreet.service.wire.protocol import replies
from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.protocol.inbox import Inbox
from discreet.service.wire.protocol.requests import (
    BindMessage,
    ExecuteMessage,
    ParseMessage,
    QueryMessage,
    TargetMessage,
    read_password,
    read_request,
    read_sasl_first,
)
from discreet.service.wire.protocol.startup import (
    CancelPacket,
    EncryptionPacket,
    StartupPacket,
    read_first_packet,
)

REQUESTS = [
    (b"Q", b"SELECT 1\0", QueryMessage("SELECT 1")),
    (b"P", b"s1\0SELECT $1\0\0\1\0\0\0\x17", ParseMessage("s1", "SELECT $1", (23,))),
    (b"P", b"\0BEGIN\0\0\0", ParseMessage("", "BEGIN", ())),
    (
        b"B",
        b"p\0s1\0\0\1\0\1\0\2\0\0\0\4\0\0\0\7\xff\xff\xff\xff\0\1\0\1",
        BindMessage("p", "s1", (1,), (b"\0\0\0\7", None), (1,)),
    ),
    (b"B", b"\0\0\0\0\0\0\0\0", BindMessage("", "", (), (), ())),
    (b"E", b"p\0\0\0\0\x64", ExecuteMessage("p", 100)),
    (b"D", b"Ss1\0", TargetMessage("D", "S", "s1")),
    (b"D", b"P\0", TargetMessage("D", "P", "")),
    (b"C", b"Pp\0", TargetMessage("C", "P", "p")),
]


@pytest.mark.parametrize(("kind", "body", "meant"), REQUESTS)
def test_requests_are_read(kind, body, meant):
    assert read_request(kind, body) == meant


@pytest.mark.parametrize(("kind", "body", "meant"), REQUESTS)
def test_requests_that_are_cut_or_too_long_break_the_protocol(kind, body, meant):
    for wrong in [*(body[:size] for size in range(len(body))), body + b"\0"]:
        with pytest.raises(WireFailure) as caught:
            read_request(kind, wrong)
        assert caught.value.code == "08P01"
        assert caught.value.is_fatal


def test_other_requests_are_not_known():
    for kind in (b"F", b"d", b"c", b"f", b"z", b"\0"):
        with pytest.raises(WireFailure, match="no such message"):
            read_request(kind, b"")
    with pytest.raises(WireFailure, match="only statements and portals"):
        read_request(b"D", b"X\0")


def test_texts_that_are_not_utf_8_are_an_error_of_the_statement_alone():
    with pytest.raises(WireFailure) as caught:
        read_request(b"Q", b"SELECT '\xff'\0")
    assert (caught.value.code, caught.value.is_fatal) == ("22021", False)


def test_passwords_and_first_answers_of_sasl_are_read():
    assert read_password(b"secret\0") == "secret"
    first = b"n,,n=,r=abc"
    body = b"SCRAM-SHA-256\0" + struct.pack("!I", len(first)) + first
    assert read_sasl_first(body) == ("SCRAM-SHA-256", first)


def test_first_packets_are_read():
    assert read_first_packet(struct.pack("!I", 80877103)) == EncryptionPacket("tls")
    assert read_first_packet(struct.pack("!I", 80877104)) == EncryptionPacket("gss")
    cancel = struct.pack("!II", 80877102, 42) + b"abcd"
    assert read_first_packet(cancel) == CancelPacket(42, b"abcd")
    begin = b"\0\3\0\2user\0ana\0_pq_.x\0on\0\0"
    packet = read_first_packet(begin)
    assert packet == StartupPacket(196610, {"user": "ana", "_pq_.x": "on"})
    assert packet.unknown_options == ["_pq_.x"]


@pytest.mark.parametrize(
    "body",
    [b"\0\2\0\0\0", b"\0\3\0\0user\0ana\0", b"\0\3\0\0user\0\0", b"\0\3\0\0\xff\0a\0\0",
     struct.pack("!II", 80877102, 42)],
)  # fmt: skip
def test_first_packets_that_are_none_end_the_connection(body):
    with pytest.raises(WireFailure) as caught:
        read_first_packet(body)
    assert caught.value.is_fatal


def test_replies_are_as_documented():
    assert replies.AUTHENTICATED == b"R\0\0\0\x08\0\0\0\0"
    assert replies.CLEARTEXT_WANTED == b"R\0\0\0\x08\0\0\0\3"
    wanted = replies.sasl_wanted(["SCRAM-SHA-256"])
    assert wanted == b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"
    assert replies.sasl_continued(b"r=x") == b"R\0\0\0\x0b\0\0\0\x0br=x"
    assert replies.sasl_final(b"v=x") == b"R\0\0\0\x0b\0\0\0\x0cv=x"
    assert replies.backend_key(1, b"abcd") == b"K\0\0\0\x0c\0\0\0\1abcd"
    assert replies.parameter_description([23]) == b"t\0\0\0\x0a\0\1\0\0\0\x17"
    assert replies.negotiate_version(["_pq_.x"]) == (b"v\0\0\0\x13\0\3\0\0\0\0\0\1_pq_.x\0")
    row = replies.row_description([("n", 701, 8, 1)])
    assert row == (
        b"T\0\0\0\x1a\0\1n\0\0\0\0\0\0\0\0\0\2\xbd\0\x08\xff\xff\xff\xff\0\1"
    )  # no table, no column, float8 of 8 bytes, no modifier, binary
    assert replies.EMPTY_QUERY == b"I\0\0\0\4"
    assert replies.notice_response({"M": "a\0b"}) == b"N\0\0\0\x09Mab\0\0"


def inbox(*chunks):
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return Inbox(reader)


def test_an_inbox_takes_messages_whole():
    async def taken():
        one = inbox(b"Q\0\0\0\x06", b"a\0X\0\0", b"\0\4S\0")
        limits = {"largest": 100, "idle": 1, "within": 1}
        return [await one.message(**limits) for _ in range(3)], one.is_empty

    assert asyncio.run(taken()) == ([(b"Q", b"a\0"), (b"X", b""), None], False)


@pytest.mark.parametrize("head", [b"Q\0\0\0\3", b"Q\0\0\1\0", b"Q\xff\xff\xff\xff"])
def test_an_inbox_takes_no_message_of_an_impossible_size(head):
    async def taken():
        return await inbox(head).message(largest=100, idle=1, within=1)

    with pytest.raises(WireFailure, match="at most 100 bytes"):
        asyncio.run(taken())
