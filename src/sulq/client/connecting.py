"""`connect(url)`: loads HTTP when it is called, not when it is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from sulq.client.remote import Remote


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
