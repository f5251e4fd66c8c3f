"""A real server on a free port, in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from tests.waiting import LONGEST, come


@contextmanager
def serving(app: FastAPI) -> Iterator[int]:
    """The port it listens on; stopped at the end."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    come(lambda: server.started or not thread.is_alive(), "the server did not start")
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(LONGEST)
