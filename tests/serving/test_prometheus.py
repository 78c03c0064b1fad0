"""The rules and the dashboard of the server, live: a real Prometheus scrapes a real server."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest

from streamlearn.daemon.served_loss import ServedLosses
from tests.serving.conftest import model, publish
from tests.serving.conftest import running as running_server
from tests.serving.test_split import SPLIT
from tests.support.prometheus import data, firing, query, running_prometheus
from tests.support.running import running, wait_until
from tests.telemetry.test_prometheus import CONFIG, expressions, faster

if TYPE_CHECKING:
    from pathlib import Path


def served() -> ServedLosses:
    """Return the losses of two arms, of which the second is worse."""
    found, rng = ServedLosses(), np.random.default_rng(0)
    for learner, loss in (("one", 0.4), ("two", 0.6)):
        found.number_of(learner, learner)
        losses = rng.normal(loss, 0.1, size=500)
        found.arms[learner, learner].add(rng.integers(0, 1024, 500), losses, np.ones(500))
    return found


@pytest.mark.timeout(120)
def test_every_panel_has_data_and_alerts_fire(tmp_path: Path) -> None:
    for name in ("one", "two"):
        publish(tmp_path / "serving", model(), 1, name)
    config = tmp_path / "serve.toml"
    config.write_text(SPLIT.format(path=tmp_path))
    rules = (CONFIG / "prometheus" / "serving.yml").read_text("utf-8")
    (tmp_path / "serving.yml").write_text(faster(rules))
    with ExitStack() as stack:
        daemon, _, address = stack.enter_context(running())
        server, client = stack.enter_context(running_server(str(config)))
        targets = {"targets": address, "targets-serving": server.url}
        for name, url in targets.items():
            listed = json.dumps([{"targets": [url.removeprefix("http://")]}])  # JSON is YAML
            (tmp_path / f"{name}.yml").write_text(listed)
        text = (CONFIG / "prometheus" / "prometheus.yml").read_text("utf-8").replace("5s", "100ms")
        text = text.replace("  - recording.yml\n  - alerts.yml\n", "")
        (tmp_path / "prometheus.yml").write_text(text)
        prometheus = stack.enter_context(running_prometheus(tmp_path))
        daemon.pipeline.learners.served = served()
        missing = expressions("serving")

        def answered() -> bool:
            client.post("/v1/predict", json=[{"who": {"user": f"u{i}"}} for i in range(20)])
            client.post("/v1/predict", content=b"[5]")
            missing[:] = [one for one in missing if not data(prometheus, one[1])]
            return not missing

        try:
            wait_until(answered, 30.0)
        except AssertionError:
            pytest.fail(f"no data: {missing}")
        groups = query(prometheus, "rules")["groups"]
        assert not [rule for one in groups for rule in one["rules"] if rule["health"] == "err"]
        # the second arm is worse, and what is served grows old, or is gone
        wait_until(lambda: "StreamlearnArmWorse" in firing(prometheus), 40.0)
        assert firing(prometheus) <= {"StreamlearnArmWorse", "StreamlearnServeSnapshotStale"}
        server.process.kill()
        with pytest.raises(httpx.TransportError):
            client.get("/metrics")
        wait_until(lambda: "StreamlearnServeDown" in firing(prometheus), 20.0)
