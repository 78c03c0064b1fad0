"""Daemons as processes of their own, without a new interpreter for each.

A server that has imported everything forks one for each request; importing takes longer than most
of what these daemons do.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]


class Server:
    """What forks daemons, and waits for their ends."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def start(self, arguments: list[str], log: Path, environ: dict[str, str]) -> Process:
        """Fork a process that runs the command `streamlearn`."""
        return Process(self, self.ask([arguments, str(log), environ]))

    def ask(self, request: Any) -> Any:
        """Send a request, and wait for its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


class Process:
    """One daemon, as `subprocess.Popen` has it."""

    def __init__(self, server: Server, pid: int) -> None:
        self.server = server
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self.returncode is None:
            self.returncode = self.server.ask(self.pid)
        return self.returncode

    def wait(self, seconds: float) -> int:
        """Its exit code, once it has ended."""
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None:
            assert time.monotonic() < deadline, f"still running after {seconds:.0f} s"
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def serve() -> None:
    """Fork a daemon for each line of arguments, or tell the exit code of one."""
    import confluent_kafka  # noqa: F401, PLC0415 - so that no daemon has to
    import kafka  # noqa: F401, PLC0415

    from streamlearn.cli.main import process  # noqa: PLC0415 - only in the server

    running: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, int):
            pid, status = os.waitpid(request, os.WNOHANG)
            answer: int | None = os.waitstatus_to_exitcode(status) if pid else None
            running.discard(pid)
        else:
            answer = os.fork()
            if answer == 0:
                arguments, log, environ = request
                os.environ.update(environ)
                sys.argv[:] = ["streamlearn", *arguments]
                os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), 2)
                os.dup2(os.open(os.devnull, os.O_RDWR), 0)
                os.dup2(0, 1)
                process()
            running.add(answer)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for pid in running:  # the tests have ended, or were killed
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    serve()
