"""The loop of docs/guides/serving.md, command by command, over a real broker."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tests.broker.apache_kafka import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Producer

    from tests.broker.conftest import MakeTopic

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "serving.md"
SECONDS = 60.0


def block(start: str) -> str:
    """Return the code block that has this text."""
    found: list[str] = re.findall(r"```\w*\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    (one,) = [text for text in found if start in text]
    return one


def until(condition: Callable[[], Any]) -> Any:
    """Wait until something is so; return it."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise TimeoutError


def test_the_whole_loop(
    bootstrap: str, make_topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    impressions, clicks, port = (
        make_topic(name="impressions"),
        make_topic(name="clicks"),
        free_port(),
    )
    text = block("# loop.toml").replace("localhost:9092", bootstrap)
    text = text.replace("/tmp/loop", str(tmp_path / "loop"))  # noqa: S108
    text = text.replace('"impressions"', f'"{impressions}"').replace('"clicks"', f'"{clicks}"')
    text += f"\n[serve]\nport = {port}\n[telemetry]\nport = 0\n"
    (tmp_path / "loop.toml").write_text(text)
    environ = {**os.environ, "PYTHONWARNINGS": "error"}

    def command(line: str) -> list[str]:
        return [sys.executable, "-m", "streamlearn", *shlex.split(line, comments=True)[1:]]

    def run(line: str) -> str:
        done = subprocess.run(
            command(line), cwd=tmp_path, capture_output=True, text=True, check=False, env=environ
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    processes = [
        subprocess.Popen(command(line), cwd=tmp_path, stderr=subprocess.DEVNULL)
        for line in block("streamlearn run loop.toml").splitlines()
    ]
    curl = shlex.split(block('\'{"user": "u1"'))
    example = json.loads(block('"arm":"champion","id"'))
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0) as client:

            def ask() -> dict[str, Any]:
                try:
                    answer = client.post("/v1/predict", content=curl[-1])
                except httpx.TransportError:
                    return {}
                return dict(answer.json()) if answer.status_code == 200 else {}

            for clicked in (True, False):
                name = until(ask)["id"]
                label = {"id": name, "clicked": clicked}
                producer.produce(clicks, json.dumps(label).encode(), name)
                assert producer.flush(10) == 0
            answer = until(lambda: "probability" in (found := ask()) and found)
            assert answer.keys() == example.keys()
            assert answer["arm"] == example["arm"]
            promote, history, revert = block("serve promote").strip().splitlines()
            run(promote)
            until(lambda: ask()["learner"] == "challenger")
            assert "challenger" in run(history)
            run(revert)
            until(lambda: ask()["learner"] == "champion")
            producer.produce(clicks, json.dumps({"id": answer["id"], "clicked": True}).encode())
            assert producer.flush(10) == 0
            arms = block("serve arms").strip()
            until(lambda: json.loads(run(f"{arms} --json")))
            assert "champion" in run(arms)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            assert process.wait(30) == 0
