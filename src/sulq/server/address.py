"""The address of this server in links: `--public-url` if given, else the one of the request."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request

from sulq.errors import InvalidQuery


def base_of(request: Request) -> str:
    """Return the address for links and for copied code; `--public-url` names that of a proxy."""
    told: str | None = request.app.state.settings.public_url
    return told or str(request.base_url).rstrip("/")


def public_url(given: str | None) -> str | None:
    """Check an address and return it without its last slash; None stays None."""
    if given is None:
        return None
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidQuery(
            f"got the address {given!r:.80}, wanted for instance https://sulq.example"
        )
    return given.rstrip("/")
