"""The clients of benchmarks/service.py: a process of its own, plain sockets, one loop.

Reads {"url", "tokens", "bodies", "pid", "keys"} and writes what happened, both as JSON. Each token
has one connection; the next question is sent when the reply to the last one is complete.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

LEAST = 0.1
"""The share of the run after which memory is looked at first: every cache has been used."""


MOST_DROPPED = 100
"""Connections that may break before the run is given up."""


def spent(pid: int) -> float:
    """CPU seconds of a process."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """MB of a process in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


class Run:
    """What all clients share: the questions still to ask, and what came back."""

    def __init__(self, told: dict[str, Any]) -> None:
        host, _, port = told["url"].removeprefix("http://").rpartition(":")
        self.host, self.port, self.pid = host, int(port), told["pid"]
        self.bodies, self.tokens, self.next = told["bodies"], told["tokens"], count()
        self.keys = told.get("keys", "question")
        self.seconds: list[float] = []
        self.replies: list[list[bytes]] = [[] for _ in self.tokens]
        self.errors: list[str] = []
        self.dropped = 0
        self.memory: list[float] = []
        self.half = 0.0  # MB after half of the run

    async def client(self, me: int) -> None:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        while (number := next(self.next)) < len(self.bodies):
            body = self.bodies[number].encode()
            head = (
                f"POST /v1/tables/people/ask HTTP/1.1\r\nHost: {self.host}\r\n"
                f"Authorization: Bearer {self.tokens[me]}\r\n"
                f"Idempotency-Key: {self.keys}-{number:06d}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            start = time.perf_counter()
            while True:
                try:
                    writer.write(head.encode() + body)
                    status, reply = await _reply(reader)
                    break
                except (asyncio.IncompleteReadError, ConnectionError):
                    # A busy server takes a connection for an idle one: ask again, same key.
                    self.dropped += 1
                    if self.dropped > MOST_DROPPED:
                        raise
                    reader, writer = await asyncio.open_connection(self.host, self.port)
            self.seconds.append(time.perf_counter() - start)
            if status != 200:
                self.errors.append(f"{status} {reply[:300].decode(errors='replace')}")
            self.replies[me].append(reply)
            if len(self.seconds) == int(LEAST * len(self.bodies)):
                self.memory.append(resident(self.pid))
            if len(self.seconds) == len(self.bodies) // 2:
                self.half = resident(self.pid)
        writer.close()

    async def all(self) -> dict[str, Any]:
        start, before = time.perf_counter(), spent(self.pid)
        await asyncio.gather(*map(self.client, range(len(self.tokens))))
        wall = time.perf_counter() - start
        self.memory.append(resident(self.pid))
        found = [[json.loads(reply) for reply in mine] for mine in self.replies]
        good = [reply for mine in found for reply in mine if "receipt" in reply]
        times = sorted(self.seconds)
        return {
            "seconds": wall,
            "cpu": spent(self.pid) - before,
            "per_second": len(times) / wall,
            "p50": times[len(times) // 2],
            "p99": times[len(times) * 99 // 100],
            "errors": self.errors[:5],
            "dropped": self.dropped,
            "answers": len(good),
            "receipts": len({one["receipt"]["receipt"]["seq"] for one in good}),
            "credits": [
                [one["credits_exact"] for one in mine if "receipt" in one] for mine in found
            ],
            "memory": self.memory,
            "each": (self.memory[-1] - self.half) * 2**20 / (len(times) - len(times) // 2),
        }


async def _reply(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    length = next(line for line in head if line.lower().startswith("content-length:"))
    return int(head[0].split()[1]), await reader.readexactly(int(length.partition(":")[2]))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(Run(json.load(sys.stdin)).all())))
