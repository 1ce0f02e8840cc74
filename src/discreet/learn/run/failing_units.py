"""Go on where a unit fails: what can be computed is, and who fails alone adds nothing."""

from collections.abc import Callable

from discreet.errors import ParameterError

__all__ = ["add_each", "attempt"]

_LEAVING = (KeyboardInterrupt, SystemExit, GeneratorExit)  # somebody wants to stop
_Undo = Callable[[], None]


def attempt(function: Callable[[], None]) -> bool:
    """Say whether a function went through. What this library itself refuses is no failure.

    >>> attempt(lambda: None), attempt(lambda: 1 / 0)
    (True, False)
    """
    try:
        function()
    except _LEAVING:
        raise
    except BaseException as error:
        if _is_refusal(error):
            raise
        return False
    return True


def _is_refusal(error: BaseException) -> bool:
    """Say whether it is this library that does not accept a model or a loss."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__"))
    return isinstance(error, ParameterError) and where.startswith("discreet.")


def add_each(
    add: Callable[[int, int], None],
    start: int,
    stop: int,
    *,
    save: Callable[[], _Undo],
    give_up: Callable[[], None],
) -> None:
    """Add the units from ``start`` to ``stop``, by halves where that fails.

    ``add`` adds a range of units, ``save`` returns what undoes a part of it, ``give_up`` is called
    for a unit that fails alone.

    >>> added = []
    >>> def add(start, stop):
    ...     if 2 in range(start, stop):
    ...         raise ValueError
    ...     added.append((start, stop))
    >>> add_each(add, 0, 6, save=lambda: lambda: None, give_up=lambda: added.append("nobody"))
    >>> added
    [(0, 1), (1, 2), 'nobody', (3, 6)]
    """
    undo = save()
    if attempt(lambda: add(start, stop)):
        return
    undo()
    if stop - start == 1:
        give_up()
        return
    middle = (start + stop) // 2
    add_each(add, start, middle, save=save, give_up=give_up)
    add_each(add, middle, stop, save=save, give_up=give_up)
