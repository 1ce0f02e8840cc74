"""The pages of whoever asks."""

from discreet.service.identity.login import Role
from discreet.service.pages.areas.analyst.answers import (
    answer,
    answer_csv,
    receipt,
    receipt_file,
)
from discreet.service.pages.areas.analyst.asking import dataset, run
from discreet.service.pages.areas.analyst.datasets import datasets
from discreet.service.pages.areas.analyst.history import history
from discreet.service.pages.page import ANYBODY, Action, Download, Page, PageArea

__all__ = ["PAGES"]

_ANALYST = (Role.ANALYST,)

PAGES: PageArea = (
    Page(
        path="/datasets", name="datasets", title="Datasets", roles=ANYBODY,
        view=datasets, template="analyst/datasets.html", nav="Datasets",
    ),
    Page(
        path="/datasets/{dataset}", name="dataset", title="Ask a dataset", roles=ANYBODY,
        view=dataset, template="analyst/dataset.html",
    ),
    Action(path="/datasets/{dataset}", name="run", roles=_ANALYST, act=run),
    Page(
        path="/datasets/{dataset}/history", name="history", title="History", roles=ANYBODY,
        view=history, template="analyst/history.html",
    ),
    Page(
        path="/answers/{entry}", name="answer", title="Answer", roles=_ANALYST,
        view=answer, template="analyst/answer.html",
    ),
    Download(path="/answers/{entry}.csv", name="answer_csv", roles=_ANALYST, file=answer_csv),
    Page(
        path="/receipts/{entry}", name="receipt", title="Receipt", roles=ANYBODY,
        view=receipt, template="analyst/receipt.html",
    ),
    Download(
        path="/receipts/{entry}/file", name="receipt_file", roles=ANYBODY, file=receipt_file
    ),
)  # fmt: skip
