"""The watchdog ends a process whose loop stalls, with an exit code and the stacks in the log."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime
from typing import Any

import pytest

from streamlearn.daemon.process.exits import Exit

HANGS = {
    "waits": "threading.Event().wait()",
    "holds the GIL": "ctypes.PyDLL(None).sleep(60)",
    "spins": "exec('while True: pass')",
}
PROGRAM = """
import ctypes, sys, threading, time
from streamlearn.daemon.process.log import Log
from tests.support.streams import ShuffledSource, make_loop

class Hanging(ShuffledSource):
    def poll(self, seconds):
        if max(self.positions.values()) > 50:
            sys.stderr.write("hangs now\\n")
            self.hang()
        return super().poll(seconds)

    def hang(self):
        {hang}

    def close(self):
        {close}

loop = make_loop(None, Hanging(1, 10**9), watchdog_seconds={seconds}, shutdown_seconds=1.0)
sys.exit(loop.run())
"""


def started(hang: str, close: str = "pass", seconds: float = 0.5) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(hang=hang, close=close, seconds=seconds)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command with this interpreter's path to its end."""
    return subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def events(log: str) -> list[dict[str, Any]]:
    """The lines of the log, without the stacks between them."""
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("hang", HANGS)
def test_stalled_loop_ends_the_process(hang: str) -> None:
    with started(HANGS[hang]) as process:
        _, output = process.communicate(timeout=30)
    assert process.returncode == Exit.WATCHDOG
    assert events(output.partition("hangs now")[2])[-1]["exit"] == Exit.WATCHDOG
    assert "in hang" in output  # the stacks
    assert "in _learn" in output
    for line in output.partition("hangs now")[0].splitlines():
        json.loads(line)


@pytest.mark.parametrize("style", ["json", "console"])
def test_log_line_has_the_time_of_the_end(style: str) -> None:
    program = f"""
import sys, time
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.process.watchdog import Watchdog
Watchdog(2.0, Log("{style}")).start()
sys.stderr.write(f"{{time.time()}}\\n")
time.sleep(60)
"""
    done = ended([sys.executable, "-c", program])
    assert done.returncode == Exit.WATCHDOG
    began, line, *_ = done.stderr.splitlines()
    if style == "json":
        logged = datetime.fromisoformat(json.loads(line)["time"]).timestamp()
        assert logged > float(began) + 0.5  # in whole seconds, 2 later
    else:
        assert re.match(r"\d\d:\d\d:\d\d error    loop stalled", line)


def test_shutdown_that_hangs_ends_with_its_exit_code() -> None:
    # 1.0 seconds for all of the shutdown; the source never closes
    with started("time.sleep(0.001)", "ctypes.PyDLL(None).sleep(60)", 60.0) as process:
        assert process.stderr is not None
        while "hangs now" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        _, output = process.communicate(timeout=30)
    assert process.returncode == Exit.OK
    assert events(output)[-1]["event"] == "shutdown timed out"


def test_suspended_process_is_not_stalled() -> None:
    with started("time.sleep(0.001)", seconds=0.5) as process:
        assert process.stderr is not None
        while "hangs now" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.0)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == Exit.OK


@pytest.mark.parametrize("stderr", ["open", "closed"])
def test_interpreter_that_hangs_at_exit_is_ended(stderr: str) -> None:
    program = """
import sys, threading
from streamlearn.cli.main import process
import streamlearn.cli.main
streamlearn.cli.main.EXIT_SECONDS = 0.3
sys.argv[1:] = ["completion", "bash"]
threading.Thread(target=threading.Event().wait).start()
process()
"""
    command = [sys.executable, "-c", program]
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    done = ended(command if stderr == "open" else shell)
    assert done.returncode == 0
    assert "complete" in done.stdout
    if stderr == "open":
        assert "shutdown timed out" in done.stderr
        assert "in wait" in done.stderr


def test_slow_exit_that_advances_is_not_ended() -> None:
    # as a process that a busy machine lets run for some milliseconds now and then
    program = """
import atexit, sys, time
import streamlearn.cli.main

def slowly():
    for _ in range(12):
        time.sleep(0.1)
        end = time.process_time() + 0.01
        while time.process_time() < end:
            pass
    print("ended")

atexit.register(slowly)
streamlearn.cli.main.EXIT_SECONDS = 0.6
sys.argv[1:] = ["completion", "bash"]
streamlearn.cli.main.process()
"""
    done = ended([sys.executable, "-c", program])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("ended\n")


@pytest.mark.parametrize(
    "last",
    [
        "ctypes.CDLL(None).__cxa_atexit(ctypes.CDLL(None).sleep, 60, None)",
        "ctypes.CDLL(None).signal(signal.SIGUSR2, ctypes.CDLL(None).abort); time.sleep(60)",
    ],
    ids=["a library hangs after the interpreter has ended", "dumping the stacks crashes"],
)
def test_forced_exit_keeps_its_code(last: str) -> None:
    program = f"""
import ctypes, signal, sys, time
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.process.watchdog import exit_within
exit_within(1.0, {Exit.FENCED:d}, Log("json"))
{last}
sys.exit({Exit.FENCED:d})
"""
    done = ended([sys.executable, "-c", program])
    assert done.returncode == Exit.FENCED
    assert [line["event"] for line in events(done.stderr)] == ["shutdown timed out"]
