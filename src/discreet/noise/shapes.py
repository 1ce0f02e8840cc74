"""The ``size`` argument every sampler takes: None for one value, a number or tuple for an array."""

from discreet._exact import whole

__all__ = ["Size", "shape_of"]

Size = int | tuple[int, ...]


def shape_of(size: Size) -> tuple[int, ...]:
    """Return the array shape that ``size`` asks for.

    >>> shape_of(3), shape_of((2, 0))
    ((3,), (2, 0))
    """
    lengths = size if isinstance(size, tuple | list) else (size,)
    return tuple(whole(length, name="size", minimum=0) for length in lengths)
