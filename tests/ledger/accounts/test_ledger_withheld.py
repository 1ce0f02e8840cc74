"""What a user's own function says when it fails may show data: none of it leaves `answer`."""

from dataclasses import dataclass

import pytest
from ledger_requests import ASKED
from withheld_rows import FAILURES, ROW, Stop, raised, told

from discreet.accounting import PureLoss
from discreet.errors import DataError
from discreet.mechanisms import DiscreteLaplace

NOISY = DiscreteLaplace(sensitivity=1, scale=10)


@dataclass
class Talkative:
    """A mechanism of somebody else's, which fails with the value."""

    loss = PureLoss(epsilon=0.1)

    def release(self, value, *, source):
        raise ArithmeticError(f"cannot take {value}")

    def error(self, *, confidence):
        return 1


@pytest.mark.parametrize("failure", FAILURES)
def test_a_function_that_fails_tells_nothing(account, failure):
    with pytest.raises(DataError, match=r"withheld.*charge stands") as found:
        account.answer(NOISY, FAILURES[failure], **ASKED)
    assert ROW not in told(found.value)
    assert account.used == pytest.approx(0.1)


def test_all_failures_read_alike(account):
    texts = set()
    for compute in FAILURES.values():
        with pytest.raises(DataError) as found:
            account.answer(NOISY, compute, **ASKED)
        texts.add(str(found.value))
    assert len(texts) == 1


def test_a_mechanism_that_fails_tells_nothing(account):
    with pytest.raises(DataError, match="withheld") as found:
        account.answer(Talkative(), lambda: ROW, **ASKED)
    assert ROW not in told(found.value)


def test_our_own_mechanisms_say_what_is_wrong(account):
    with pytest.raises(DataError, match=r"integer.*The charge stands") as found:
        account.answer(NOISY, lambda: ROW, **ASKED)
    assert ROW not in told(found.value)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_whoever_stops_the_process_stops_it_without_a_word(account, kind):
    with pytest.raises(kind) as found:
        account.answer(NOISY, lambda: raised(kind(ROW)), **ASKED)
    assert ROW not in told(found.value)
    assert found.value.args in ((), (1,))


@pytest.mark.parametrize("failure", FAILURES)
def test_debugging_shows_the_error_itself(account, failure):
    with pytest.raises((Exception, Stop), match=f"{ROW}|^$") as found:
        account.answer(NOISY, FAILURES[failure], **ASKED, debug=True)
    assert ROW in f"{found.value!r}"
    assert account.used == pytest.approx(0.1)
