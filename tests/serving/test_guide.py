"""The guide of docs/guides/serving.md, command by command."""

import json
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "serving.md").read_text(encoding="utf-8")


def block(start: str) -> str:
    """Return the first code block that starts so."""
    found: list[str] = re.findall(r"```\w*\n(.*?)```", GUIDE, re.DOTALL)
    return next(text for text in found if start in text)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.timeout(180)
def test_from_zero_to_a_scoring_service(tmp_path: Path) -> None:
    port = free_port()
    config = block("# service.toml").replace("/tmp/clicks", str(tmp_path / "clicks"))  # noqa: S108
    config = config.replace("port = 8000", f"port = {port}") + "[telemetry]\nport = 0\n"
    (tmp_path / "service.toml").write_text(config)
    commands = [shlex.split(line) for line in block("streamlearn run service.toml").splitlines()]
    assert [words[1] for words in commands] == ["run", "serve"]
    curl = shlex.split(block("curl -s http://127.0.0.1:8000/v1/predict"))
    example = json.loads(block('{"label":false'))
    inference = block('{"inputs"')
    processes = []
    try:
        for words in commands:
            command = [sys.executable, "-m", "streamlearn", *words[1:]]
            processes.append(
                subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, text=True)
            )
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            answer = ask(client, curl[-1])
            assert answer.keys() == example.keys()
            first, end = answer["version"], time.monotonic() + 60.0
            while ask(client, curl[-1])["version"] == first:
                assert time.monotonic() < end, "no newer version"
                time.sleep(0.2)
            found = client.post("/v2/models/default/infer", content=inference).json()
            assert [len(one["data"]) for one in found["outputs"]] == [2, 2, 2]
            assert "Try a prediction" in client.get("/").text
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            assert process.wait(30) == 0


def ask(client: httpx.Client, body: str) -> dict[str, object]:
    """Ask until the server has a model that knows both labels."""
    end = time.monotonic() + 120.0
    while time.monotonic() < end:
        try:
            answer = client.post("/v1/predict", content=body)
        except httpx.TransportError:
            time.sleep(0.1)
            continue
        if answer.status_code == 200 and "probability" in answer.json():
            found: dict[str, object] = answer.json()
            return found
        assert answer.status_code in {200, 503}
        time.sleep(0.1)
    raise TimeoutError
