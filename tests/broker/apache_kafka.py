"""A real Apache Kafka, one broker in KRaft mode, for tests and benchmarks: no Docker, no root.

Java and Maven are all it takes. The jars are fetched once into the user's cache. The broker listens
on three ports: in plain text, with TLS and a password (SCRAM, PLAIN or an OAuth token), and with
TLS and a client's certificate. Whoever comes without a password may do everything; `alice` may do
what no rule denies her.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

VERSION = "4.3.1"
PASSWORD = "in-wonderland"  # noqa: S105 -- of a user made here, for an hour
USER = "alice"
HOST = "127.0.0.1"

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>streamlearn</groupId><artifactId>broker</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
      <version>2.25.4</version>
    </dependency>
  </dependencies>
</project>
"""

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers={host}:{controller}
listeners=PLAINTEXT://{host}:{plain},SECURE://{host}:{secure},TLS://{host}:{tls},\
CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{plain},SECURE://{host}:{secure},TLS://{host}:{tls}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,TLS:SSL
log.dirs={directory}/data
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
# A client that asks for a mistyped topic would make it: the tests see to it that ours do not.
auto.create.topics.enable=true
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN,OAUTHBEARER
listener.name.secure.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
listener.name.secure.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
unsecuredLoginStringClaim_sub="broker";
ssl.keystore.type=PEM
ssl.keystore.location={directory}/keystore.pem
ssl.truststore.type=PEM
ssl.truststore.location={directory}/client.pem
listener.name.tls.ssl.client.auth=required
"""

LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


class Unavailable(Exception):
    """What is missing to run a broker here."""


def jars() -> Path:
    """Return the folder of Apache Kafka's jars, fetched if they are not in the user's cache."""
    missing = [tool for tool in ("java", "openssl") if shutil.which(tool) is None]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "streamlearn" / f"kafka-{VERSION}"
    if not folder.is_dir() and shutil.which("mvn") is None:
        missing.append("mvn")
    if missing:
        raise Unavailable(f"Apache Kafka needs {' and '.join(missing)} on the path: Java 17, Maven")
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            Path(work, "pom.xml").write_text(POM, encoding="utf-8")
            fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
            done = subprocess.run(
                [*fetch, f"-DoutputDirectory={work}/lib"],
                cwd=work,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise Unavailable(f"Maven could not fetch Apache Kafka: {done.stdout[-2000:]}")
            try:
                Path(work, "lib").rename(folder)  # whole or not at all
            except OSError:
                if not folder.is_dir():  # otherwise another run was first
                    raise
    return folder


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, seconds: float) -> bool:
    """Wait until somebody listens; False if nobody does in this time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return True
    return False


class ApacheKafka:
    """One broker, its data in `directory`: what was written is there again after a restart."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.classpath = f"{jars()}/*"
        self.ports = {name: free_port() for name in ("plain", "secure", "tls", "controller")}
        self.bootstrap = f"{HOST}:{self.ports['plain']}"
        self.secure = f"{HOST}:{self.ports['secure']}"
        self.tls = f"{HOST}:{self.ports['tls']}"
        self.process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._certificates()
        self._format()

    @property
    def cafile(self) -> str:
        """The certificate that clients are to trust."""
        return str(self.directory / "broker.pem")

    @property
    def certfile(self) -> str:
        """A certificate that this broker trusts."""
        return str(self.directory / "client.pem")

    @property
    def keyfile(self) -> str:
        """Its key."""
        return str(self.directory / "client.key")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start, and come back when clients are served."""
        self._log = (self.directory / "broker.log").open("ab")
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        options.append(f"-Dlog4j2.configurationFile={self.directory}/log4j2.properties")
        # One whose tests were killed ends too, where the system can see to that.
        mortal = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        self.process = subprocess.Popen(
            [*mortal, "java", *options, "-cp", self.classpath, "kafka.Kafka", self._properties],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=self.directory,
            start_new_session=True,  # Ctrl-C at the tests is not for the broker
        )
        if not wait_for_port(self.ports["plain"], 60):
            self.stop()
            log = (self.directory / "broker.log").read_text(encoding="utf-8", errors="replace")
            raise Unavailable(f"Apache Kafka did not start: {log[-3000:]}")

    def stop(self) -> None:
        """Stop in an orderly way, as for a restart; the data stay."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def _properties(self) -> str:
        return str(self.directory / "server.properties")

    def _certificates(self) -> None:
        for name in ("broker", "client"):
            key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
            self._run(
                *("openssl", "req", "-x509", *key, "-days", "3", "-subj", f"/CN={name}"),
                *("-addext", f"subjectAltName=DNS:localhost,IP:{HOST}"),
                *("-keyout", f"{name}.key", "-out", f"{name}.pem"),
            )
        both = [self.directory / f"broker.{part}" for part in ("key", "pem")]
        store = self.directory / "keystore.pem"
        store.write_text("".join(path.read_text("ascii") for path in both), encoding="ascii")

    def _format(self) -> None:
        text = PROPERTIES.format(
            host=HOST, directory=self.directory, user=USER, password=PASSWORD, **self.ports
        )
        Path(self._properties).write_text(text, encoding="utf-8")
        logging = self.directory / "log4j2.properties"
        logging.write_text(LOGGING, encoding="utf-8")
        tool = ["java", "-XX:TieredStopAtLevel=1", "-cp", self.classpath, "kafka.tools.StorageTool"]
        scram = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
        self._run(
            *(*tool, "format", "--standalone", "-t", "c3RyZWFtbGVhcm4tdGVzdA"),
            *("-c", self._properties, "--add-scram", scram),
        )

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, cwd=self.directory, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Unavailable(f"{' '.join(command[:2])}: {done.stdout}{done.stderr}")
