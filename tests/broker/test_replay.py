"""Files into a topic, and dead letters back into it, each once though the replay is killed."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from streamlearn.cli.main import main
from streamlearn.daemon.process.faults import VARIABLE as FAULT
from streamlearn.kafka import Connection, KafkaSource
from tests.broker.conftest import MakeTopic, all_of
from tests.broker.daemons import Daemons
from tests.support.streams import event

if TYPE_CHECKING:
    from pathlib import Path

    from tests.broker.processes import Server

BAD = [b"{", b"\xff\xfe", b"null"]


def test_killed_replays_send_each_letter_once(
    connection: Connection, make_topic: MakeTopic, server: Server, tmp_path: Path
) -> None:
    topic, dead = make_topic(3), make_topic(2)
    good = [value for i in range(300) if (value := event(0, i))]
    lines = [*good, *(BAD[i % 3] for i in range(60))]
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(lines))
    daemons = Daemons(
        server,
        tmp_path,
        bootstrap=connection.bootstrap,
        topic=topic,
        client=connection.client,
        outputs=f'\n[dead_letters]\ntopic = "{dead}"\nmax_invalid_ratio = 0.9\n',
    )
    config = str(daemons.config)
    publish = ["publish", str(tmp_path / "events.jsonl"), "--topic", topic, "--config", config]
    assert main(publish) == 0
    assert daemons.run("--until", "end") == 0
    # killed after letters were delivered, before that was noted
    killed = server.start(["replay", config], tmp_path / "log", {FAULT: "fsync:2"})
    assert killed.wait(60) == -signal.SIGKILL
    begun = len(sent_back(connection, topic))
    assert begun > 0
    assert main(["replay", config]) == 0
    letters = sent_back(connection, topic)
    assert len(letters) == len({metadata["streamlearn.letter"] for metadata in letters}) == 60
    place = [f"streamlearn.origin.{name}" for name in ("topic", "partition", "offset")]
    origins = {tuple(metadata[name] for name in place) for metadata in letters}
    assert {origin[0] for origin in origins} == {topic.encode()}
    assert len(origins) == 60
    assert main(["replay", config]) == 0
    assert len(sent_back(connection, topic)) == 60


def sent_back(connection: Connection, topic: str) -> list[dict[str, bytes | None]]:
    """The headers of the records that were sent back."""
    source = KafkaSource(connection, topics=[topic])
    source.open({}, None)
    metadata = [dict(headers) for records in all_of(source) for headers in records.headers or ()]
    source.close()
    return [headers for headers in metadata if "streamlearn.letter" in headers]
