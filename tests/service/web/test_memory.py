"""What is remembered has a bound, whatever requests are like."""

from discreet.service.web import memory


def test_long_requests_count(monkeypatch):
    monkeypatch.setattr(memory, "_MOST_BYTES", 10_000)
    kept = memory.AnswerMemory()
    kept.saw("people", "v1")
    keys = [("ana", "people", b"%d" % number + 1000 * b" ") for number in range(50)]
    for key in keys:
        kept.put(key, "v1", b"42")
        kept.put(key, "v1", b"42")
    assert sum(kept.get(key) is not None for key in keys) == 9
