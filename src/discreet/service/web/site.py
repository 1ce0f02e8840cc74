"""The documentation at `/docs`, as `make docs` builds it: files, for whoever asks."""

from pathlib import Path
from typing import Final, final

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Mount
from starlette.routing import Route as Address
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

from discreet.errors import ParameterError
from discreet.service.web.problems import problem
from discreet.service.web.resource import send_problem

__all__ = ["POLICY", "site_routes"]

OF_THE_PACKAGE: Final = Path(__file__).parents[2] / "site"  # a wheel may have it
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def site_routes(folder: Path | None) -> list[BaseRoute]:
    """Return the routes of a built site: of this folder, of the package's own, or none.

    >>> site_routes(None) == [] or OF_THE_PACKAGE.is_dir()
    True
    """
    if folder is None and not OF_THE_PACKAGE.is_dir():
        return []
    place = OF_THE_PACKAGE if folder is None else folder
    if not (place / "index.html").is_file():
        raise ParameterError(
            "docs must be the folder of a built site, which has an index.html. `make docs` in a "
            "checkout of discreet builds one, in site/.",
            parameter="docs",
        )
    site = _Site(place)
    return [Address("/docs", endpoint=site, methods=["GET"]), Mount("/docs", app=site)]


@final
class _Site:
    """Serves the files of one folder, with headers that forbid whatever the site does not need."""

    def __init__(self, folder: Path) -> None:
        self._files = StaticFiles(directory=folder)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one file; the folder itself is its index."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = POLICY
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers["Cache-Control"] = "no-cache"  # asked again, and mostly not sent again
            await send(message)

        if scope["type"] == "http" and scope["path"] in ("/docs", "/docs/"):
            await RedirectResponse("/docs/index.html")(scope, receive, guarded)
            return
        try:
            await self._files(scope, receive, guarded)
        except HTTPException as refused:
            kind = "bad-method" if refused.status_code == 405 else "not-found"
            await send_problem(send, problem(kind, "the documentation has no such page."))
