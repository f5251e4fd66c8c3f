"""A table behind a server, asked as if it were here: `connect(url)` gives an Oracle."""

from sulq.client.asynchronous import AsyncPlan, AsyncRemote, connect_async
from sulq.client.plans import RemoteLine, RemotePlan
from sulq.client.remote import Remote, RemoteReserved, connect
from sulq.wire import Unreachable

__all__ = [
    "AsyncPlan",
    "AsyncRemote",
    "Remote",
    "RemoteLine",
    "RemotePlan",
    "RemoteReserved",
    "Unreachable",
    "connect",
    "connect_async",
]
