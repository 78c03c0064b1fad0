"""The rules for Prometheus, by Prometheus' own tool and against what a daemon exports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from streamlearn.telemetry.catalogue import METRICS, PREFIX

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
