"""Predictions over HTTP are logged, labeled, joined and learned, whatever is killed in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from streamlearn.serving import promotions
from tests.broker.serving import Loop, event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from confluent_kafka import Producer

    from tests.broker.conftest import MakeTopic
    from tests.broker.processes import Process, Server

MakeLoop = Callable[..., Loop]
EACH, KILLED_AT = 150, 110  # events of a round, and when its server is killed


@pytest.fixture
def make_loop(
    server: Server, tmp_path: Path, bootstrap: str, make_topic: MakeTopic
) -> Iterator[MakeLoop]:
    """Return a function that sets a loop up; its processes are ended in the end."""
    made: list[Loop] = []

    def set_up(**settings: Any) -> Loop:
        names = (make_topic(name="impressions"), make_topic(name="clicks"))
        made.append(Loop(server, tmp_path, bootstrap, *names, **settings))
        return made[-1]

    yield set_up
    for loop in made:
        loop.stop_all()


def test_an_answer_changes_once_its_label_is_learned(
    make_loop: MakeLoop, producer: Producer
) -> None:
    loop = make_loop(client="kafka-python")
    daemon = loop.daemon()
    process, url = loop.serve()
    with httpx.Client(base_url=url, timeout=30.0) as http:
        for number in range(40):
            assert loop.ask(http, number)
        asked = loop.answered["e0"][0]
        assert asked["score"] == 0.0
        loop.label(producer, range(40))

        def score() -> float:
            found = http.post("/v1/predict?log=false", json=event(0)).json()
            return float(found["score"])

        loop.wait_for(lambda: score() > 0.0)
        # a list, of which one event has neither an id nor a user
        answer = http.post("/v1/predict", json=[event(40), {"ad": "a1"}]).json()
        known, unknown = answer["predictions"]
        loop.answered["e40"] = [known]
        assert known["arm"] == known["learner"] == loop.answered["e40"][0]["arm"]
        assert "arm" not in unknown
        loop.label(producer, [40])
        # promoted, everybody is served by one learner, in the arm that they had
        promotions.promote(loop.directory / "snapshots", "challenger")
        loop.wait_for(
            lambda: (
                http.post("/v1/predict?log=false", json=event(1)).json()["learner"] == "challenger"
            )
        )
        arms = {loop.answered[f"e{number}"][0]["arm"] for number in range(40)}
        assert arms == {"champion", "challenger"}
        for number in range(41, 60):
            assert loop.ask(http, number)
            assert loop.answered[f"e{number}"][0]["learner"] == "challenger"
        loop.label(producer, range(41, 60))
    loop.wait_for(lambda: loop.joined() == 60)
    process.terminate()
    assert process.wait(30) == 0
    daemon.terminate()
    assert daemon.wait(30) == 0
    logged = dict(loop.logged())
    assert len(logged) == 61
    assert logged.keys() >= {f"e{number}" for number in range(60)} | {unknown["id"]}
    loop.assert_learned_once(range(60))


def run_with_kills(loop: Loop, producer: Producer) -> tuple[range, Process]:
    """Ask and label while servers and daemons are killed; return what was asked, and a daemon."""
    rounds, each = 2, EACH
    daemon = loop.daemon()
    process, url = loop.serve()
    for start in range(0, rounds * each, each):
        numbers = range(start, start + each)
        with httpx.Client(base_url=url, timeout=30.0) as http:
            for number in numbers:
                if number == start + KILLED_AT - 20:
                    daemon.kill()
                if number == start + KILLED_AT:
                    process.kill()
                loop.ask(http, number)
        process, url = loop.serve()
        daemon = loop.daemon()
        with httpx.Client(base_url=url, timeout=30.0) as http:
            for number in numbers[KILLED_AT - 10 :]:  # a client that was not answered asks again
                assert loop.ask(http, number)
        loop.label(producer, numbers)
    process.terminate()  # what waits is logged
    assert process.wait(30) == 0
    return range(rounds * each), daemon


def test_kills_of_servers_and_daemons(make_loop: MakeLoop, producer: Producer) -> None:
    loop = make_loop()
    asked, daemon = run_with_kills(loop, producer)
    assert dict(loop.logged()).keys() == {f"e{number}" for number in asked}
    loop.wait_for(lambda: loop.joined() == len(asked))
    daemon.terminate()
    assert daemon.wait(30) == 0
    loop.assert_learned_once(asked)


@pytest.mark.nightly
def test_what_a_killed_server_had_answered_before_it_was_stored(
    make_loop: MakeLoop, producer: Producer
) -> None:
    loop = make_loop(ack="after")
    asked, daemon = run_with_kills(loop, producer)
    logged: dict[str, set[str]] = {}
    for name, served in loop.logged():
        logged.setdefault(name, set()).add(served.version)
    lost = [number for number in asked if f"e{number}" not in logged]
    assert all(number % EACH < KILLED_AT for number in lost)
    for number in lost:
        del loop.answered[f"e{number}"]
    for name, answers in loop.answered.items():  # of two answers the first may be lost
        answers[:] = [one for one in answers if one["version"] in logged[name]]
    loop.wait_for(lambda: loop.joined() == len(asked) - len(lost))
    daemon.terminate()
    assert daemon.wait(30) == 0
    loop.assert_learned_once(asked)
