"""The services of docker-compose.yml as local processes, without Docker.

Commands, environments and configuration files are those of the services, with three differences:
ports are free local ports, the paths of a container are in a directory of its own, and a script
replaces Kafka's topic tool, which is not in the broker's jars.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.broker.apache_kafka import HOST, free_ports, jars

ROOT = Path(__file__).resolve().parents[3]
PORTS = ("19092", "9092", "9093", "9464", "9090")  # of the containers
TOPICS_TOOL = f"""\
#!{sys.executable}
import argparse
from confluent_kafka.admin import AdminClient, NewTopic
parser = argparse.ArgumentParser()
for flag in ("--create", "--if-not-exists"):
    parser.add_argument(flag, action="store_true", required=True)
for option in ("--bootstrap-server", "--topic", "--partitions"):
    parser.add_argument(option, required=True)
given = parser.parse_args()
admin = AdminClient({{"bootstrap.servers": given.bootstrap_server}})
made = admin.create_topics([NewTopic(given.topic, int(given.partitions), 1)])
made[given.topic].result()
"""


def compose() -> dict[str, Any]:
    """Return the file with the defaults of its variables."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    filled = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
    loaded: dict[str, Any] = yaml.safe_load(filled.replace("$$", "$"))
    return loaded


def health_check() -> list[str]:
    """Return the health check command of the image."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    found = re.search(r"^HEALTHCHECK .*?CMD (\[.*\])$", text, re.MULTILINE)
    assert found is not None
    command: list[str] = json.loads(found[1])
    return command


class Native:
    """Services that are started one by one and stopped together."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.services: dict[str, Any] = compose()["services"]
        self.ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        self.running: list[subprocess.Popen[bytes]] = []

    def address(self, port: str) -> str:
        """Return the local address of a container's port."""
        return f"{HOST}:{self.ports[port]}"

    def localized(self, text: str) -> str:
        """Replace addresses by local ones."""
        pattern = rf"(?:\b(?:\w+|0\.0\.0\.0|127\.0\.0\.1))?:({'|'.join(PORTS)})\b"
        return re.sub(pattern, lambda found: self.address(found[1]), text)

    def root(self, service: str) -> Path:
        """Return the directory that replaces the container's root, with its volumes."""
        root = self.directory / service
        for volume in self.services[service].get("volumes", ()):
            source, target = volume.split(":")[:2]
            place = root / target.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if not source.startswith("."):
                place.mkdir()
            elif (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place)
            else:
                place.write_text(
                    self.localized((ROOT / source).read_text("utf-8")), encoding="utf-8"
                )
        return root

    def environment(self, service: str, root: Path) -> dict[str, str]:
        """Return the environment of a service."""
        own = self.services[service].get("environment", {})
        own = {name: self.localized(self.inside(str(value), root)) for name, value in own.items()}
        ours = {"STREAMLEARN_HOST": HOST, "STREAMLEARN_PORT": str(self.ports["9464"])}
        return {**os.environ, "PYTHONPATH": str(ROOT), **own, **ours}

    @staticmethod
    def inside(text: str, root: Path) -> str:
        """Replace absolute paths of the container by local ones."""
        return re.sub(
            r"(?<![\w/.:])/(?=(?:etc|config|prometheus|state|opt|var)\b)", f"{root}/", text
        )

    def command(self, service: str, root: Path, *program: str) -> list[str]:
        """Return the command of a service."""
        return [*program, *(self.inside(part, root) for part in self.services[service]["command"])]

    def start(self, service: str, *program: str, more: tuple[str, ...] = ()) -> Any:
        """Start a service's program with its command."""
        root = self.root(service)
        command = [*self.command(service, root, *program), *more]
        return self._start(service, command, self.environment(service, root))

    def _start(self, service: str, command: list[str], environ: dict[str, str]) -> Any:
        with (self.directory / f"{service}.log").open("wb") as log:
            process = subprocess.Popen(
                command, env=environ, cwd=self.directory, stdout=log, stderr=subprocess.STDOUT
            )
        self.running.append(process)
        return process

    def start_kafka(self) -> None:
        """Start a broker with the properties that its image derives from the environment."""
        root = self.root("kafka")
        environ = self.environment("kafka", root)
        own = [name for name in self.services["kafka"]["environment"] if name != "CLUSTER_ID"]
        lines = [
            f"{name.removeprefix('KAFKA_').lower().replace('_', '.')}={environ[name]}"
            for name in own
            if name != "KAFKA_HEAP_OPTS"
        ]
        properties = root / "server.properties"
        properties.write_text("\n".join(lines), encoding="utf-8")
        java = ["java", environ["KAFKA_HEAP_OPTS"], "-XX:TieredStopAtLevel=1"]
        java += ["-XX:+UseSerialGC", "-cp", f"{jars()}/*"]
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", environ["CLUSTER_ID"]]
        subprocess.run([*tool, "-c", str(properties)], check=True, capture_output=True)
        self._start("kafka", [*java, "kafka.Kafka", str(properties)], environ)

    def create_topics(self) -> None:
        """Run the service that creates the topics and exits."""
        tool = self.directory / "topics" / "opt" / "kafka" / "bin" / "kafka-topics.sh"
        tool.parent.mkdir(parents=True)
        tool.write_text(TOPICS_TOOL, encoding="utf-8")
        tool.chmod(0o755)
        assert self.start("topics").wait(60) == 0, self.output("topics")

    def output(self, service: str) -> str:
        """Return the output of a service."""
        return (self.directory / f"{service}.log").read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """Stop all services, the last one first."""
        for process in reversed(self.running):
            process.terminate()
        for process in self.running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
