"""Warnings are logged by their kind and place: their words may be an error's."""

import logging

from discreet.service.running import logs


def test_the_words_of_a_warning_are_not_logged(caplog):
    with caplog.at_level(logging.WARNING):
        logs._told_of_warning("4711 in /srv/budget.db", RuntimeWarning, "/x/site-packages/a.py", 7)
    assert "RuntimeWarning" in caplog.text
    assert "4711" not in caplog.text
    assert "a.py:7" in caplog.text
