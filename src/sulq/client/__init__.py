"""A table behind a server, asked as if it were here: `connect(url)` gives an Oracle.

Names are loaded when they are first used: HTTP and its models take longer than a local answer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sulq.client.connecting import connect

if TYPE_CHECKING:
    from sulq.client.asynchronous import AsyncPlan, AsyncRemote, connect_async
    from sulq.client.plans import RemoteLine, RemotePlan
    from sulq.client.remote import Remote, RemoteReserved
    from sulq.wire import Unreachable

_MODULE_OF = {
    "AsyncPlan": "client.asynchronous",
    "AsyncRemote": "client.asynchronous",
    "Remote": "client.remote",
    "RemoteLine": "client.plans",
    "RemotePlan": "client.plans",
    "RemoteReserved": "client.remote",
    "Unreachable": "wire",
    "connect_async": "client.asynchronous",
}

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


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'sulq.client' has no attribute {name!r}")
    found = getattr(import_module(f"sulq.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
