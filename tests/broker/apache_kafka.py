"""A real Apache Kafka in KRaft mode, one broker or three, for tests: no Docker, no root.

Java and Maven are all it takes. The jars are fetched once into the user's cache. `ApacheKafka` is
one broker that listens on four ports: in plain text, with TLS and a password (SCRAM, PLAIN or an
OAuth token), the same with a login that must be repeated every two seconds, and with TLS and a
client's certificate. Whoever comes without a password may do everything; `alice` may do what no
rule denies her. `Cluster` is three brokers in plain text.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
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
listeners=PLAINTEXT://{host}:{plain},SECURE://{host}:{secure},BRIEF://{host}:{brief},\
TLS://{host}:{tls},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{plain},SECURE://{host}:{secure},BRIEF://{host}:{brief},\
TLS://{host}:{tls}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,\
BRIEF:SASL_SSL,TLS:SSL
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
listener.name.brief.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.brief.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
listener.name.brief.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
unsecuredLoginStringClaim_sub="broker";
listener.name.brief.connections.max.reauth.ms=2000
ssl.keystore.type=PEM
ssl.keystore.location={directory}/keystore.pem
ssl.truststore.type=PEM
ssl.truststore.location={directory}/trusted.pem
listener.name.tls.ssl.client.auth=required
"""

# Each node is a broker and a controller, so two of the three make a quorum. What makes a failure
# known is short, so that tests do not wait for it.
MEMBER = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{host}:{plain},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{plain}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={directory}/data
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
offsets.topic.num.partitions=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=300
broker.session.timeout.ms=2000
controller.quorum.election.timeout.ms=300
controller.quorum.fetch.timeout.ms=1000
replica.lag.time.max.ms=3000
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


def free_ports(n: int) -> list[int]:
    """Return n different ports on which nobody listens."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(n)]
        for probe in probes:
            probe.bind((HOST, 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def free_port() -> int:
    """Return a port on which nobody listens."""
    return free_ports(1)[0]


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


ISSUER = """
[ca]
default_ca = issuer
[issuer]
database = issued.txt
serial = serial.txt
new_certs_dir = .
certificate = client.pem
private_key = client.key
default_md = sha256
policy = names
unique_subject = no
[names]
commonName = supplied
"""


class Node:
    """One process of Kafka, its data in `directory`: what was written is there after a restart."""

    heap = "512m"

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.classpath = f"{jars()}/*"
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Where it listens in plain text."""
        return f"{HOST}:{self.port}"

    def start(self) -> None:
        """Start, and come back when clients are served."""
        self.launch()
        self.wait_until_serving()

    def launch(self) -> None:
        """Start, and come back immediately."""
        self._log = (self.directory / "broker.log").open("ab")
        options = [f"-Xmx{self.heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
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

    def wait_until_serving(self) -> None:
        """Wait until it listens."""
        if not wait_for_port(self.port, 60):
            self.kill()
            log = (self.directory / "broker.log").read_text(encoding="utf-8", errors="replace")
            raise Unavailable(f"Apache Kafka did not start: {log[-3000:]}")

    def stop(self) -> None:
        """Stop in an orderly way, as for a restart; the data stay."""
        if self.process is not None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            self.kill()

    def kill(self) -> None:
        """End it as a crash does; the data stay."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def _properties(self) -> str:
        return str(self.directory / "server.properties")

    def _format(self, properties: str, *options: str) -> None:
        Path(self._properties).write_text(properties, encoding="utf-8")
        logging = self.directory / "log4j2.properties"
        logging.write_text(LOGGING, encoding="utf-8")
        tool = ["java", "-XX:TieredStopAtLevel=1", "-cp", self.classpath, "kafka.tools.StorageTool"]
        self._run(
            *(*tool, "format", "-t", "c3RyZWFtbGVhcm4tdGVzdA", "-c", self._properties, *options)
        )

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, cwd=self.directory, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Unavailable(f"{' '.join(command[:2])}: {done.stdout}{done.stderr}")


class ApacheKafka(Node):
    """One broker, with passwords and certificates."""

    def __init__(self, directory: Path) -> None:
        names = ("plain", "secure", "brief", "tls", "controller")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        super().__init__(directory, self.ports["plain"])
        self.secure = f"{HOST}:{self.ports['secure']}"
        self.brief = f"{HOST}:{self.ports['brief']}"
        self.tls = f"{HOST}:{self.ports['tls']}"
        self._certificates()
        self._format(
            PROPERTIES.format(
                host=HOST, directory=self.directory, user=USER, password=PASSWORD, **self.ports
            ),
            *("--standalone", "--add-scram", f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"),
        )

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

    def trust(self, name: str) -> None:
        """Trust one of the certificates alone, from the next start on."""
        shutil.copy(self.directory / f"{name}.pem", self.directory / "trusted.pem")

    def issue(self, seconds: float) -> tuple[str, str]:
        """Return a certificate that expires after this time, and its key.

        Its issuer is the client's certificate: of one that they know themselves, brokers do not
        check the date.
        """
        end = datetime.now(UTC) + timedelta(seconds=seconds)
        (self.directory / "issued.txt").touch()
        (self.directory / "issuer.cnf").write_text(ISSUER, encoding="ascii")
        self._run(
            *("openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=issued"),
            *("-keyout", "issued.key", "-out", "issued.csr"),
        )
        self._run(
            *("openssl", "ca", "-batch", "-config", "issuer.cnf", "-create_serial", "-notext"),
            *("-enddate", f"{end:%Y%m%d%H%M%SZ}", "-in", "issued.csr", "-out", "issued.pem"),
        )
        return str(self.directory / "issued.pem"), str(self.directory / "issued.key")

    def _certificates(self) -> None:
        for name in ("broker", "client"):
            key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
            self._run(
                *("openssl", "req", "-x509", *key, "-days", "3", "-subj", f"/CN={name}"),
                *("-addext", f"subjectAltName=DNS:localhost,IP:{HOST}"),
                *("-keyout", f"{name}.key", "-out", f"{name}.pem"),
            )
        self.trust("client")
        both = [self.directory / f"broker.{part}" for part in ("key", "pem")]
        store = self.directory / "keystore.pem"
        store.write_text("".join(path.read_text("ascii") for path in both), encoding="ascii")


class Member(Node):
    """A node of a cluster."""

    heap = "256m"

    def __init__(self, directory: Path, node: int, ports: tuple[int, int], voters: str) -> None:
        plain, controller = ports
        super().__init__(directory, plain)
        self.directory.mkdir()
        about = {"host": HOST, "directory": directory, "node": node, "voters": voters}
        self._format(MEMBER.format(**about, plain=plain, controller=controller))


class Cluster:
    """Three brokers, numbered from 1."""

    def __init__(self, directory: Path) -> None:
        free = free_ports(6)
        ports = {node: (free[2 * node - 2], free[2 * node - 1]) for node in (1, 2, 3)}
        voters = ",".join(f"{node}@{HOST}:{both[1]}" for node, both in ports.items())
        self.nodes = {
            node: Member(directory / str(node), node, both, voters) for node, both in ports.items()
        }

    @property
    def bootstrap(self) -> str:
        """Where all of them are."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    def start(self) -> None:
        """Start those that do not run."""
        for node in self.nodes.values():
            if node.process is None:
                node.launch()
        for node in self.nodes.values():
            node.wait_until_serving()

    def stop(self) -> None:
        """End all of them; killed, as the last ones would wait for a quorum."""
        for node in self.nodes.values():
            node.kill()
