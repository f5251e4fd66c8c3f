"""A real server on a free port, in a thread of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from tests.waiting import LONGEST, come


class PromptServer(uvicorn.Server):
    """As uvicorn's, but it looks every 5 ms whether it should stop: tests stop many."""

    async def main_loop(self) -> None:
        await self.on_tick(0)  # the headers; the clock of a test's replies may stand still
        while not self.should_exit:
            await asyncio.sleep(0.005)


@contextmanager
def serving(app: FastAPI) -> Iterator[int]:
    """The port it listens on; stopped at the end."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="on")
    server = PromptServer(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    come(lambda: server.started or not thread.is_alive(), "the server did not start")
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(LONGEST)
