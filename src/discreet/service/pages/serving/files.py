"""What is no page: assets, which browsers keep, and addresses where there is nothing."""

from typing import Final, final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from discreet.service.pages.rendering.assets import Assets
from discreet.service.pages.serving.headers import PAGE_HEADERS
from discreet.service.web.problems import KINDS, Problem, problem
from discreet.service.web.resource import send_problem

__all__ = ["AssetFiles"]

_FOR_EVER: Final = "public, max-age=31536000, immutable"


@final
class AssetFiles:
    """Serves assets, as an ASGI application."""

    def __init__(self, assets: Assets) -> None:
        self._assets = assets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give one file, to anybody."""
        if scope["method"] not in ("GET", "HEAD"):
            told = "this address takes GET."
            await send_problem(send, Problem(KINDS["bad-method"], told, headers={"Allow": "GET"}))
            return
        path = scope["path_params"]
        found = self._assets.find(path["version"], path["name"])
        if found is None:
            await send_problem(send, problem("not-found", "there is nothing at this address."))
            return
        headers = PAGE_HEADERS | {"Cache-Control": _FOR_EVER}
        answer = Response(found.content, headers=headers, media_type=found.media_type)
        await answer(scope, receive, send)
