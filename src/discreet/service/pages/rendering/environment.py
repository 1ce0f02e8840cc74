"""The templates: autoescaped, and strict about what they are given."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from discreet._json import read_json
from discreet._version import __version__
from discreet.service.identity.login import Login
from discreet.service.pages.page import Page
from discreet.service.pages.rendering.assets import Assets
from discreet.service.pages.rendering.figures import interval_chart
from discreet.service.pages.rendering.numbers import FILTERS

__all__ = ["Renderer"]

_GUARDS: Final = Markup(
    '<input type="hidden" name="guard" value="{}"><input type="hidden" name="key" value="{}">'
)


@final
class Renderer:
    """Turns views into HTML. ``pages`` are those that the navigation may show."""

    def __init__(self, assets: Assets, pages: Sequence[Page]) -> None:
        self._pages = tuple(page for page in pages if page.nav)
        self._environment = Environment(
            loader=PackageLoader("discreet.service.pages", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {**FILTERS, "parsed": read_json}
        self._environment.globals |= {
            "asset": assets.address,
            "interval_chart": interval_chart,
            "version": __version__,
        }

    def render(
        self,
        template: str,
        view: Mapping[str, Any],
        *,
        title: str,
        login: Login | None,
        guard: str,
        address: str,
        twin: str | None,
    ) -> str:
        """Return the HTML of a view; ``address`` is where it is, ``twin`` where its JSON is."""

        def guards() -> Markup:
            """Return the hidden fields that every form with POST holds."""
            return _GUARDS.format(guard, secrets.token_urlsafe(18))

        return self._environment.get_template(template).render(
            **view,
            page_title=title,
            login=login,
            nav=[page for page in self._pages if _is_for(page, login)],
            guards=guards,
            address=address,
            twin=twin,
        )


def _is_for(page: Page, login: Login | None) -> bool:
    if page.roles is None:
        return True
    return login is not None and login.is_a(*page.roles)
