"""How much of the machine the questions may use: public limits, declared like all others."""

import re
from dataclasses import dataclass
from typing import Final, final

from discreet._exact import Number, positive
from discreet.errors import ParameterError

__all__ = ["Resources"]

_SIZE: Final = re.compile(r"(?=.*[1-9])\d{1,15}(\.\d{1,6})? ?[KMGT]i?B", re.IGNORECASE | re.ASCII)
_LONGEST: Final = 10**9  # seconds, some 30 years


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Limit the ``memory`` and ``disk`` of all questions together and the ``seconds`` of each one.

    Sizes are texts such as ``"4GB"``; None leaves them to the engine, which has limits of its own.
    ``disk`` is for what does not fit into memory while a question runs. A question that takes
    longer than ``seconds`` on the machine's clock is stopped; None lets it run.

    Reaching a limit is something that whoever asks can see, so limits are public, and the charge
    stays. It depends on the data, but on no single person much: a person adds what reading their
    rows takes, and in a join at most ``joined_rows`` rows. Set limits well above what questions
    need, so that nobody in particular decides whether they are reached.

    >>> Resources(memory="4GB", seconds=60)
    Resources(memory='4GB', disk=None, seconds=60)
    >>> Resources(disk="much")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: disk must be a size such as "4GB", got 'much'.
    """

    memory: str | None = None
    disk: str | None = None
    seconds: Number | None = 3600

    def __post_init__(self) -> None:
        for name in ("memory", "disk"):
            size = getattr(self, name)
            if size is not None and not (isinstance(size, str) and _SIZE.fullmatch(size)):
                raise ParameterError(
                    f'{name} must be a size such as "4GB", got {size!r}.', parameter=name
                )
        if self.seconds is not None and positive(self.seconds, name="seconds") > _LONGEST:
            raise ParameterError(
                f"seconds must be at most {_LONGEST:,}; None is no limit.", parameter="seconds"
            )
