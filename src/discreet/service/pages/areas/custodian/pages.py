"""The pages of whoever looks after data. Auditors may look at what they may see through /v1."""

from discreet.service.identity.login import Role
from discreet.service.pages.areas.custodian.acts import grant, granting, limit, policy, reopen
from discreet.service.pages.areas.custodian.cards import card, card_file, cards, registry_draft
from discreet.service.pages.areas.custodian.keys import keys, make_key, revoke_key
from discreet.service.pages.areas.custodian.ledger import begin_check, ledger, ledger_file
from discreet.service.pages.areas.custodian.overview import overview
from discreet.service.pages.areas.custodian.population import population
from discreet.service.pages.areas.custodian.protecting import protect, protecting
from discreet.service.pages.areas.custodian.registry import (
    entries_csv,
    entries_json,
    registry_csv,
    registry_json,
)
from discreet.service.pages.areas.custodian.spending import spent, spent_file
from discreet.service.pages.page import Action, Download, Page, PageArea

__all__ = ["PAGES"]

_CUSTODIAN = (Role.CUSTODIAN,)
_LOOKERS = (Role.CUSTODIAN, Role.AUDITOR)
_ONE = "/custody/datasets/{dataset}"

PAGES: PageArea = (
    Page(
        path="/custody", name="custody", title="Look after data", roles=_LOOKERS, view=overview,
        template="custodian/overview.html", nav="Custody",
    ),
    Page(
        path="/custody/protect", name="protecting", title="Protect a table", roles=_CUSTODIAN,
        view=protecting, template="custodian/protect.html",
    ),
    Action(path="/custody/protect", name="protect", roles=_CUSTODIAN, act=protect),
    Page(
        path=_ONE, name="population", title="A budget", roles=_LOOKERS, view=population,
        template="custodian/population.html",
    ),
    Page(
        path=f"{_ONE}/grant", name="granting", title="Widen a budget", roles=_CUSTODIAN,
        view=granting, template="custodian/grant.html",
    ),
    Action(path=f"{_ONE}/grant", name="page_grant", roles=_CUSTODIAN, act=grant),
    Action(path=f"{_ONE}/limit", name="page_limit", roles=_CUSTODIAN, act=limit),
    Action(path=f"{_ONE}/policy", name="page_policy", roles=_CUSTODIAN, act=policy),
    Action(path=f"{_ONE}/reopen", name="page_reopen", roles=_CUSTODIAN, act=reopen),
    Page(
        path=f"{_ONE}/spending", name="spending", title="Who spent what", roles=_LOOKERS,
        view=spent, template="custodian/spending.html",
    ),
    Download(path=f"{_ONE}/spending.csv", name="spending_file", roles=_LOOKERS, file=spent_file),
    Page(
        path=f"{_ONE}/cards", name="cards", title="Release cards", roles=_LOOKERS, view=cards,
        template="custodian/cards.html",
    ),
    Page(
        path=f"{_ONE}/cards/{{entry}}", name="card", title="Release card", roles=_LOOKERS,
        view=card, template="custodian/card.html",
    ),
    Download(
        path=f"{_ONE}/cards/{{entry}}/card.md", name="card_file", roles=_LOOKERS, file=card_file
    ),
    Download(
        path=f"{_ONE}/cards/{{entry}}/registry.yaml", name="registry_draft", roles=_LOOKERS,
        file=registry_draft,
    ),
    Download(path=f"{_ONE}/entries.csv", name="entries_csv", roles=_LOOKERS, file=entries_csv),
    Download(path=f"{_ONE}/entries.json", name="entries_json", roles=_LOOKERS, file=entries_json),
    Page(
        path="/custody/keys", name="api_keys", title="API keys", roles=_CUSTODIAN, view=keys,
        template="custodian/keys.html",
    ),
    Action(path="/custody/keys", name="page_make_key", roles=_CUSTODIAN, act=make_key),
    Action(
        path="/custody/keys/{key}/revoke", name="page_revoke_key", roles=_CUSTODIAN, act=revoke_key
    ),
    Page(
        path="/custody/ledger", name="ledger", title="The ledger", roles=_LOOKERS, view=ledger,
        template="custodian/ledger.html",
    ),
    Action(path="/custody/ledger", name="begin_check", roles=_LOOKERS, act=begin_check),
    Download(path="/custody/ledger.ndjson", name="ledger_file", roles=_LOOKERS, file=ledger_file),
    Download(path="/custody/registry.csv", name="registry_csv", roles=_LOOKERS, file=registry_csv),
    Download(
        path="/custody/registry.json", name="registry_json", roles=_LOOKERS, file=registry_json
    ),
)  # fmt: skip
