"""The same tables behind a gateway: priced, asked and checked from anywhere.

:func:`connect` returns :class:`RemoteTables`, which answer as protected tables here do, with the
same results, quotes and errors. Where it differs is what the gateway decides: who asks, and the
noise.
"""

from discreet.client.budgets import RemoteBudget
from discreet.client.connecting import connect
from discreet.client.jobs import RemoteJob
from discreet.client.remote_tables import RemoteTables
from discreet.client.workload import RemoteQuote, RemoteWorkload

__all__ = [
    "RemoteBudget",
    "RemoteJob",
    "RemoteQuote",
    "RemoteTables",
    "RemoteWorkload",
    "connect",
]
