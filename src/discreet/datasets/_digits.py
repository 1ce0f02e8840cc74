"""Small pictures of digits, for models that learn to read them."""

from typing import Final

import numpy as np

from discreet._exact import whole
from discreet.datasets._dice import Dice, Integers, Table

SIDE: Final = 16
_ROWS, _COLUMNS, _SCALE = 7, 5, 2
# Each row of a glyph is five bits, the left one first.
_GLYPHS: Final = (
    (0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110),
    (0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110),
    (0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111),
    (0b11110, 0b00001, 0b00001, 0b01110, 0b00001, 0b00001, 0b11110),
    (0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010),
    (0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110),
    (0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110),
    (0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000),
    (0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110),
    (0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100),
)
_FADED: Final = 12  # percent of a digit's pixels that got no ink
_BLUR: Final = 45  # standard deviation of the paper's grain


def digits(n: int = 1_000, *, seed: int = 0) -> Table:
    """Generate n pictures of digits, 16 by 16; the same ones for the same arguments.

    Columns: ``image`` (bytes from 0, white, to 255, black: an array of shape (n, 16, 16)) and
    ``label`` (0 to 9). Every digit is somewhere else on the paper, more or less slanted, written
    with more or less ink, with gaps in it, and the paper has grain.

    >>> table = digits(100)
    >>> table["image"].shape, str(table["image"].dtype), sorted(set(table["label"].tolist()))[-1]
    ((100, 16, 16), 'uint8', 9)
    """
    n = whole(n, name="n", hint="It is the number of pictures to generate.")
    dice = Dice(seed=seed)
    label = dice.below(10, size=n)
    ink = dice.between(110, 240, size=n)[:, None, None]
    shape = (n, SIDE, SIDE)
    drawn = _placed(dice, label) * ~dice.chance(_FADED, size=n * SIDE * SIDE).reshape(shape)
    grain = dice.bell(size=n * SIDE * SIDE).reshape(shape) * _BLUR // 1000
    return {
        "image": np.clip(drawn * ink + grain, 0, 255).astype(np.uint8),
        "label": label,
    }


def _placed(dice: Dice, label: Integers) -> Integers:
    """Return where there is a stroke: 0 or 1 for each pixel."""
    n = len(label)
    across, down = dice.below(SIDE - _COLUMNS * _SCALE + 1, size=n), dice.below(3, size=n)
    slant = dice.between(-2, 2, size=n)  # pixels that the foot is left of the head
    y, x = np.arange(SIDE), np.arange(SIDE)
    row = (y[None, :, None] - down[:, None, None]) // _SCALE
    lean = slant[:, None, None] * (row - _ROWS // 2) // _ROWS
    column = (x[None, None, :] - across[:, None, None] + lean) // _SCALE
    is_inside = (row >= 0) & (row < _ROWS) & (column >= 0) & (column < _COLUMNS)
    rows, columns = np.clip(row, 0, _ROWS - 1), np.clip(column, 0, _COLUMNS - 1)
    bits = np.array(_GLYPHS, dtype=np.int64)[label[:, None, None], rows]
    return np.asarray((bits >> (_COLUMNS - 1 - columns) & 1) * is_inside, dtype=np.int64)
