"""A table behind a server, asked as if it were here: `connect(url)` gives an Oracle.

Names are loaded when they are first used: HTTP and its models take longer than a local answer.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    from sulq.client.aio import AsyncPlan, AsyncRemote, connect_async
    from sulq.client.remote import Remote, RemoteReserved
    from sulq.client.values import RemoteLine, RemotePlan
    from sulq.wire import Unreachable


def connect(
    url: str,
    *,
    token: str | None = None,
    timeout: float = 60.0,
    retries: int = 4,
    verify: ssl.SSLContext | str | Path | bool = True,
    insecure: bool = False,
) -> Remote:
    """The table at `https://host/people`, asked in the token's name (else that of SULQ_TOKEN).

    Every ask has a key: after a lost reply it is sent again, and charged once. `verify` is a file
    with the server's own certificate authority. `insecure=True` lets the token go in the clear.
    """
    from sulq.client.remote import connected

    return connected(url, token, timeout, retries, verify, insecure)


# `connect(url)`: loads HTTP when it is called, not when it is named.


_MODULE_OF = {
    "AsyncPlan": "client.aio",
    "AsyncRemote": "client.aio",
    "Remote": "client.remote",
    "RemoteLine": "client.values",
    "RemotePlan": "client.values",
    "RemoteReserved": "client.remote",
    "Unreachable": "wire",
    "connect_async": "client.aio",
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
