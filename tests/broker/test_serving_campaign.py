"""A campaign against the servers: a million requests, and everything that may happen meanwhile.

Servers and daemons are killed, the broker is frozen, clients send garbage, or send slowly, and a
thousand connections are idle. No answer is wrong, memory stays flat, and the log keeps its promise.
`STREAMLEARN_REQUESTS` sets how many requests there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.serving import Snapshot, directory
from tests.broker.serving import Loop, event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from confluent_kafka import Producer

    from tests.broker.apache_kafka import ApacheKafka
    from tests.broker.conftest import MakeTopic
    from tests.broker.processes import Process, Server

    Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

REQUESTS = int(os.environ.get("STREAMLEARN_REQUESTS", "1000000"))
CONNECTIONS, IDLE = 32, 1000
FAULT_SECONDS = 8.0
MALFORMED = (
    b"GARBAGE\r\n\r\n",
    b'POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{"a":',
    b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n[1,2,{}",
    b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{}",
    b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"POST /v1/predict?learner=../../x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
    bytes(range(256)) * 8,
)


class Campaign:
    """Two servers, a daemon and its standby, and clients that repeat what was not answered."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.daemons = [loop.daemon(), loop.daemon()]
        self.servers = [loop.serve(), loop.serve()]
        self.numbers = itertools.count()
        self.done = False
        self.statuses: dict[int, int] = {}
        self.resident: list[int] = []

    # -- clients -------------------------------------------------------------------------------

    async def client(self, which: int) -> None:
        """Ask until all is asked, one request after the other."""
        streams: Streams | None = None
        for number in self.numbers:
            if number >= REQUESTS:
                break
            body = json.dumps(event(number)).encode()
            head = f"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            while True:
                try:
                    if streams is None:
                        streams = await self.connect(which)
                    status, answer = await exchange(streams, head.encode() + body)
                except (OSError, asyncio.IncompleteReadError, TimeoutError):
                    if streams is not None:
                        streams[1].close()
                    streams, which = None, 1 - which  # the other server
                    await asyncio.sleep(0.05)
                    continue
                self.statuses[status] = self.statuses.get(status, 0) + 1
                if status == 200:
                    names = ("score", "version", "arm", "learner")
                    found = json.loads(answer)
                    kept = {name: found[name] for name in names}
                    self.loop.answered.setdefault(f"e{number}", []).append(kept)
                    break
                assert status == 503, answer
                await asyncio.sleep(0.1)
        if streams is not None:
            streams[1].close()

    async def connect(self, which: int) -> Streams:
        """Connect to one of the servers."""
        host, port = self.servers[which][1].removeprefix("http://").split(":")
        return await asyncio.wait_for(asyncio.open_connection(host, int(port)), 5.0)

    async def idle(self) -> None:
        """Keep connections open that ask nothing."""
        held: list[Streams] = []
        while not self.done:
            for one in [one for one in held if one[0].at_eof()]:
                one[1].close()
                held.remove(one)
            with contextlib.suppress(OSError, TimeoutError):
                while len(held) < IDLE and not self.done:
                    held.append(await self.connect(len(held) % 2))
            await asyncio.sleep(1.0)
        for _, writer in held:
            writer.close()

    async def malformed(self) -> None:
        """Send what is no request, or only slowly one."""
        for body in itertools.cycle(MALFORMED):
            if self.done:
                break
            writer = None
            with contextlib.suppress(OSError, TimeoutError):
                reader, writer = await self.connect(random.randrange(2))
                for at in range(0, len(body), 40):
                    writer.write(body[at : at + 40])
                    await asyncio.sleep(0.02)
                found = await asyncio.wait_for(reader.read(100), 0.5)
                assert not found.startswith((b"HTTP/1.1 5", b"HTTP/1.1 200"))
            if writer is not None:
                writer.close()

    # -- faults --------------------------------------------------------------------------------

    async def faults(self, broker: ApacheKafka) -> None:
        """Cause faults in turn."""
        for fault in itertools.cycle(("server", "daemon", "freeze", "server", "takeover")):
            for _ in range(int(FAULT_SECONDS / 0.25)):
                if self.done:
                    return
                await asyncio.sleep(0.25)
            if fault == "server":
                self.servers[0][0].kill()
                self.servers[0] = await asyncio.to_thread(self.loop.serve)
            elif fault == "freeze":
                assert broker.process is not None
                os.kill(broker.process.pid, signal.SIGSTOP)
                await asyncio.sleep(3.0)
                os.kill(broker.process.pid, signal.SIGCONT)
            else:
                victim = self.daemons.pop(0)
                victim.kill() if fault == "daemon" else victim.terminate()
                self.daemons.append(self.loop.daemon())

    async def watch(self) -> None:
        """Measure the memory of the server that is never killed."""
        while not self.done:
            self.resident.append(resident(self.servers[1][0]))
            await asyncio.sleep(0.5)

    async def label(self, producer: Producer) -> None:
        """Label what was answered, soon afterwards."""
        labeled = 0
        while not self.done or labeled < REQUESTS:
            answered = 0
            while answered < 5000 and f"e{labeled + answered}" in self.loop.answered:
                answered += 1
            await asyncio.to_thread(self.loop.label, producer, range(labeled, labeled + answered))
            labeled += answered
            await asyncio.sleep(0.05)

    async def run(self, broker: ApacheKafka, producer: Producer) -> None:
        """Run it all."""
        others = [
            asyncio.create_task(one)
            for one in (
                self.faults(broker), self.watch(), self.label(producer), self.idle(),
                self.malformed(),
            )
        ]  # fmt: skip
        await asyncio.gather(*(self.client(i % 2) for i in range(CONNECTIONS)))
        self.done = True
        await asyncio.gather(*others)


async def exchange(streams: Streams, request: bytes) -> tuple[int, bytes]:
    """Send a request; return the status and the body of its answer."""
    reader, writer = streams
    writer.write(request)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30.0)
    length = next(
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    return int(head[9:12]), await reader.readexactly(length)


def resident(process: Process) -> int:
    """Return the resident memory of a process in kB."""
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:  # noqa: PTH123 - no file
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def assert_scores(loop: Loop) -> int:
    """Check answers, bit for bit, against the versions that they name; return how many."""
    path = loop.directory / "snapshots"
    kept = {(one.learner, f"{one.epoch}-{one.events}"): one for one in directory.entries(path)}
    by_version: dict[Any, list[tuple[int, float]]] = {}
    for name, answers in loop.answered.items():
        for one in answers:
            key = (one["learner"], one["version"])
            by_version.setdefault(key, []).append((int(name[1:]), one["score"]))
    checked = 0
    for key in by_version.keys() & kept.keys():
        snapshot = Snapshot(path / kept[key].name)
        for number, score in by_version[key]:
            features = {name: x for name, x in event(number).items() if name != "id"}
            assert snapshot.score(features) == score
            checked += 1
    return checked


@pytest.fixture
def campaign(
    server: Server, tmp_path: Path, own_broker: ApacheKafka, make_topic: MakeTopic
) -> Iterator[Campaign]:
    topics = (make_topic(name="impressions"), make_topic(name="clicks"))
    loop = Loop(server, tmp_path, own_broker.bootstrap, *topics)
    text = loop.config.read_text().replace("[serve]\n", "[serve]\nkeep = 1000\n")
    loop.config.write_text(text)
    yield Campaign(loop)
    loop.stop_all()


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_million_requests(
    campaign: Campaign, own_broker: ApacheKafka, producer: Producer
) -> None:
    loop, start = campaign.loop, time.monotonic()
    asyncio.run(campaign.run(own_broker, producer))
    sys.stdout.write(
        f"{REQUESTS} requests in {time.monotonic() - start:.0f} s: {campaign.statuses}, "
        f"resident {campaign.resident[::20]} kB\n"
    )
    assert len(loop.answered) == REQUESTS
    loop.wait_for(lambda: loop.joined() == REQUESTS, 600.0)
    for process, _ in campaign.servers:
        process.terminate()
        assert process.wait(30) == 0
    for daemon in campaign.daemons:
        daemon.terminate()
        daemon.wait(30)
    assert assert_scores(loop) > REQUESTS // 10
    loop.assert_learned_once(range(REQUESTS))
    settled = campaign.resident[len(campaign.resident) // 4 :]
    assert max(settled) < 1.2 * settled[0] + 10_000
