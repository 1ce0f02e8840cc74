"""What there is to see, one area for each kind of reader; each exports its ``PAGES``."""

from discreet.service.pages.areas import (
    analyst,
    auditor,
    custodian,
    explorer,
    front,
    gallery,
    training,
)

AREAS = (
    front.PAGES,
    analyst.PAGES,
    custodian.PAGES,
    auditor.PAGES,
    gallery.PAGES,
)

# For strangers who want to try what this is; only where the settings say so.
TRIALS = (
    explorer.PAGES,
    training.PAGES,
)
