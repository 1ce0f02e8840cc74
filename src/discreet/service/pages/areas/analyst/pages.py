"""The pages of whoever asks."""

from discreet.service.pages.areas.analyst.datasets import datasets
from discreet.service.pages.page import ANYBODY, Page, PageArea

__all__ = ["PAGES"]

PAGES: PageArea = (
    Page(
        path="/datasets", name="datasets", title="Datasets that you may ask", roles=ANYBODY,
        view=datasets, template="analyst/datasets.html", nav="Datasets",
    ),
)  # fmt: skip
