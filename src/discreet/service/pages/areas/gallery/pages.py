"""The pages of the gallery."""

from collections.abc import Mapping
from typing import Any, Final

from discreet.service.identity.login import Role
from discreet.service.pages.areas.gallery.attacks import difference, reconstruct
from discreet.service.pages.areas.gallery.choice import choice
from discreet.service.pages.areas.gallery.laws import laws
from discreet.service.pages.areas.gallery.survey import survey
from discreet.service.pages.areas.gallery.tradeoffs import tradeoffs
from discreet.service.pages.page import Page, PageArea, PageCall

__all__ = ["PAGES"]

_PICTURES: PageArea = (
    Page(
        path="/gallery/noise", name="gallery_noise", title="What noise hides", roles=None,
        view=laws, template="gallery/noise.html",
    ),
    Page(
        path="/gallery/survey", name="gallery_survey", title="A survey with coins", roles=None,
        view=survey, template="gallery/survey.html",
    ),
    Page(
        path="/gallery/choice", name="gallery_choice", title="Choosing in private", roles=None,
        view=choice, template="gallery/choice.html",
    ),
    Page(
        path="/gallery/tradeoff", name="gallery_tradeoff", title="What an attacker must miss",
        roles=None, view=tradeoffs, template="gallery/tradeoff.html",
    ),
    Page(
        path="/gallery/differencing", name="gallery_differencing",
        title="One salary out of sums over crowds", roles=None, view=difference,
        template="gallery/differencing.html",
    ),
    Page(
        path="/gallery/reconstruction", name="gallery_reconstruction",
        title="Everybody's secret out of counts", roles=None, view=reconstruct,
        template="gallery/reconstruction.html",
    ),
)  # fmt: skip

_WORDS: Final = {
    "gallery_noise": "Two inputs that differ in one person, and the answers that either gives.",
    "gallery_survey": "Everybody lies at random, and the share of all is found all the same.",
    "gallery_choice": "The best candidate mostly wins; nobody's vote decides it for sure.",
    "gallery_tradeoff": "Epsilon and delta in the words of whoever attacks.",
    "gallery_differencing": "Why a minimum group size protects nobody, and what does.",
    "gallery_reconstruction": "Why many answers with a little noise tell nearly everything.",
}


async def gallery(call: PageCall) -> Mapping[str, Any]:
    """List the pictures."""
    return {
        "may_see_audit": call.login is not None and call.login.is_a(Role.AUDITOR),
        "pictures": [
            {"path": one.path, "title": one.title, "words": _WORDS[one.name]}
            for one in _PICTURES
            if isinstance(one, Page)
        ],
    }


PAGES: PageArea = (
    Page(
        path="/gallery", name="gallery", title="A gallery of mechanisms", roles=None, view=gallery,
        template="gallery/gallery.html", nav="Gallery",
    ),
    *_PICTURES,
)  # fmt: skip
