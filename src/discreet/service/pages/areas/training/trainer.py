"""A process that trains: plans come in as lines, and what happens goes out as lines of JSON.

The gateway never loads torch: it is large, and while it is loaded nobody would be answered.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from discreet._json import read_json
from discreet.service.pages.areas.training.plan import TrainingPlan

__all__ = ["main", "run"]

_FRAMES: Final = 120  # of a run, however many steps it has
_ASKED: Final = 20  # of them tell epsilon, which takes longer to work out than the steps
_PAUSE: Final = 0.035  # seconds between two, so that they can be followed
_SECONDS: Final = 45.0


def main() -> None:
    """Train what is asked for, one run after the other, until nobody is there any more."""
    os.nice(10)  # whoever pays for an answer goes first
    orders: SimpleQueue[str | None] = SimpleQueue()
    Thread(target=_read, args=(orders,), daemon=True).start()
    while (order := orders.get()) is not None:
        if order == "stop":  # it came when the run was over already
            continue
        told = read_json(order)
        plan, is_paced = TrainingPlan.of(told["plan"]), bool(told["is_paced"])
        try:
            # Whatever is said meanwhile means that this run is not wanted any more.
            for event in run(plan, is_paced=is_paced, is_over=lambda: not orders.empty()):
                _tell(event)
        except Exception as error:
            _tell({"kind": "failed", "why": f"{type(error).__name__}: {error}"})
        _tell({"kind": "end"})


def run(
    plan: TrainingPlan, *, is_paced: bool = False, is_over: Callable[[], bool] = lambda: False
) -> Iterator[dict[str, Any]]:
    """Train a logistic classifier twice, by plain SGD and by DP-SGD; yield how both are doing."""
    from discreet.service.pages.areas.training.lessons import Lesson

    lesson = Lesson(plan)
    private = lesson.private
    every = -(-plan.steps // _FRAMES)
    asked = max(1, -(-plan.steps // every) // _ASKED) * every

    def told(step: int, cost: float | None) -> dict[str, Any]:
        model = {**lesson.standing(lesson.model), "epsilon": cost}
        plain = lesson.standing(lesson.plain)
        return {"kind": "step", "step": step, "plain": plain, "private": model}

    begun = time.monotonic()
    yield told(0, 0.0)
    for step, batch in enumerate(private.batches(), start=1):
        lesson.step(batch)
        is_last = step == plan.steps
        if step % every and not is_last:
            continue
        yield told(step, private.spent.epsilon if is_last or step % asked == 0 else None)
        if not is_last and (is_over() or time.monotonic() - begun > _SECONDS):
            private.close()
            return
        if is_paced:
            time.sleep(max(0.0, begun + step / every * _PAUSE - time.monotonic()))
    yield {"kind": "finished", "epsilon": private.spent.epsilon, "told": str(private.spent)}


def _read(orders: "SimpleQueue[str | None]") -> None:
    for line in sys.stdin:
        orders.put(line.strip())
    orders.put(None)


def _tell(event: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(event, allow_nan=False)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
