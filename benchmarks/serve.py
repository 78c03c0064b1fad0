"""Predictions over HTTP: `python -m benchmarks.serve`, with wrk and oha on the path.

One server process on the loopback, 12 fields in an event; the same server with an empty handler
that reads and answers JSON of the same size; both in one run, in alternating windows.
"""

import itertools
import json
import multiprocessing
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

import streamlearn as sl
from streamlearn.serving import directory, snapshot_content
from streamlearn.serving.http import server
from streamlearn.serving.http.app import Endpoint
from streamlearn.serving.http.guard import respond
from streamlearn.serving.http.options import Options
from streamlearn.serving.http.reading import read

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    from streamlearn.serving.http.reading import Receive, Scope, Send

SECONDS = 3
WINDOWS = 5
TICK = os.sysconf("SC_CLK_TCK")
SLOTS = 20  # bits


def event(rng: np.random.Generator) -> dict[str, Any]:
    """Return an event of 12 fields in about 196 bytes."""
    texts = {f"field_{k}": f"v{rng.integers(0, 1000)}" for k in range(6)}
    return texts | {f"num_{k}": round(float(rng.normal()), 3) for k in range(6)}


def publish(path: Path, bits: int, number: int) -> None:
    """Write a snapshot of a model with hashed features, with a weight in each slot."""
    model = sl.FTRLClassifier(features=sl.Hashing(bits))
    rng = np.random.default_rng(number)
    for i in range(100):
        model.learn_one(event(rng), bool(i % 2))
    header, arrays = snapshot_content.copy(model, model.reader).content()
    kept = {name: array for name, array in arrays.items() if name == "free_intercept"}
    weights = {"table": rng.normal(size=(1 << bits, 1)), **kept}
    name = directory.SnapshotFile(1, number, "default").name
    directory.write(
        path / name, header, weights, learner="default", version=(1, number), names_file=""
    )


@contextmanager
def process(serve: Callable[[Any], int]) -> Iterator[tuple[int, int]]:
    """Run a server in a process; yield its id and its port."""
    listening = server.listen("127.0.0.1", 0)
    child = os.fork()
    if child == 0:
        os._exit(serve(listening))
    port = listening.getsockname()[1]
    listening.close()
    try:
        yield child, port
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def serve_empty(size: int) -> Callable[[Any], int]:
    """Return a server whose handler reads JSON, and answers JSON of this size."""
    text = {"text": "x" * max(size - 11, 0)}

    async def handle(_: "Scope", receive: "Receive", send: "Send") -> None:
        msgspec.json.decode(await read(receive, 1 << 24, 10.0))
        await respond(send, msgspec.json.encode(text))

    def serve(listening: Any) -> int:
        app = Starlette(routes=[Route("/v1/predict", Endpoint(handle), methods=["POST"])])
        config = uvicorn.Config(
            app, loop="uvloop", http="httptools", log_config=None, access_log=False,
            server_header=False, date_header=False,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listening])
        return 0

    return serve


def cpu(child: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def load(port: int, body: bytes, connections: int, script: Path) -> tuple[int, float]:
    """Send the same request as fast as possible; return the number of answers, and the p99 in s."""
    script.write_text(f"wrk.method = 'POST'\nwrk.body = [==[{body.decode()}]==]\n")
    command = [
        "wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "--latency", "-s", str(script),
        f"http://127.0.0.1:{port}/v1/predict",
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 -- wrk
    found = done.stdout
    if "Non-2xx" in found:
        raise RuntimeError(found)
    requests = int(re.findall(r"(\d+) requests in", found)[0])
    value, unit = re.findall(r"99%\s+([\d.]+)(us|ms|s)", found)[0]
    return requests, float(value) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def ask(port: int, body: bytes) -> bytes:
    """Send a request once the server is up."""
    for _ in range(300):
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/predict", body)
            with urllib.request.urlopen(request) as found:  # noqa: S310
                return bytes(found.read())
        except OSError:
            time.sleep(0.1)
    raise TimeoutError


def proportional_set_size(child: int, name: str) -> int:
    """Return the bytes of a mapped file that a process accounts for."""
    text = Path(f"/proc/{child}/smaps").read_text()
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.MULTILINE)
    mine = [part for part in parts if name in part.partition("\n")[0]]
    sizes = [re.findall(r"^Pss:\s+(\d+)", part, re.MULTILINE) for part in mine]
    return sum(1024 * int(size) for [size] in sizes)


def main() -> None:
    """Print the table."""
    if missing := [name for name in ("wrk", "oha") if shutil.which(name) is None]:
        sys.exit(f"{missing} is missing: apt-get install wrk; cargo install --locked oha")
    with tempfile.TemporaryDirectory() as temporary:
        path, counts = Path(temporary) / "snapshots", Path(temporary) / "counts"
        path.mkdir()
        counts.mkdir()
        publish(path, SLOTS, 1)
        options = Options(path=path, counts=counts)
        rng = np.random.default_rng(0)
        one = json.dumps(event(rng)).encode()
        many = json.dumps([event(rng) for _ in range(1000)]).encode()
        script = Path(temporary) / "script.lua"
        with process(lambda listening: server.serve_process(options, listening)) as (child, port):
            size = len(ask(port, one))
            with process(serve_empty(size)) as (empty, empty_port):
                ask(empty_port, one)
                compare(child, port, empty, empty_port, one, script)
            batches(child, port, many, script)
            exchanges(path, port, one, script)
            with process(lambda listening: server.serve_process(options, listening)) as (
                two,
                other,
            ):
                ask(other, many)
                time.sleep(2 * options.poll_seconds)  # both have the newest version
                ask(port, many)
                name = directory.entries(path)[0].name
                sizes = [proportional_set_size(pid, name) for pid in (child, two)]
                print(f"mapped by two processes: {sizes[0]:,} and {sizes[1]:,} bytes each")


def compare(child: int, port: int, empty: int, empty_port: int, body: bytes, script: Path) -> None:
    """Print the CPU time of a request above that of an empty handler."""
    costs: dict[int, list[float]] = {child: [], empty: []}
    for _ in range(WINDOWS):
        for pid, at in ((child, port), (empty, empty_port)):
            before = cpu(pid)
            requests, _ = load(at, body, 8, script)
            costs[pid].append(1e6 * (cpu(pid) - before) / requests)
    ours, theirs = statistics.median(costs[child]), statistics.median(costs[empty])
    print(f"one event of {len(body)} bytes: {ours:.1f} us of CPU a request")
    print(f"empty handler: {theirs:.1f} us; above it: {ours - theirs:.1f} us (mark: 30)")


def batches(child: int, port: int, body: bytes, script: Path) -> None:
    """Print the events a second of CPU in requests of 1,000."""
    rates = []
    for _ in range(WINDOWS):
        before = cpu(child)
        requests, _ = load(port, body, 4, script)
        rates.append(1000 * requests / (cpu(child) - before))
    print(
        f"1,000 events a request: {statistics.median(rates):,.0f} events a second (mark: 400,000)"
    )


def at_rate(port: int, body: bytes, rate: int) -> float:
    """Send requests at a fixed rate, whether or not they are answered; return the p99 in s."""
    command = [
        "oha", "--no-tui", "--output-format", "json", "--latency-correction", "-q", str(rate),
        "-z", f"{SECONDS}s", "-c", "16", "-m", "POST", "-T", "application/json", "-d",
        body.decode(), f"http://127.0.0.1:{port}/v1/predict",
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 -- oha
    found = json.loads(done.stdout)
    if set(found["statusCodeDistribution"]) != {"200"}:
        raise RuntimeError(found["statusCodeDistribution"])
    return float(found["latencyPercentiles"]["p99"])


@contextmanager
def publisher(path: Path) -> "Iterator[Event]":
    """Run a process that writes the bytes of a new version each second while the event is set."""
    content = (path / directory.entries(path)[0].name).read_bytes()
    publishing = multiprocessing.get_context("fork").Event()
    child = os.fork()
    if child == 0:
        for number in itertools.count(2):
            publishing.wait()
            name = directory.SnapshotFile(1, number, "default").name
            (path / f".{name}").write_bytes(content)
            (path / f".{name}").rename(path / name)
            directory.prune(path, "default", 5)
            time.sleep(1.0)
    try:
        yield publishing
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def exchanges(path: Path, port: int, body: bytes, script: Path) -> None:
    """Print the p99 at half of the maximum rate with an exchange each second, and without."""
    rate = load(port, body, 16, script)[0] // SECONDS // 2
    quiet, busy = [], []
    with publisher(path) as publishing:
        for _ in range(2 * WINDOWS):
            quiet.append(at_rate(port, body, rate))
            publishing.set()
            busy.append(at_rate(port, body, rate))
            publishing.clear()
    without, with_exchanges = statistics.median(quiet), statistics.median(busy)
    print(
        f"p99 at {rate:,} requests a second: {1e3 * without:.2f} ms; with an exchange each second "
        f"{1e3 * with_exchanges:.2f} ms (mark: {1e3 * (1.5 * without + 1e-3):.2f})"
    )


if __name__ == "__main__":
    main()
