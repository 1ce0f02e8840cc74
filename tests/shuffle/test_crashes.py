"""Killed at any statement, both halves go on as if nothing had been: nothing is lost or doubled."""

import pytest
from shuffle_crashes import KILLED, check, live, prepare, warm_processes


def killed_at(folder, fatal: int) -> bool:
    """Live until a statement, look, live on to the end, look again; False if it never came."""
    folder.mkdir()
    prepare(folder)
    processes = warm_processes()
    codes = []
    for when in (fatal, 0):
        one = processes.Process(target=live, args=(folder, when))
        one.start()
        one.join()
        codes.append(one.exitcode)
        check(folder, is_done=one.exitcode == 0)
    assert codes[1] == 0
    assert codes[0] in (0, KILLED)
    return codes[0] == KILLED


@pytest.mark.lengthy
@pytest.mark.parametrize("fatal", [10, 56, 63, 69, 72, 78, 80])
def test_a_kill_loses_nothing_and_repeats_nothing(tmp_path, fatal):
    assert killed_at(tmp_path / "rooms", fatal)


@pytest.mark.slow
def test_a_kill_at_each_statement_loses_nothing_and_repeats_nothing(tmp_path):
    fatal = 1
    while killed_at(tmp_path / str(fatal), fatal):
        fatal += 1
    assert fatal > 100  # so many statements there are
