"""What whoever asks sees: datasets, prices before they are paid, answers, and their proofs."""

from discreet.service.pages.areas.analyst.pages import PAGES as PAGES
