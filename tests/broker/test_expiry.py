"""What lets the daemon in ends while it runs, and is given back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.admin import ACLOperation

from streamlearn.daemon.process.exits import Exit
from streamlearn.kafka import KafkaSource
from tests.broker import tokens
from tests.broker.apache_kafka import PASSWORD, USER
from tests.broker.conftest import all_of, denied, write
from tests.broker.daemons import lines
from tests.support.streams import event

if TYPE_CHECKING:
    from pathlib import Path

    from confluent_kafka import Producer

    from streamlearn.kafka import Connection
    from tests.broker.apache_kafka import ApacheKafka
    from tests.broker.conftest import MakeDaemons, MakeTopic
    from tests.broker.daemons import Daemons


PART = 500  # records
NO_ANSWER = "broker unreachable"
OUTPUTS = """
[source.security]
{}
[predictions]
topic = "{}"
learner = "sparse"
"""


Begin = Callable[..., "Run"]


class Run:
    """A daemon that learns and predicts while what lets it in comes and goes."""

    def __init__(self, daemons: Daemons, topic: str, output: str, producer: Producer) -> None:
        self.daemons, self.topic, self.output, self.producer = daemons, topic, output, producer
        self.parts = 0
        self.restarted = False
        self.process = daemons.start()

    def write(self) -> None:
        """Write the next part."""
        start = self.parts * PART
        write(self.producer, self.topic, [event(0, i) for i in range(start, start + PART)])
        self.parts += 1

    def learn(self) -> None:
        """Write the next part, and wait until it is learned."""
        self.write()
        self.learned()

    def learned(self) -> None:
        """Wait until all is learned that was written."""
        self.daemons.wait_for(lambda: self.daemons.records() == self.parts * PART)

    def refused(self) -> None:
        """Write a part once it is let in no more, of which nothing is learned."""
        self.daemons.wait_for(lambda: NO_ANSWER in self.daemons.log_text())
        before = self.daemons.records()
        self.write()
        assert self.process.poll() is None, self.daemons.log_text()[-3000:]
        assert self.daemons.records() == before

    def restart(self) -> None:
        """Start again."""
        self.process = self.daemons.start()
        self.restarted = True

    def end(self, connection: Connection) -> None:
        """End it; every record was learned once, and predicted."""
        self.process.terminate()
        assert self.process.wait(20) == Exit.OK, self.daemons.log_text()[-3000:]
        self.daemons.assert_learned_once(1, self.parts * PART)
        source = KafkaSource(connection, topics=[self.output])
        source.open({}, None)
        offsets = [
            int(dict(headers)["offset"] or b"")
            for records in all_of(source)
            for headers in records.headers or ()
        ]
        source.close()
        assert set(offsets) == set(range(self.parts * PART))
        assert len(offsets) == self.parts * PART or self.restarted


@pytest.fixture
def begin(make_daemons: MakeDaemons, make_topic: MakeTopic, producer: Producer) -> Begin:
    """Return a function that starts a daemon with a login, which learns the first part."""

    def start(bootstrap: str, environ: dict[str, str] | None = None, **login: str) -> Run:
        topic, output = make_topic(), make_topic()
        security = "\n".join(f'{name} = "{value}"' for name, value in login.items())
        daemons = make_daemons(topic, bootstrap=bootstrap, outputs=OUTPUTS.format(security, output))
        daemons.environ |= environ or {}
        run = Run(daemons, topic, output, producer)
        run.learn()
        return run

    return start


def with_password(begin: Begin, bootstrap: str, broker: ApacheKafka) -> Run:
    """Start a daemon that logs in with alice's password."""
    mechanism, cafile = "SCRAM-SHA-512", broker.cafile
    return begin(bootstrap, mechanism=mechanism, username=USER, password=PASSWORD, cafile=cafile)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["bad", "none"])
def test_tokens_are_renewed_though_the_provider_fails_for_a_while(
    begin: Begin, own_broker: ApacheKafka, connection: Connection, tmp_path: Path, kind: str
) -> None:
    given = tmp_path / "tokens"
    given.write_text("good", encoding="utf-8")
    run = begin(
        own_broker.brief,
        {tokens.VARIABLE: str(given)},
        mechanism="OAUTHBEARER",
        cafile=own_broker.cafile,
        token_provider="tests.broker.tokens:provided",  # noqa: S106
    )
    until = time.monotonic() + 2.5 * tokens.SECONDS
    while time.monotonic() < until:
        run.learn()
    assert NO_ANSWER not in run.daemons.log_text()
    given.write_text(kind, encoding="utf-8")
    run.refused()
    given.write_text("good", encoding="utf-8")
    run.learned()
    run.end(connection)


@pytest.mark.nightly
def test_a_password_is_changed_and_restored(
    begin: Begin, own_broker: ApacheKafka, connection: Connection
) -> None:
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap})

    def change(password: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        changed = UserScramCredentialUpsertion(USER, info, password.encode())
        for future in admin.alter_user_scram_credentials([changed]).values():
            future.result(20)

    run = with_password(begin, own_broker.brief, own_broker)
    change("another")
    try:
        run.refused()
    finally:
        change(PASSWORD)
    if connection.client == "confluent":  # the other library may miss what the broker said
        assert "username and password" in run.daemons.log_text()
    run.learned()
    run.end(connection)


@pytest.mark.nightly
def test_an_untrusted_certificate_is_trusted_again(
    begin: Begin, own_broker: ApacheKafka, connection: Connection
) -> None:
    run = begin(
        own_broker.tls,
        cafile=own_broker.cafile,
        certfile=own_broker.certfile,
        keyfile=own_broker.keyfile,
    )
    for trusted in ("broker", "client"):
        own_broker.stop()
        own_broker.trust(trusted)
        own_broker.start()
        if trusted == "broker":
            run.refused()
    run.learned()
    run.end(connection)


@pytest.mark.nightly
@pytest.mark.timeout(180)
def test_an_expired_certificate_is_replaced(
    begin: Begin, own_broker: ApacheKafka, connection: Connection
) -> None:
    valid_until = time.time() + 20.0
    certfile, keyfile = own_broker.issue(20.0)
    run = begin(own_broker.tls, cafile=own_broker.cafile, certfile=certfile, keyfile=keyfile)
    time.sleep(max(valid_until + 1.0 - time.time(), 0.0))
    run.learn()  # connections outlive their certificates
    own_broker.stop()
    own_broker.start()
    run.refused()
    run.process.terminate()
    assert run.process.wait(20) == Exit.OK, run.daemons.log_text()[-3000:]
    own_broker.issue(600.0)
    run.restart()
    run.learned()
    run.end(connection)


@pytest.mark.parametrize("right", ["READ", "WRITE"])
def test_a_right_is_revoked_and_granted_again(
    begin: Begin, own_broker: ApacheKafka, connection: Connection, admin: Any, right: str
) -> None:
    run = with_password(begin, own_broker.secure, own_broker)
    topic = run.topic if right == "READ" else run.output
    with denied(admin, topic, ACLOperation[right]):
        run.write()
        assert run.process.wait(60) == Exit.DENIED, run.daemons.log_text()[-3000:]
        (stopped,) = (line for line in lines(run.daemons.log_text()) if line["event"] == "stopped")
        assert topic in stopped["reason"]
        assert run.daemons.run() == Exit.DENIED
    run.restart()
    run.learned()
    run.end(connection)
