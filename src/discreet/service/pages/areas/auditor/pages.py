"""The pages of an auditor; what proves itself is for everybody, as it is on /v1."""

from discreet.service.identity.login import Role
from discreet.service.pages.areas.auditor.checkpoints import checkpoints
from discreet.service.pages.areas.auditor.growth import growth
from discreet.service.pages.areas.auditor.mechanisms import mechanisms
from discreet.service.pages.areas.auditor.receipts import check_receipt
from discreet.service.pages.page import Page, PageArea

__all__ = ["PAGES"]

_AUDITOR = (Role.AUDITOR,)

PAGES: PageArea = (
    Page(
        path="/audit", name="audit", title="Check the ledger", roles=None, view=checkpoints,
        template="auditor/checkpoints.html", nav="Audit",
    ),
    Page(
        path="/audit/receipt", name="audit_receipt", title="Verify a receipt", roles=None,
        view=check_receipt, template="auditor/receipt.html",
    ),
    Page(
        path="/audit/log", name="audit_log", title="How the log grew", roles=_AUDITOR,
        view=growth, template="auditor/log.html",
    ),
    Page(
        path="/audit/mechanisms", name="audit_mechanisms", title="Every mechanism, audited",
        roles=_AUDITOR, view=mechanisms, template="auditor/mechanisms.html",
    ),
)  # fmt: skip
