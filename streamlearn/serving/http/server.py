"""Processes, signals, and a shutdown that fails no request."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING

import uvicorn

from streamlearn.serving.http.app import application
from streamlearn.serving.http.protocol import limited

if TYPE_CHECKING:
    from types import FrameType

    from streamlearn.serving.http.guard import Guard
    from streamlearn.serving.http.options import Options

SIGNALS = (signal.SIGTERM, signal.SIGINT)
BACKLOG = 2048
RESTART_SECONDS = 0.5
GARBAGE_OBJECTS = 20_000  # allocated between two garbage collections


class PredictionServer(uvicorn.Server):
    """A server that drains before it stops.

    After the first signal, health is "not ready" and each answer closes its connection, so that
    balancers and clients go elsewhere; then it stops accepting, and finishes what is in work.
    """

    def __init__(self, config: uvicorn.Config, guard: Guard, options: Options) -> None:
        super().__init__(config)
        self.guard = guard
        self.options = options

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve.

        Records that wait for the log live long enough to make garbage collections frequent, and
        each one of all objects would take milliseconds: those that exist now are left out, which
        makes the 99th percentile of a request with the log five times as short.
        """
        await super().startup(sockets)
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE_OBJECTS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, and stop at once at the second."""
        if self.guard.draining:
            super().handle_exit(sig, frame)
            return
        self.guard.drain()
        timer = threading.Timer(self.options.drain_seconds, self.stop)
        timer.daemon = True
        timer.start()

    def stop(self) -> None:
        """Stop accepting, and finish what is in work."""
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """Return the socket that all processes accept from."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno, reason, f"{host}:{port}") from None
    listening.set_inheritable(True)
    return listening


def serve_process(options: Options, listening: socket.socket) -> int:
    """Serve until a signal; return the exit code."""
    guard, _ = application(options)
    config = uvicorn.Config(
        guard,
        http=limited(options.max_head_bytes, options.head_seconds),
        loop="uvloop",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(int(options.settings.shutdown_seconds), 1),
        ssl_certfile=options.settings.certfile,
        ssl_keyfile=options.settings.keyfile,
    )
    server = PredictionServer(config, guard, options)
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        return 0
    return 0 if server.started else 1


def serve(options: Options, listening: socket.socket, workers: int) -> int:
    """Serve with several processes, each replaced if it dies; return the exit code.

    They end with this one, whatever ends it: they hold the other side of a pipe.
    """
    if workers == 1:
        return serve_process(options, listening)
    children: set[int] = set()
    stopping = False
    pipe = os.pipe()

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for child in children:
            os.kill(child, number)

    for number in SIGNALS:
        signal.signal(number, stop)
    started = 0.0
    while True:
        while not stopping and len(children) < workers:
            started = time.monotonic()
            children.add(start(options, listening, pipe))
        try:
            child, _ = os.wait()
        except ChildProcessError:
            return 0
        children.discard(child)
        if not stopping:
            time.sleep(max(started + RESTART_SECONDS - time.monotonic(), 0.0))


def end_with_parent(pipe: int) -> None:
    """Shut down once the parent has ended, and with it its side of the pipe."""
    os.read(pipe, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def start(options: Options, listening: socket.socket, pipe: tuple[int, int]) -> int:
    """Start a process and return its id."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.close(pipe[1])
        threading.Thread(target=end_with_parent, args=(pipe[0],), daemon=True).start()
        os._exit(serve_process(options, listening))  # no cleanup of the parent's
    return child
