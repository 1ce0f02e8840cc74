"""What whoever looks after data sees: protecting, budgets, spending, cards, keys, the ledger."""

from discreet.service.pages.areas.custodian.pages import PAGES as PAGES
