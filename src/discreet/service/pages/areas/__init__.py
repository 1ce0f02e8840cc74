"""What there is to see, one area for each kind of reader; each exports its ``PAGES``."""

from discreet.service.pages.areas import analyst, auditor, custodian, front, gallery

AREAS = (
    front.PAGES,
    analyst.PAGES,
    custodian.PAGES,
    auditor.PAGES,
    gallery.PAGES,
)
