"""A/B tests and promotions, in a server without a broker."""

import time
from pathlib import Path

import httpx
import pytest

from streamlearn.cli.main import main
from streamlearn.daemon.served_loss import ServedLosses
from streamlearn.estimators import checkpoints
from streamlearn.serving.split import Split, bucket_of, number_of
from tests.serving.conftest import model, publish, running

SPLIT = """
[source]
kind = "synthetic"
[[learner]]
name = "one"
[[learner]]
name = "two"
[checkpoint]
path = "{path}"
[serve]
[serve.split]
by = "who.user"
salt = "s"
arms = {{ one = 0.8, two = 0.2 }}
"""


def test_shares_and_independence() -> None:
    split = Split({"a": 0.6, "b": 0.3, "c": 0.1}, by="user")
    numbers = [number_of(f"u{i}") for i in range(50_000)]
    arms = [split.arm(number) for number in numbers]
    for arm, share in (("a", 0.6), ("b", 0.3), ("c", 0.1)):
        assert arms.count(arm) == pytest.approx(50_000 * share, rel=0.03)
        buckets = [bucket_of(n) for n, one in zip(numbers, arms, strict=True) if one == arm]
        assert sum(bucket < 512 for bucket in buckets) == pytest.approx(len(buckets) / 2, rel=0.05)
    other = [split.arm(number_of(f"u{i}", "other")) for i in range(50_000)]
    both = sum(x == y == "a" for x, y in zip(arms, other, strict=True))
    assert both == pytest.approx(50_000 * 0.36, rel=0.05)


def ask(client: httpx.Client, user: str) -> dict[str, object]:
    answer = client.post("/v1/predict", json={"who": {"user": user}, "age": 1.0})
    found: dict[str, object] = answer.json()
    return found


def test_arms_and_promotions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "serving"
    publish(path, model(), 1, "one")
    publish(path, model(3), 2, "two")
    config = tmp_path / "serve.toml"
    config.write_text(SPLIT.format(path=tmp_path))
    split = Split({"one": 0.8, "two": 0.2}, "who.user", "s")
    users = [f"u{i}" for i in range(60)]
    expected = {user: split.arm(number_of(user, "s")) for user in users}

    def wait_for(learner: str, user: str) -> None:
        end = time.monotonic() + 20.0
        while ask(client, user)["learner"] != learner:
            assert time.monotonic() < end
            time.sleep(0.02)

    with running(str(config)) as (_, client):
        for user in users:
            found = ask(client, user)
            assert found["arm"] == found["learner"] == expected[user]
        events = [{"who": {"user": user}} for user in users] + [{"who": {}}, {"age": "x" * 5}]
        answer = client.post("/v1/predict", json=events).json()
        assert answer.keys() == {"predictions"}
        assert [one.get("arm") for one in answer["predictions"]] == [*expected.values(), None, None]
        assert {one["version"] for one in answer["predictions"]} == {"1-1", "1-2"}
        named = client.post("/v1/predict?learner=two", json={"who": {"user": "u1"}}).json()
        assert "arm" not in named
        mine = next(user for user, arm in expected.items() if arm == "one")
        assert main(["serve", "promote", str(config), "two"]) == 0
        capsys.readouterr()
        assert main(["serve", "promote", str(config), "two"]) == 0
        assert "already" in capsys.readouterr().out
        wait_for("two", mine)
        assert {ask(client, user)["arm"] for user in users} == {"one", "two"}
        assert 'streamlearn_serve_promoted{learner="two"} 1.0' in client.get("/metrics").text
        assert main(["serve", "revert", str(path)]) == 0
        wait_for("one", mine)
        text = client.get("/metrics").text
        assert 'streamlearn_serve_arm_events_total{arm="two"}' in text
    assert main(["serve", "promote", str(config), "three"]) == 2
    assert main(["serve", "revert", str(config)]) == 2
    capsys.readouterr()
    assert main(["serve", "history", str(config)]) == 0
    printed = capsys.readouterr().out
    assert printed.index("promote") < printed.index("revert")


def test_arms_without_scores_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    losses = ServedLosses()
    losses.number_of("one", "one")  # was served, and never measured
    state = {"observers": {"served": {"losses": losses.state()}}}
    monkeypatch.setattr(checkpoints, "newest", lambda path: (path, state))
    assert main(["serve", "arms", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "label and the score" in said
    assert "newest checkpoint" in said
