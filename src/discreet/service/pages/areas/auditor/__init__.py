"""What whoever trusts nobody sees: checkpoints, proofs, receipts, and audits of mechanisms."""

from discreet.service.pages.areas.auditor.pages import PAGES as PAGES
