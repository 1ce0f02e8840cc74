"""What requests say and answers hold, checked strictly: unknown members are refused."""

from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from discreet.privacy import Guarantee
from discreet.tables import Groups, Norm, Offer, Totals

__all__ = [
    "ActBody",
    "AnswerBody",
    "BudgetsBody",
    "CheckpointBody",
    "ConsistencyBody",
    "DatasetBody",
    "DatasetsBody",
    "EntriesBody",
    "GrantBody",
    "JobBody",
    "KeyBody",
    "KeyMadeBody",
    "KeysBody",
    "LimitBody",
    "LoginBody",
    "NewKeyBody",
    "PlanBody",
    "PlannedBody",
    "PolicyBody",
    "ProblemBody",
    "QuestionBody",
    "QuoteBody",
    "ReasonBody",
    "ReceiptBody",
    "RegistrationBody",
    "StatusBody",
]

_FRACTION: Final = r"^[0-9]{1,15}/[1-9][0-9]{0,14}$"
_SHARE: Final = r"^[0-9]{1,6}(\.[0-9]{1,12})? ?%$"

Exact = Annotated[str, Field(pattern=_FRACTION, examples=["1/3"])]
Share = Annotated[str, Field(pattern=_SHARE, examples=["5%"])]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AtLeast0 = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=128)]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Sql = Annotated[str, Field(min_length=1, max_length=50_000)]


class _Said(BaseModel):
    """A body of a request: strict, and without members that nobody knows."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Told(BaseModel):
    """A body of an answer."""

    model_config = ConfigDict(extra="forbid")


class NormBody(_Said):
    """Bound the norm of what a unit contributes."""

    kind: Literal["norm"]
    limit: Above0
    order: Literal[1, 2]

    def bounding(self) -> Norm:
        """Return it as the library has it."""
        return Norm(limit=self.limit, order=self.order)


class GroupsBody(_Said):
    """Keep so many groups of a unit, and so many rows of it in each."""

    kind: Literal["groups"]
    groups: Annotated[int, Field(ge=1, le=10**9)]
    rows: Annotated[int, Field(ge=1, le=10**9)]

    def bounding(self) -> Groups:
        """Return it as the library has it."""
        return Groups(groups=self.groups, rows=self.rows)


class TotalsBody(_Said):
    """Bound a unit's whole sums."""

    kind: Literal["totals"]
    limit: Above0
    order: Literal[1, 2]

    def bounding(self) -> Totals:
        """Return it as the library has it."""
        return Totals(limit=self.limit, order=self.order)


class PaymentBody(_Said):
    """How a question is paid: exactly one of ``epsilon``, ``share`` and ``within``."""

    epsilon: Above0 | Exact | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] | Exact | None = None
    share: Annotated[float, Field(gt=0, le=1)] | Share | Exact | None = None
    within: Above0 | Share | Exact | None = None
    of: Above0 | Exact | None = None
    confidence: Annotated[float, Field(gt=0, lt=1)] | Exact | None = None
    size: Annotated[int, Field(ge=1, le=10**15)] | None = None
    periods: list[Name] | None = None
    bounding: Annotated[NormBody | GroupsBody | TotalsBody | None, Field(discriminator="kind")] = (
        None
    )
    purpose: Name | None = None

    def offer(self, *, key: str | None = None) -> Offer:
        """Return the offer, without a name: that is the login's."""
        said: dict[str, Any] = {
            name: getattr(self, name) for name in ("size", "periods", "purpose")
        }
        said |= {
            name: _exactly(getattr(self, name))
            for name in ("epsilon", "delta", "share", "within", "of")
        }
        if self.confidence is not None:
            said["confidence"] = _exactly(self.confidence)
        if self.bounding is not None:
            said["bounding"] = self.bounding.bounding()
        return Offer(**said, key=key)


def _exactly(value: Any) -> Any:
    """Return a fraction that came as a text; shares in percent stay as they are."""
    return Fraction(value) if isinstance(value, str) and "/" in value else value


class QuestionBody(PaymentBody):
    """A question in SQL, and how it is paid."""

    question: Sql
    degrade: bool = False

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"question": "SELECT COUNT(*) AS n FROM people", "epsilon": 0.5},
                {"question": "SELECT AVG(income) AS pay FROM people", "share": "5%"},
            ]
        }
    )


class PlanBody(PaymentBody):
    """Questions that are priced together; ``release`` pays for them and answers."""

    questions: Annotated[list[Sql], Field(min_length=1, max_length=200)]
    weights: Annotated[list[Above0], Field(max_length=200)] | None = None
    release: bool = False

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "questions": [
                        "SELECT COUNT(*) AS n FROM people",
                        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
                    ],
                    "epsilon": 1,
                }
            ]
        }
    )


class GuaranteeBody(_Said):
    """An (epsilon, delta) promise."""

    epsilon: AtLeast0 | Exact
    delta: Annotated[float, Field(ge=0, le=1)] | Exact = 0.0

    def guarantee(self) -> Guarantee:
        """Return it as the library has it."""
        return Guarantee(epsilon=_exactly(self.epsilon), delta=_exactly(self.delta))


class GrantBody(GuaranteeBody):
    """A wider total, or limit that ``line`` names, with the reason."""

    reason: Text
    line: Name = "total"


class LimitBody(GuaranteeBody):
    """A limit of an analyst, a purpose or a period; ``*`` stands for each."""

    analyst: Name | None = None
    purpose: Name | None = None
    every: Literal["day", "week", "month", "year"] | None = None


class PolicyBody(_Said):
    """What happens at exhaustion from now on, and why."""

    policy: Literal["deny", "degrade", "wait"]
    reason: Text


class ReasonBody(_Said):
    """Why a custodian does something."""

    reason: Text


class RegistrationBody(_Said):
    """A declaration in TOML, whose sources lie in the gateway's data folder."""

    declaration: Annotated[str, Field(min_length=1, max_length=50_000)]


class NewKeyBody(_Said):
    """An API key to be made: for whom, with which roles, for which datasets, for how long."""

    who: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^:\s][^:]*$")]
    roles: Annotated[list[Literal["analyst", "custodian", "auditor"]], Field(min_length=1)]
    datasets: list[Name] | None = None
    days: Annotated[float, Field(gt=0, le=3660)] | None = None


class ProblemBody(BaseModel):
    """A problem, as RFC 9457 has it; kinds have further members."""

    type: str
    title: str
    status: int
    detail: str


class StatusBody(_Told):
    """Whether the gateway is there."""

    status: str


class LoginBody(_Told):
    """Who the gateway takes the caller for."""

    who: str
    roles: list[str]
    datasets: list[str]


class DatasetsBody(_Told):
    """The datasets that a login may see."""

    datasets: list[str]


class DatasetBody(_Told):
    """What is public about a dataset."""

    name: str
    unit: str
    neighbours: str
    guarantee: dict[str, Any]
    policy: str
    remaining: float
    answer_after: float
    size: int | None
    rows: int | None
    groups: int | None
    tables: list[dict[str, Any]]


class QuoteBody(_Told):
    """What a question costs and how far off its answer would be; nothing was charged."""

    text: str
    question: str
    epsilon: float
    delta: float
    fits: bool
    fits_up_to: float | None
    share: float | None
    more: float | None
    remaining: float
    budgets: list[dict[str, Any]]
    account: str
    offer: dict[str, Any] | None
    confidence: float
    noise: str
    expected: list[dict[str, Any]]
    success: float
    notes: list[str]
    loss: str


class AnswerBody(_Told):
    """An answer: rows with their error bars, what it cost, and what the ledger committed to.

    ``document`` is the text whose digest is in the ledger, and ``receipt`` the entries.
    """

    columns: list[str]
    keys: list[str]
    rows: list[dict[str, Any]]
    question: str
    epsilon: float
    delta: float
    confidence: float
    share: float | None
    left: float | None
    more: float | None
    is_recalled: bool
    notes: list[str]
    entry: int
    receipt: list[str]
    document: str


class PlannedBody(_Told):
    """What a workload would cost as a whole; ``answers`` where it was released."""

    text: str
    epsilon: float
    delta: float
    fits: bool
    releases: int
    expected: list[list[dict[str, Any]]]
    answers: list[AnswerBody] | None


class JobBody(_Told):
    """A question that is answered in the background."""

    id: str
    dataset: str
    state: Literal["queued", "running", "done", "failed", "lost"]
    answer: AnswerBody | None = None
    problem: dict[str, Any] | None = None


class BudgetsBody(_Told):
    """The budgets of an account that the login may see, with the shares used."""

    account: str
    guarantee: dict[str, Any]
    policy: str
    remaining: float
    budgets: list[dict[str, Any]]


class EntriesBody(_Told):
    """Entries of the ledger, oldest first."""

    entries: list[dict[str, Any]]


class ReceiptBody(BaseModel):
    """A receipt with its proof, as ``discreet verify`` reads it."""

    format: str
    checkpoint: str
    entries: list[dict[str, Any]]
    rotations: list[dict[str, Any]]


class CheckpointBody(_Told):
    """The signed checkpoint of the ledger and the key that signs it."""

    checkpoint: str
    vkey: str


class ConsistencyBody(_Told):
    """Hashes which prove that the first ``old`` of ``new`` entries are what they were.

    ``new`` null is as many as ``checkpoint`` has, which is the latest one in any case.
    """

    old: int
    new: int | None
    checkpoint: str
    proof: list[str]


class ActBody(_Told):
    """The ledger's entry of what a custodian did."""

    entry: int


class KeyBody(_Told):
    """An API key, without its secret."""

    id: str
    who: str
    roles: list[str]
    datasets: list[str] | None
    created: str
    expires: str | None
    is_revoked: bool


class KeyMadeBody(_Told):
    """A new API key. Its secret is shown here and never again."""

    key: KeyBody
    secret: str
    entry: int


class KeysBody(_Told):
    """All API keys."""

    keys: list[KeyBody]
