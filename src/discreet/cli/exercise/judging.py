"""What an exercise is, and whether an answer to it is right."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, final

from discreet._exact import Number, exact
from discreet.cli.numbers import parse_exactly

Solution: TypeAlias = Callable[[], Number]
_CLOSE: Final = Fraction(1, 100)  # two digits are enough


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """A question with a number as its answer, which is computed and never written down.

    ``mistakes`` are other numbers that people arrive at, each with what went wrong.

    >>> one = Exercise(name="doubling", question="2 times 3?", hint="Add.", page="why.md",
    ...                solution=lambda: 6, mistakes=((lambda: 5, "That is 2 + 3."),))
    >>> one.judge(6), one.judge(5), one.judge(7)
    ('', 'That is 2 + 3.', 'Add.')
    """

    name: str
    question: str
    hint: str
    page: str  # of the course, on which it is explained
    solution: Solution
    mistakes: tuple[tuple[Solution, str], ...] = ()

    def judge(self, answer: Number) -> str:
        """Return nothing if the answer is right, and what to think about if it is not."""
        if _is_close(answer, self.solution()):
            return ""
        for mistake, remark in self.mistakes:
            if _is_close(answer, mistake()):
                return remark
        return self.hint

    def code(self) -> str:
        """Return a program that prints the answer: the lines that compute it here."""
        lines = inspect.getsource(self.solution).replace(" -> Number:", ":").strip()
        head = "from fractions import Fraction\n\n" if "Fraction(" in lines else ""
        return f"{head}{lines}\n\nprint({self.solution.__name__}())"


def _is_close(answer: Number, wanted: Number) -> bool:
    right = Fraction(wanted)
    return abs(Fraction(answer) - right) <= _CLOSE * abs(right)


def read_answer(text: str) -> Fraction:
    """Read a number as people write it, percents among them.

    >>> read_answer("1/3"), read_answer("45%"), read_answer(" 1,000 ")
    (Fraction(1, 3), Fraction(9, 20), Fraction(1000, 1))
    """
    bare = text.strip().replace(",", "").replace("_", "")
    share = bare.endswith("%")
    number = parse_exactly(bare.removesuffix("%").strip())
    hint = "Write a number such as 0.45, 45%, 9/20 or 1e-6."
    value = exact(number, name="answer", wanted="a number", hint=hint)
    return value / 100 if share else value
