"""The gateway: a service between analysts and data, which keeps the tally and says no.

:func:`create_app` makes an ASGI application of an open :class:`Gateway`; :func:`serve` runs one in
as many processes as its :class:`GatewaySettings` say, over HTTP and PostgreSQL's protocol. What a
:class:`Login` may do depends on its roles alone, and what it is told on what was released.
"""

from discreet.service import requirement as requirement
from discreet.service.desk.gateway import Gateway
from discreet.service.identity.api_keys import all_keys, create, revoke
from discreet.service.identity.issuers import Issuer
from discreet.service.identity.login import Login, Role
from discreet.service.records.api_keys import ApiKey
from discreet.service.records.records import Records
from discreet.service.running.application import create_app
from discreet.service.running.demo import Demo, make_demo
from discreet.service.running.serving import check_ports, check_servable, serve
from discreet.service.settings.gateway import GatewaySettings
from discreet.service.settings.reading import read_settings

__all__ = [
    "ApiKey",
    "Demo",
    "Gateway",
    "GatewaySettings",
    "Issuer",
    "Login",
    "Records",
    "Role",
    "all_keys",
    "check_ports",
    "check_servable",
    "create",
    "create_app",
    "make_demo",
    "read_settings",
    "revoke",
    "serve",
]
