"""Trackers against sizes, rounding and blur."""

import pytest

from discreet.attacks import differencing as d
from discreet.datasets import salaries
from discreet.errors import DataError, ParameterError

PAYROLL = salaries(200)
PAY = PAYROLL["salary"].tolist()
FACTS = {
    "table": "payroll", "key": "employee_id", "keys": (0, 199), "secret": "salary",
    "bounds": (0, 300_000),
}  # fmt: skip
TARGETS = {at: PAY[at] for at in range(0, 200, 40)}


def total(**protections):
    desk = d.Guarded(PAYROLL, name="payroll", **protections)
    return d.grouped(desk, "SUM(salary)", table="payroll")


TARGET = "employee_id = 7"
HALF, THIRD = "employee_id % 2 = 0", "employee_id < 100 AND employee_id % 3 = 0"


def test_each_tracker_gets_around_what_stops_the_one_before():
    small = total(minimum=2)
    assert d.direct(small, TARGET) is None
    assert d.difference(small, TARGET) == PAY[7]
    both = total(minimum=40, is_two_sided=True)
    assert d.difference(both, TARGET) is None
    assert d.individual_tracker(both, TARGET, cover=HALF) == PAY[7]
    assert d.general_tracker(both, TARGET, tracker=HALF) == PAY[7]


@pytest.mark.parametrize("at", [6, 7, 12])  # in both groups, in none, in one
def test_double_trackers_work_where_no_general_one_does(at):
    """With a minimum of a third no group is twice as large and leaves as much."""
    group = total(minimum=60, is_two_sided=True)
    inner, outer = "employee_id < 70", "employee_id < 130"
    found = d.double_tracker(group, f"employee_id = {at}", inner=inner, outer=outer)
    assert found == PAY[at]


@pytest.mark.parametrize(
    ("protections", "how"),
    [
        ({}, "direct questions"),
        ({"minimum": 10}, "differences"),
        ({"minimum": 30, "is_two_sided": True}, "individual trackers"),
        ({"minimum": 20, "rounding": 10}, "crowds at the edge of rounding"),
    ],
)
def test_salaries_come_out_exactly(protections, how):
    desk = d.Guarded(PAYROLL, name="payroll", **protections)
    report = d.run(desk, TARGETS, **FACTS)
    assert (report.success, list(report.details["by"])) == (1, [how])


@pytest.mark.lengthy
@pytest.mark.parametrize("sticky", [True, False])
def test_blur_is_averaged_away(sticky):
    """Standard error 50 * sqrt(2 / 400) = 3.5: off by 100 is 28 of them, below 1e-6."""
    desk = d.Guarded(PAYROLL, name="payroll", minimum=10, blur=50, sticky=sticky)
    report = d.run(desk, {7: PAY[7], 50: PAY[50]}, tolerance=100, times=400, **FACTS)
    assert report.success == 1
    once = d.run(desk, {7: PAY[7], 50: PAY[50]}, tolerance=1, times=2, **FACTS)
    assert once.success < 1  # seeded


def test_an_interface_that_refuses_all_is_told_so():
    report = d.run(lambda _: None, TARGETS, **FACTS)
    assert (report.success, report.details["refused"]) == (0, 5)


def test_nonsense_is_refused_without_a_value():
    with pytest.raises(DataError, match="cannot read"):
        total()("no_such_column = 3")
    with pytest.raises(ParameterError, match="targets"):
        d.run(total(), {}, **FACTS)


@pytest.mark.parametrize("said", [float("nan"), float("inf"), None])
def test_no_number_is_a_refusal(said):
    assert d.run(lambda _: said, TARGETS, **FACTS).details["refused"] == 5


@pytest.mark.parametrize("said", ["918273", [1], (2, 3)])
def test_what_is_no_answer_at_all_is_told_so_without_it(said):
    with pytest.raises(DataError, match="with a number") as error:
        d.run(lambda _: said, TARGETS, **FACTS)
    assert "918273" not in str(error.value)
    with pytest.raises(DataError, match="must return a number"):
        d.distinguish(lambda _: None, threshold=0.5, trials=3)


def test_a_guess_between_two_secrets_is_right_for_both():
    desk = d.Guarded(PAYROLL, name="payroll")
    targets = {at: PAY[at] for at in range(6)}
    low, high = min(targets.values()), max(targets.values())
    report = d.run(desk, targets, tolerance=(high - low) / 2, **FACTS)
    assert report.baseline == 1
    apart = d.run(desk, targets, tolerance=(high - low) / 2 - 1, **FACTS)
    assert apart.baseline < 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": (1, 0)}, {"keys": (199, 0)}, {"keys": ("a", "b")}, {"tolerance": -1},
        {"tolerance": float("nan")}, {"baseline": 2}, {"confidence": 1},
    ],
)  # fmt: skip
def test_nonsense_is_refused_before_anything_is_asked(wrong):
    def ask(_):
        raise AssertionError

    with pytest.raises(ParameterError, match=next(iter(wrong))):
        d.run(ask, TARGETS, **FACTS | wrong)
