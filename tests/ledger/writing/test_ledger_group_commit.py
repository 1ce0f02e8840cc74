"""Threads that share a commit, and batches of which one request is bad."""

import dis
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from ledger_requests import LONG, charge_of, encoded, make_account, wait_until

from discreet.errors import (
    LedgerUnavailable,
)
from discreet.ledger.writing import group_commit, scribe
from discreet.ledger.writing.group_commit import GroupCommit
from discreet.ledger.writing.request import new_key
from discreet.privacy import Unit


class Interruption:
    """Raise KeyboardInterrupt in a thread where Python looks for signals, the n-th time it does.

    That is behind calls, at the beginning of functions and at the end of loops; nowhere else, so
    nothing comes between the end of a ``with`` block and the unlocking.
    """

    def __init__(self, nth):
        self._left = nth
        self._last = {}

    @property
    def has_struck(self):
        return self._left <= 0

    def __call__(self, frame, event, arg):
        if frame.f_code.co_filename != group_commit.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            last, self._last[frame] = self._last.get(frame, ""), self._opcode(frame)
            if last.startswith(("CALL", "RESUME", "JUMP_BACKWARD")):
                self._left -= 1
                if self._left == 0:
                    raise KeyboardInterrupt
        return self

    def _opcode(self, frame):
        return dis.opname[frame.f_code.co_code[frame.f_lasti]]

    def around(self, call, *arguments):
        sys.settrace(self)
        with suppress(KeyboardInterrupt):
            try:
                call(*arguments)
            finally:
                sys.settrace(None)


class TestThreadsThatShareACommit:
    def interrupted(self, nth, *, among_others: bool) -> bool:
        """Interrupt one thread; say whether it came so far, once all others were answered."""
        has_entered, may_go_on = threading.Event(), threading.Event()

        def carry_out(batch):
            if b"zero" in batch and not has_entered.is_set():
                has_entered.set()
                assert may_go_on.wait(LONG)
            return [request.upper() for request in batch]

        together, answers = GroupCommit(carry_out), {}

        def ask(request):
            answers[request] = together.submit(request)

        others = [
            threading.Thread(target=ask, args=(each,), daemon=True)
            for each in (b"zero", b"b", b"c", b"d")
        ]
        interruption = Interruption(nth)
        one = threading.Thread(
            target=interruption.around, args=(together.submit, b"one"), daemon=True
        )
        if among_others:
            others[0].start()  # leads, while the one and then the others queue
            assert has_entered.wait(LONG)
            one.start()
            wait_until(lambda: together._waiting or not one.is_alive())
        else:
            may_go_on.set()
            one.start()
            one.join(LONG)
        for thread in others[among_others:]:
            thread.start()
        if among_others:
            wait_until(lambda: len(together._waiting) >= 3)
            may_go_on.set()
        for thread in (one, *others):
            thread.join(LONG)
            assert not thread.is_alive(), f"nobody leads after interruption {nth}"
        assert answers == {b"zero": b"ZERO", b"b": b"B", b"c": b"C", b"d": b"D"}
        assert together.submit(b"later") == b"LATER"
        return interruption.has_struck

    @pytest.mark.lengthy
    @pytest.mark.parametrize("among_others", [False, True])
    def test_an_interruption_anywhere_leaves_the_others_served(self, monkeypatch, among_others):
        if hasattr(group_commit, "_NAP"):
            monkeypatch.setattr(group_commit, "_NAP", 0.01)
        before = sys.gettrace()
        try:
            struck = [self.interrupted(n, among_others=among_others) for n in range(1, 60)]
        finally:
            sys.settrace(before)
        assert sum(struck) >= 6

    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that signal")
    def test_a_real_ctrl_c_leaves_the_others_served(self):
        together = GroupCommit(lambda batch: [request.upper() for request in batch])
        is_armed, struck = [], 0

        def strike(number, frame):
            if is_armed:
                is_armed.clear()
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, strike)
        try:
            with ThreadPoolExecutor(1) as pool:
                for _ in range(400):
                    is_done = False
                    try:
                        is_armed.append(1)
                        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 3e-5))
                        assert together.submit(b"mine") == b"MINE"
                        is_done = True
                        while is_armed:
                            time.sleep(0)
                    except KeyboardInterrupt:
                        struck += not is_done
                    assert pool.submit(together.submit, b"theirs").result(LONG) == b"THEIRS"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert struck > 0

    def test_a_batch_that_fails_fails_for_all_in_it_and_no_longer(self):
        def carry_out(batch):
            if b"bad" in batch:
                raise LedgerUnavailable("the disk is full")
            return list(batch)

        together = GroupCommit(carry_out)
        with pytest.raises(LedgerUnavailable):
            together.submit(b"bad")
        assert together.submit(b"good") == b"good"


CLOCK = {"kind": "clock", "who": "chris", "reason": "x"}


NONSENSE = {
    "nothing": b"",
    "no JSON": b"no json",
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "nothing in it": b"{}",
    "a number": b"3",
    "a number for an entry": encoded(entry=3),
    "an empty entry": encoded(entry={}),
    "an entry without a key": encoded(entry=CLOCK),
    "an entry with null as key": encoded(entry={**CLOCK, "key": None}),
    "an entry with a table as key": encoded(entry={**CLOCK, "key": {}}),
    "an answer to no release": encoded(entry={**CLOCK, "key": "k"}, answer="NDI="),
    "an answer that is a number": encoded(entry={**CLOCK, "key": "k"}, answer=3),
}


class TestOneBatchOfMany:
    def carried_out(self, ledger, *proposals):
        key = ledger._session._sealing
        batch = [p if isinstance(p, bytes) else key.seal(encoded(entry=p)) for p in proposals]
        answers = zip(batch, ledger._session._carry_out(batch), strict=True)
        return [key.unsealed(answer, to=asked)[:1] for asked, answer in answers]

    def test_one_that_is_refused_harms_nobody(self, ledger, account):
        yearly = make_account(ledger, "y", unit=Unit.column("u").per("year"), policy="wait")
        bad = [
            charge_of("y", 2, periods=["9999"]),
            charge_of("nobody"),
            charge_of(epsilon=100),
            charge_of(who=None),
            charge_of(loss={"kind": "pure", "version": 1, "epsilon": "x"}),
            b"",
            b"junk",
            encoded(entry=charge_of()),
        ]
        batch = [request for each in bad for request in (each, charge_of(epsilon=0.1))]
        assert self.carried_out(ledger, *batch) == [b"!", b"+"] * len(bad)
        assert account.used == pytest.approx(0.8)
        assert yearly.used == 0
        ledger.verify()

    def test_one_that_breaks_a_rule_itself_harms_nobody(self, ledger, account, monkeypatch):
        def broken(entry, view, cost):
            return 1 // 0

        monkeypatch.setattr(scribe, "RULES", {**scribe.RULES, "clock": broken})
        clock = {"kind": "clock", "who": "chris", "reason": "x", "key": new_key()}
        assert self.carried_out(ledger, charge_of(), clock, charge_of()) == [b"+", b"!", b"+"]
        assert ledger.verify().size == 4

    def test_an_answer_is_no_request(self, ledger, account):
        """Both are sealed; who has seen one of them must not have got the other."""
        key = ledger._session._sealing
        asked = key.seal(encoded(entry=charge_of()))
        (answer,) = ledger._session._carry_out([asked])
        forged = answer[:32] + asked[:32] + answer[32:]
        assert key.unsealed(forged) is None
        assert self.carried_out(ledger, charge_of(), forged) == [b"+", b"!"]

    @pytest.mark.parametrize("name", NONSENSE)
    def test_one_from_another_program_harms_nobody(self, ledger, account, name):
        """It has the key, and makes no sense all the same."""
        batch = [charge_of(), ledger._session._sealing.seal(NONSENSE[name]), charge_of()]
        assert self.carried_out(ledger, *batch) == [b"+", b"!", b"+"]
        assert ledger.verify().size == 4
