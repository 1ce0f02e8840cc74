"""The addresses of all pages, their twins and their assets, for the application of a gateway."""

from collections.abc import Sequence

from starlette.routing import Route as Address

from discreet.service.pages.areas import AREAS, TRIALS
from discreet.service.pages.page import Action, Page, PageArea
from discreet.service.pages.rendering.assets import Assets
from discreet.service.pages.rendering.environment import Renderer
from discreet.service.pages.serving.files import AssetFiles
from discreet.service.pages.serving.resource import PageNowhere, PageResource, PageSurroundings
from discreet.service.settings.gateway import GatewaySettings
from discreet.service.web.resource import Surroundings

__all__ = ["every_page", "page_addresses", "served_pages"]


def every_page() -> PageArea:
    """Return the table of pages, of all areas."""
    return tuple(one for area in (*AREAS, *TRIALS) for one in area)


def served_pages(settings: GatewaySettings) -> PageArea:
    """Return the pages that a gateway has.

    >>> any(page.path == "/explorer" for page in served_pages(GatewaySettings()))
    False
    """
    areas = (*AREAS, *TRIALS) if settings.explorer else AREAS
    return tuple(one for area in areas for one in area)


def page_addresses(around: Surroundings) -> Sequence[Address]:
    """Return the addresses of pages, to be looked at after all others."""
    table, assets = served_pages(around.gateway.settings), Assets()
    pages = [one for one in table if isinstance(one, Page)]
    shared = PageSurroundings(around, Renderer(assets, pages))
    actions = {one.path: one for one in table if isinstance(one, Action)}
    shown = {one.path: one for one in table if not isinstance(one, Action)}
    # Twins go first: {entry}.json would be an {entry}, too. So would the file of a page.
    found = [
        Address(page.twin, PageResource(shared, shown=page, is_twin=True)) for page in pages
    ] + [
        Address(path, PageResource(shared, shown=shown.get(path), action=actions.get(path)))
        for path in sorted({*actions, *shown}, key=lambda path: (-path.count("."), path))
    ]
    return [
        *found,
        Address("/assets/{version}/{name:path}", AssetFiles(assets)),
        Address("/{rest:path}", PageNowhere(shared)),
    ]
