"""The Prometheus rules, by promtool and live: a real Prometheus scrapes daemons with faults.

In the live tests all times of the rules (`for`, windows, offsets, ages) are divided by SPEED, and
scraping happens every 0.1 s instead of 5 s; thresholds of events stay. `promtool test rules` tests
the rules with their real times.
"""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from streamlearn.daemon.checkpointing import writer
from streamlearn.telemetry.catalog import METRICS, PREFIX, SERVER_METRICS
from tests.support.faulty_stream import FAULTS, FaultyStream, Output, silent, unproved
from tests.support.missing import require_program
from tests.support.prometheus import data, firing, query, running_prometheus
from tests.support.running import running, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.telemetry import TelemetryServer

CONFIG = Path(__file__).parents[2] / "config"
SPEED = 200  # how much faster the live rules are
KNOWN = METRICS | SERVER_METRICS
FILES = sorted([*CONFIG.glob("prometheus/*.yml"), *CONFIG.glob("grafana/**/*.json")])


def promtool(*arguments: str) -> None:
    program = require_program("promtool")
    done = subprocess.run(
        [program, *arguments], cwd=CONFIG / "prometheus", capture_output=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_promtool_accepts_the_configuration_and_rules() -> None:
    promtool("check", "config", "prometheus.yml")


@pytest.mark.parametrize(
    ("alerting", "testing"), [("alerts.yml", "tests.yml"), ("serving.yml", "serving-tests.yml")]
)
def test_every_alert_fires_and_resolves(alerting: str, testing: str) -> None:
    promtool("test", "rules", testing)
    alerts = (CONFIG / "prometheus" / alerting).read_text()
    tests = (CONFIG / "prometheus" / testing).read_text()
    runbook = (CONFIG.parent / "docs" / "guides" / "alerts.md").read_text().lower()
    names = re.findall(r"alert: (\w+)", alerts)
    assert len(names) >= 8
    for name in names:
        tested = re.findall(rf"alertname: {name}(?:, exp_alerts: \[\])?", tests)
        assert len(tested) >= 3, f"{name} is not tested before, during and after the fault"
        assert f"## {name}".lower() in runbook
        assert f"#{name.lower()}" in alerts


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_queried_metric_exists(file: Path) -> None:
    text = re.sub(r"\w+:streamlearn_\w+:\w+", "", file.read_text())
    for name in set(re.findall(rf"(?<![\w-]){PREFIX}(\w+)", text)):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in KNOWN or KNOWN[base].kind == "histogram", name


# no daemon here has delayed labels, a stream without labels, or workers: only tests.yml tests these
WORKERS = {"StreamlearnWorkerStalled", "StreamlearnWorkersReplaced", "StreamlearnMergeSlow"}
ALERTS = {*FAULTS, *WORKERS, "StreamlearnLabelsUnmatched", "StreamlearnNoLabels"}
EMPTY = {*ALERTS, "instance:streamlearn_labels_unmatched:ratio_rate10m"}
VARIABLES = {"$instance": ".*", "$learner": ".*", "$__all": ".*"}


def expressions(names: str = "[!s]*") -> list[tuple[str, str]]:
    """Return the expressions of all panels, with their variables replaced.

    Those of the server are tested beside it (tests/serving/test_prometheus.py).
    """
    found = []
    for file in sorted(CONFIG.glob(f"grafana/dashboards/{names}.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel["targets"]:
                text = target["expr"]
                for name, value in VARIABLES.items():
                    text = text.replace(name, value)
                found.append((f"{file.stem}: {panel['title']}", text))
    return found


def faster(rules: str) -> str:
    """Return the rules with all times divided by SPEED."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}

    def shorter(found: re.Match[str]) -> str:
        return f"{found[1]}{1000.0 * int(found[2]) * units[found[3]] / SPEED:.0f}ms"

    scaled = re.sub(r"(\[|offset |for: )(\d+)([smh])\b", shorter, rules)
    age = r"(time\(\) - streamlearn_checkpoint_timestamp_seconds > )(\d+)"
    return re.sub(age, lambda found: f"{found[1]}{int(found[2]) / SPEED}", scaled)


class Live(NamedTuple):
    """Running daemons, and a Prometheus that scrapes them."""

    address: str
    ill: FaultyStream  # many events
    stalled: FaultyStream  # few events
    server: TelemetryServer  # of the third, with few events too


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    directory = tmp_path_factory.mktemp("live")
    require_program("prometheus")
    ill, stalled, quiet = FaultyStream(4000.0), FaultyStream(100.0), FaultyStream(100.0)
    targets, servers = [], []
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "BACKOFF_SECONDS", (0.1, 0.1))
        patch.setattr("streamlearn.daemon.collectors.telemetry.REFRESH_SECONDS", 0.3)
        patch.setattr("streamlearn.daemon.loop.TICK_SECONDS", 0.05)
        policy: dict[str, Any] = {"every_events": 10**9, "every_seconds": 0.3}
        for i, stream in enumerate((ill, stalled, quiet)):
            outputs = {"predictions": Output(stream)}
            daemon = running(directory / f"models-{i}", stream, sinks=outputs, **policy)
            _, watching, address = stack.enter_context(daemon)
            targets.append(address.removeprefix("http://"))
            servers.append(watching.server)
        for name in ("recording.yml", "alerts.yml"):
            rules = (CONFIG / "prometheus" / name).read_text("utf-8")
            (directory / name).write_text(faster(rules), encoding="utf-8")
        text = (CONFIG / "prometheus" / "prometheus.yml").read_text("utf-8")
        text = text.replace("5s", "100ms").replace("  - serving.yml\n", "")
        (directory / "prometheus.yml").write_text(text, encoding="utf-8")
        listed = json.dumps([{"targets": targets}])  # JSON is YAML
        (directory / "targets.yml").write_text(listed, encoding="utf-8")
        prometheus = stack.enter_context(running_prometheus(directory))
        yield Live(prometheus, ill, stalled, servers[2])


def test_without_faults_every_panel_has_data_and_no_alert_fires(live: Live) -> None:
    missing = expressions()

    def answered() -> bool:
        missing[:] = [one for one in missing if not data(live.address, one[1])]
        return not missing

    try:
        wait_until(answered, 30.0)
    except AssertionError:
        pytest.fail(f"no data: {missing}")
    groups = query(live.address, "rules")["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert not [rule for rule in rules.values() if rule["health"] == "err"]
    assert {name for name, rule in rules.items() if rule["type"] == "alerting"} == ALERTS

    def empty() -> set[str]:
        return {name for name, rule in rules.items() if not data(live.address, rule["query"])}

    wait_until(lambda: empty() == EMPTY)  # FAULTS names the fault of each
    assert not firing(live.address)


@pytest.mark.timeout(300)
def test_every_fault_fires_its_alert_which_then_resolves(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: data(live.address, "streamlearn_regret_bound"))
    own = {"stalled", "silent", "unproved"}
    with silent(live.server), unproved(monkeypatch):
        live.stalled.cause("stalled")
        live.ill.cause(*(set(FAULTS.values()) - own))
        fired: set[str] = set()

        def all_fired() -> bool:
            fired.update(firing(live.address))
            return fired == set(FAULTS)

        try:
            wait_until(all_fired, 30.0)
        except AssertionError:
            pytest.fail(f"did not fire: {set(FAULTS) - fired}")
        live.stalled.cause()
        live.ill.cause()
    wait_until(lambda: not firing(live.address), 40.0)
