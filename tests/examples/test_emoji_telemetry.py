"""Emoji telemetry keeps to its budget, and sees what it says can be seen."""

import numpy as np
import pytest

from discreet import local


@pytest.fixture(scope="module")
def emoji(example):
    return example("emoji_telemetry")


@pytest.mark.lengthy
def test_a_small_week_is_told(emoji, monkeypatch, capsys):
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    monkeypatch.setattr(emoji, "DEVICES", 20_000)
    emoji.main()
    told = capsys.readouterr().out
    assert "answers: 1 1 1 1 1 1 1 0 0 0\n" in told
    assert "emoji 1 " in told
    assert max(map(len, told.splitlines())) <= 80


@pytest.mark.lengthy
@pytest.mark.needs("real data")
def test_counts_of_tweets_are_read(emoji):
    assert len(emoji.true_counts()) > 700


def test_the_smallest_share_is_seen_and_half_of_it_is_not(emoji):
    collect = local.PublicHashing(domain=50, epsilon=1)
    n, runs = 20_000, 40
    share = emoji.smallest_share(collect, n=n, names=50)

    def seen(holders):
        found = 0
        for _ in range(runs):
            estimate = collect.estimate(collect.release(np.arange(n) < holders))
            found += estimate.interval(confidence=0.95)[0][1] > 0
        return found

    # Seen with a chance of 0.95 each time, it is seen less than 26 times in 40 with one of 1e-9.
    assert seen(int(np.ceil(share * n))) >= 26
    # Half of it is below what counts as seen, so its estimate is so, too, in every second run:
    # 37 of 40 of the others have a chance of 1e-8.
    assert seen(int(share * n / 2)) < 37
