"""Test an installed wheel: the library, the commands on files, the demo, and a daemon.

python .ci/smoke.py

It runs in an empty directory, so nothing is imported from a clone. On Windows it omits the demo and
the daemon.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

DAEMON = """
[source]
kind = "file"
paths = ["clicks.csv"]
follow = true
[format]
kind = "csv"
columns = ["user", "hour", "clicked"]
label = "clicked"
[predictions]
path = "predictions.jsonl"
[checkpoint]
path = "state"
[telemetry]
port = 0
[log]
format = "json"
"""
ROWS = [f"{user},{hour},{user == 'ann'}\n" for hour in range(24) for user in ("ann", "bob")]


def command(*words: str) -> str:
    """Run a command of streamlearn and return what it prints."""
    words = (sys.executable, "-m", "streamlearn", *words)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def library() -> None:
    """Learn, save, load and predict."""
    import streamlearn as sl  # noqa: PLC0415 - from here on, in an empty directory

    if "site-packages" not in (sl.__file__ or ""):
        raise SystemExit(f"{sl.__file__} is not installed")
    model = sl.LinearClassifier()
    for _ in range(50):
        model.learn_one({"user": "ann"}, True)
        model.learn_one({"user": "bob"}, False)
    model.save("library.model")
    if sl.LinearClassifier.load("library.model").predict_one({"user": "ann"}) is not True:
        raise SystemExit("the model has learned nothing")


def files() -> None:
    """Train on a file and predict it."""
    Path("clicks.csv").write_text("user,hour,clicked\n" + "".join(ROWS * 20), encoding="utf-8")
    command("train", "clicks.csv", "--label", "clicked", "--save", "clicks.model")
    if command("predict", "clicks.model", "clicks.csv").splitlines()[-2:] != ["True", "False"]:
        raise SystemExit("the predictions are wrong")


def daemon() -> None:
    """Run a daemon on a growing file, and read its metrics."""
    Path("daemon.toml").write_text(DAEMON, encoding="utf-8")
    words = [sys.executable, "-m", "streamlearn", "run", "daemon.toml"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            if process.stderr is None:
                raise SystemExit("the daemon has no log")
            logged = (json.loads(line) for line in process.stderr)
            page = next(event["page"] for event in logged if "page" in event)
            with Path("clicks.csv").open("a", encoding="utf-8") as file:
                file.writelines(ROWS)
            expected, deadline = 21 * len(ROWS), time.monotonic() + 60.0
            while metric(page, "streamlearn_events_learned_total") != expected:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise SystemExit("the daemon has not learned the file")
                time.sleep(0.2)
        finally:
            process.terminate()
        if process.wait(30) != 0:
            raise SystemExit(f"the daemon exited with {process.returncode}")


def metric(page: str, name: str) -> float:
    """Return the value of a metric that has one series."""
    with urllib.request.urlopen(f"{page}metrics", timeout=10) as response:  # noqa: S310 - ours
        lines = response.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name + "{"))


def main() -> None:
    """Run all, in an empty directory."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        os.chdir(directory)
        library()
        files()
        if os.name == "posix":
            command("demo", "--events", "20000", "--plain", "--no-page")
            daemon()
        os.chdir(Path(__file__).parent)
    print("the wheel works")


if __name__ == "__main__":
    main()
