"""docker-compose.yml and its image are valid, and their commands run without Docker."""

from __future__ import annotations

import fnmatch
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest
import yaml

from streamlearn import config
from streamlearn.estimators import checkpoints
from tests.broker.apache_kafka import Unavailable, wait_for_port
from tests.project.compose.native import ROOT, Native, compose, health_check
from tests.support.missing import require_program, skip_unless_ci
from tests.support.prometheus import data
from tests.support.running import wait_until

if TYPE_CHECKING:
    from pathlib import Path

SERVICES = compose()["services"]
TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
CLICKS = config.load(ROOT / "config" / "clicks.toml")


def test_old_and_new_compose_accept_the_file() -> None:
    assert set(yaml.safe_load(TEXT)) == {"services", "volumes"}  # no name, for 1.29; no version
    command = [
        require_program("docker-compose"),
        "--file",
        str(ROOT / "docker-compose.yml"),
        "--profile",
        "fleet",
        "config",
    ]
    read = subprocess.run(command, capture_output=True, check=False, cwd=ROOT)
    assert read.returncode == 0, read.stderr.decode()
    assert set(yaml.safe_load(read.stdout)["services"]) == set(SERVICES)


def test_services_start_when_their_dependencies_are_healthy() -> None:
    assert set(SERVICES) >= {"kafka", "streamlearn", "producer", "prometheus", "grafana"}
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in SERVICES
            if how["condition"] == "service_healthy":
                checked = SERVICES[other].get("healthcheck") or SERVICES[other].get("build")
                assert checked, f"{name} waits for {other}, which has no health check"
            else:
                assert how["condition"] == "service_completed_successfully"
                assert "restart" not in SERVICES[other]
    order = [*SERVICES]
    for name, service in SERVICES.items():
        assert all(
            order.index(other) < order.index(name) for other in service.get("depends_on", {})
        )


def test_mounted_files_exist_and_state_is_in_volumes() -> None:
    named = set(compose()["volumes"])
    for name, service in SERVICES.items():
        for volume in service.get("volumes", ()):
            source, target, *mode = volume.split(":")
            assert target.startswith("/")
            if source.startswith("."):
                assert (ROOT / source).exists(), f"{name}: {source}"
                assert mode == ["ro"]
            else:
                named.remove(source)
    assert not named
    state = SERVICES["streamlearn"]["environment"]["STREAMLEARN_STATE"]
    assert f"checkpoints:{state}" in SERVICES["streamlearn"]["volumes"]
    assert f"STREAMLEARN_STATE={state}" in DOCKERFILE


def test_images_are_pinned_and_ports_are_local() -> None:
    for name, service in SERVICES.items():
        if "build" not in service:
            assert re.fullmatch(r"[\w/]+:v?\d+(\.\d+)+", service["image"]), name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")
    for variable in re.findall(r"(?<!\$)\$\{?\w+[^}\s]*\}?", re.sub(r"#.*", "", TEXT)):
        assert re.fullmatch(r"\$\{[A-Z_]+:-[^}]+\}", variable), f"{variable} has no default"


def test_our_services_cannot_write_outside_their_volumes_or_gain_privileges() -> None:
    ours = [service for service in SERVICES.values() if "build" in service]
    assert len(ours) == 3
    for service in ours:
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_the_profile_fleet_learns_the_same_clicks_on_ray() -> None:
    fleet = SERVICES["fleet"]
    assert [name for name, one in SERVICES.items() if "profiles" in one] == ["fleet"]
    given = config.load(ROOT / "config" / fleet["command"][-1].rpartition("/")[2])
    assert given.fleet.workers > 1
    clicks = CLICKS.source
    assert isinstance(clicks, config.KafkaSourceConfig)
    assert isinstance(given.source, config.KafkaSourceConfig)
    assert given.source == msgspec.structs.replace(clicks, group_id=given.source.group_id)
    assert given.checkpoint is not None
    assert CLICKS.checkpoint is not None
    assert given.checkpoint.path != CLICKS.checkpoint.path
    assert "ray" in fleet["build"]["args"]["EXTRAS"].split(",")
    default = re.search(r"^ARG EXTRAS=(.*)$", DOCKERFILE, re.MULTILINE)
    assert default is not None
    assert fleet["build"]["args"]["EXTRAS"] == f"{default[1]},ray"
    targets = yaml.safe_load((ROOT / "config" / "prometheus" / "targets-fleet.yml").read_text())
    assert targets == [{"targets": ["streamlearn:9464", "fleet:9464"]}]


def test_the_topics_of_the_configuration_are_created() -> None:
    source = CLICKS.source
    assert isinstance(source, config.KafkaSourceConfig)
    made = re.search(r"for topic in ([\w -]+);", SERVICES["topics"]["command"][-1])
    assert made is not None
    outputs = [CLICKS.predictions, CLICKS.dead_letters]
    assert made[1].split() == [*source.topics, *(getattr(one, "topic", None) for one in outputs)]
    command = SERVICES["producer"]["command"]
    assert command[command.index("--topic") + 1] in source.topics


def test_the_image_is_slim_and_not_root() -> None:
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]
    assert all(stage.split()[0].endswith("-slim") for stage in stages)
    assert "gcc" in stages[0]
    image = stages[-1]
    assert not re.search(r"\b(gcc|pip)\b", image)
    user = re.search(r"^USER (\d+)$", image, re.MULTILINE)  # a number: Kubernetes can check it
    assert user is not None
    assert int(user[1]) > 0
    assert image.index("USER") < image.index("ENTRYPOINT")
    assert "/healthz" in health_check()[-1]


def test_the_image_is_built_only_from_what_it_needs() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]

    def sent(path: str) -> bool:
        """Return whether Docker sends a file; the last matching rule decides."""
        included = True
        parts = path.split("/")
        ends = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
        for rule in rules:
            pattern = rule.removeprefix("!").removeprefix("**/")
            names = parts if "**" in rule else ends
            if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                included = rule.startswith("!")
        return included

    needed = [
        "pyproject.toml",
        "setup.py",
        "README.md",
        "LICENSE",
        "streamlearn/estimators/linear.py",
    ]
    needed += ["streamlearn/rules/requirements.py", "streamlearn/telemetry/page/index.html"]
    for path in needed:
        assert (ROOT / path).exists()
        assert sent(path), path
    compiled = ["streamlearn/a.so", "streamlearn/rules/b.c", "streamlearn/__pycache__/c.pyc"]
    for path in [".git/config", "tests/project/compose/native.py", "state/models", *compiled]:
        assert not sent(path), path


def healthy(check: list[str], environ: dict[str, str]) -> bool:
    """Return whether a health check succeeds."""
    done = subprocess.run(check, env=environ, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


@pytest.mark.timeout(300)
def test_the_commands_of_the_services_run_without_docker(tmp_path: Path) -> None:
    prometheus = require_program("prometheus")
    native = Native(tmp_path)
    try:
        try:
            native.start_kafka()
        except Unavailable as reason:
            skip_unless_ci(reason)
        listening = f"--web.listen-address={native.address('9090')}"
        native.start("prometheus", prometheus, more=(listening,))
        assert wait_for_port(native.ports["19092"], 60), native.output("kafka")
        native.create_topics()
        program = (sys.executable, "-m", "streamlearn")
        daemon = native.start("streamlearn", *program)
        check = [sys.executable, *health_check()[1:]]
        environ = native.environment("streamlearn", tmp_path)
        assert wait_for_port(native.ports["9464"], 60), native.output("streamlearn")
        wait_until(lambda: healthy(check, environ))
        producer = native.start("producer", *program)
        address = native.address("9090")
        for asked in ('up{job="streamlearn"} == 1', "streamlearn_events_learned_total > 0"):
            wait_until(lambda asked=asked: data(address, asked), 60.0)
        best = data(address, "streamlearn_currently_best")
        assert {one["metric"]["learner"] for one in best} == {
            learner.name for learner in CLICKS.learners
        }
        producer.send_signal(signal.SIGINT)
        assert producer.wait(20) == 130, native.output("producer")
        daemon.terminate()
        assert daemon.wait(20) == 0, native.output("streamlearn")
        kept = checkpoints.newest(tmp_path / "streamlearn" / "state" / "clicks")
        assert kept is not None
        assert kept[1]["counts"]["learned"] > 0
    finally:
        native.stop()
