"""The pages of the training."""

from discreet.service.pages.areas.training.views import steps, training
from discreet.service.pages.page import EventStream, Page, PageArea

__all__ = ["PAGES"]

PAGES: PageArea = (
    Page(
        path="/training", name="training", title="Watch a model learn, with and without privacy",
        roles=None, view=training, template="training/training.html", nav="Training",
    ),
    EventStream(path="/training/steps", name="training_steps", roles=None, events=steps),
)  # fmt: skip
