"""Where others reach this server: as it is told, else as the request says."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request

from sulq.errors import InvalidQuery


def base_of(request: Request) -> str:
    """For links and for code that is copied; a proxy's address where one is named."""
    told: str | None = request.app.state.settings.public_url
    return told or str(request.base_url).rstrip("/")


def public_url(given: str | None) -> str | None:
    """An address without the last slash, if it is one."""
    if given is None:
        return None
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidQuery(
            f"got the address {given!r:.80}, wanted for instance https://sulq.example"
        )
    return given.rstrip("/")
