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
