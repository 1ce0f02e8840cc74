"""What a visitor does: ask and pay, switch the policy, look at the truth, start over."""

from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from discreet.errors import (
    AlreadyCharged,
    BudgetExceeded,
    DataError,
    DiscreetError,
    LedgerUnavailable,
    ParameterError,
    TryLater,
)
from discreet.service.desk.desk import degraded
from discreet.service.pages.areas.explorer.company import WHO
from discreet.service.pages.areas.explorer.views import question_of
from discreet.service.pages.areas.explorer.visits import Visit, visits_of
from discreet.service.pages.page import PageCall, Redirect
from discreet.tables import Offer

if TYPE_CHECKING:
    from discreet.ledger import Policy

__all__ = ["ask", "reveal", "set_policy", "start_over"]

_MOST_ENTRIES: Final = 300  # in the ledger of one session


async def ask(call: PageCall) -> Redirect:
    """Pay and answer. What is refused costs nothing, and the page then says why."""
    question, epsilon = question_of(call)
    # The same form sent twice is one request. The ledger has keys of its own.
    key = f"form/{sha256(call.form.get('key', '').encode()).hexdigest()}"
    offer = Offer(epsilon=epsilon, who=WHO, key=key)
    degrades = "degrade" in call.form

    def asked(visit: Visit) -> str:
        _check_room(visit)
        tables = visit.tables
        try:
            try:
                tables.sql(question, offer)
            except BudgetExceeded:
                if not degrades or tables.account.policy != "degrade":
                    raise
                tables.sql(question, degraded(tables, question, offer))
        except BudgetExceeded:
            return "refused"
        except AlreadyCharged:
            return "answered"
        except (DataError, LedgerUnavailable):  # charged, or nobody knows
            raise
        except ParameterError as error:
            return "answered" if error.parameter == "key" else "invalid"
        except DiscreetError:
            return "invalid"  # the price of it says why
        return "answered"

    found = await visits_of(call.gateway).change(call.visitor, asked)
    said = {"question": question, "epsilon": f"{epsilon:g}"}
    if found == "answered":
        return Redirect(to=f"/explorer?{urlencode(said)}#answers")
    more = {"refused": "yes"} if found == "refused" else {}
    return Redirect(to=f"/explorer?{urlencode(said | more)}#price")


async def set_policy(call: PageCall) -> Redirect:
    """Say what happens when the budget is used up."""
    said = call.form.get("policy")
    if said not in ("deny", "degrade"):
        raise ParameterError("policy must be deny or degrade.", parameter="policy")
    policy: Policy = "deny" if said == "deny" else "degrade"

    def switched(visit: Visit) -> None:
        _check_room(visit)
        account = visit.tables.account
        if account.policy != policy:
            account.set_policy(policy, who=WHO, reason="the switch on the page")

    await visits_of(call.gateway).change(call.visitor, switched)
    return _back(call, "policy")


async def reveal(call: PageCall) -> Redirect:
    """Show the truth beside the answers of this session, for good."""
    await visits_of(call.gateway).change(call.visitor, lambda visit: visit.folder.reveal())
    return _back(call, "answers")


async def start_over(call: PageCall) -> Redirect:
    """End the session; the next one is about other people."""
    await visits_of(call.gateway).start_over(call.visitor)
    return Redirect(to="/explorer")


def _back(call: PageCall, place: str) -> Redirect:
    """Lead back to the question that was on the page."""
    said = {name: call.form[name] for name in ("question", "epsilon") if name in call.form}
    return Redirect(to=f"/explorer?{urlencode(said)}#{place}")


def _check_room(visit: Visit) -> None:
    """Refuse what would make the files of one session grow on and on."""
    if visit.tables.account.ledger.size > _MOST_ENTRIES:
        raise TryLater("this session has grown large. Start over with other people.")
