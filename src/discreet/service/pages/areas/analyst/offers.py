"""What an analyst fills in: a question, how it is paid, and what somebody believes beforehand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final
from urllib.parse import urlencode

from discreet.errors import ParameterError
from discreet.service.pages.areas.analyst.meaning import read_prior
from discreet.service.pages.page import PageCall
from discreet.service.web.bodies import QuestionBody

__all__ = ["CONFIDENCES", "PAYMENTS", "Asked", "read_asked"]

PAYMENTS: Final = {
    "share": "budget share",
    "epsilon": "epsilon",
    "within": "error up to",
}
CONFIDENCES: Final = (0.9, 0.95, 0.99)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The fields of the page, with what stands there at first."""

    question: str
    pay: str
    amount: str
    confidence: float
    size: str
    purpose: str
    prior: float

    def body(self, *, degrade: bool = False) -> QuestionBody:
        """Return the question as /v1 takes it, or raise what is wrong with it."""
        told: dict[str, Any] = {
            "question": self.question,
            self.pay: _payment(self.pay, self.amount),
            "confidence": self.confidence,
            "degrade": degrade,
        }
        if self.purpose:
            told["purpose"] = self.purpose
        if self.size:
            told["size"] = _whole(self.size)
        return QuestionBody.model_validate(told)

    def fields(self) -> Mapping[str, Any]:
        """Return them as the page shows them."""
        return {
            "question": self.question,
            "pay": self.pay,
            "amount": self.amount,
            "confidence": self.confidence,
            "size": self.size,
            "purpose": self.purpose,
            "prior": f"{100 * self.prior:g}",
        }

    def address(self, dataset: str, **more: str) -> str:
        """Return the address of the page that shows them."""
        return f"/datasets/{dataset}?{urlencode({**self.fields(), **more})}"


def read_asked(call: PageCall) -> Asked:
    """Read the fields from the query, or from the form that was sent."""
    given = {**call.query, **call.form}
    pay = given.get("pay", "share")
    if pay not in PAYMENTS:
        raise ParameterError(f"pay must be among {', '.join(PAYMENTS)}.", parameter="pay")
    return Asked(
        question=given.get("question", "").strip(),
        pay=pay,
        amount=given.get("amount", "5%").strip(),
        confidence=call.number("confidence", 0.95, least=0.01, most=0.9999),
        size=given.get("size", "").strip(),
        purpose=given.get("purpose", "").strip(),
        prior=read_prior(call),
    )


def _payment(pay: str, text: str) -> float | str:
    """Return a number, or a share as the library reads it; what is neither is refused there."""
    try:
        return float(text)
    except ValueError:
        if text.endswith("%") and pay != "epsilon":
            return text
    known = "0.5" if pay == "epsilon" else "0.05 or 5%"
    raise ParameterError(f"the amount must be a number such as {known}.", parameter="amount")


def _whole(text: str) -> int:
    digits = text.replace(",", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        raise ParameterError("the rows of a group must be a whole number.", parameter="size")
    return int(digits)
