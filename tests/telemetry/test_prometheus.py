"""The rules for Prometheus, by Prometheus' own tool and against what a daemon exports."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from streamlearn.telemetry.catalogue import METRICS, PREFIX
from tests.telemetry.running import running, told, until

CONFIG = Path(__file__).parents[2] / "config"
PROMTOOL = shutil.which("promtool")
FILES = sorted([*CONFIG.glob("prometheus/*.yml"), *CONFIG.glob("grafana/**/*.json")])


def promtool(*arguments: str) -> None:
    if PROMTOOL is None:
        if "CI" in os.environ:
            pytest.fail("promtool is not installed: Debian's package prometheus has it")
        pytest.skip("promtool is not installed: Debian's package prometheus has it")
    done = subprocess.run(
        [PROMTOOL, *arguments], cwd=CONFIG / "prometheus", capture_output=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_the_configuration_and_its_rules_are_sound() -> None:
    promtool("check", "config", "prometheus.yml")


def test_every_alert_fires_and_resolves() -> None:
    promtool("test", "rules", "tests.yml")
    alerts = (CONFIG / "prometheus" / "alerts.yml").read_text()
    tests = (CONFIG / "prometheus" / "tests.yml").read_text()
    book = (CONFIG / "prometheus" / "README.md").read_text().lower()
    names = re.findall(r"alert: (\w+)", alerts)
    assert len(names) >= 8
    for name in names:
        tried = re.findall(rf"alertname: {name}(?:, exp_alerts: \[\])?", tests)
        assert len(tried) >= 3, f"{name} is not tried before, while and after"
        assert f"## {name}".lower() in book
        assert f"#{name.lower()}" in alerts


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_metrics_that_are_asked_for_are_there(file: Path) -> None:
    text = re.sub(r"\w+:streamlearn_\w+:\w+", "", file.read_text())
    for name in set(re.findall(rf"(?<![\w-]){PREFIX}(\w+)", text)):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in METRICS or METRICS[base].kind == "histogram", name


VARIABLES = {"$instance": ".*", "$learner": ".*", "$__all": ".*"}


def expressions() -> list[tuple[str, str]]:
    """Every panel's expression, its variables filled in."""
    found = []
    for file in sorted(CONFIG.glob("grafana/dashboards/*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel["targets"]:
                text = target["expr"]
                for name, value in VARIABLES.items():
                    text = text.replace(name, value)
                found.append((f"{file.stem}: {panel['title']}", text))
    return found


def test_a_real_prometheus_finds_data_for_every_panel(tmp_path: Path) -> None:
    program = shutil.which("prometheus")
    if program is None:
        if "CI" in os.environ:
            pytest.fail("prometheus is not installed: Debian's package has it")
        pytest.skip("prometheus is not installed: Debian's package has it")
    with running(tmp_path / "models") as (_, watching, address):
        text = (CONFIG / "prometheus" / "prometheus.yml").read_text()
        text = text.replace("127.0.0.1:9464", address.removeprefix("http://")).replace("5s", "1s")
        for name in ("recording.yml", "alerts.yml"):
            shutil.copy(CONFIG / "prometheus" / name, tmp_path)
        (tmp_path / "prometheus.yml").write_text(text)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with subprocess.Popen(
            [
                program,
                f"--config.file={tmp_path}/prometheus.yml",
                f"--storage.tsdb.path={tmp_path}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=error",
            ]
        ) as process:
            try:
                missing = expressions()

                def answered() -> bool:
                    missing[:] = [one for one in missing if not data(port, one[1])]
                    return not missing

                try:
                    until(answered, 30.0)
                except AssertionError:
                    pytest.fail(f"no data: {missing}")
                rules = query(port, "rules")["groups"]
                unsound = [r for group in rules for r in group["rules"] if r["health"] == "err"]
                assert not unsound
                assert not query(port, "alerts")["alerts"]
            finally:
                process.terminate()
    assert watching.serving


def query(port: int, what: str) -> Any:
    try:
        return told(f"http://127.0.0.1:{port}/api/v1/{what}")["data"]
    except (OSError, ValueError, KeyError):  # it is starting
        return {"result": [], "groups": [], "alerts": []}


def data(port: int, expression: str) -> bool:
    return bool(query(port, f"query?query={quote(expression)}")["result"])
