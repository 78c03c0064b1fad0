"""The HTTP interface, in a server of its own."""

import concurrent.futures
import contextlib
import gzip
import itertools
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import numpy as np
import pytest
import schemathesis
import tritonclient.http as triton
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.testclient import TestClient

import streamlearn as sl
from streamlearn.cli.main import main
from streamlearn.serving import Snapshot
from streamlearn.serving.http.app import application
from streamlearn.serving.http.options import Options
from tests.serving.conftest import model, publish, running
from tests.support.running import wait_until

UNTOLD = [positive_data_acceptance]  # the shapes of inputs must agree
EMPTY = {"name": "age", "shape": [0], "datatype": "FP64", "data": []}
EVENT = {"user": "u1", "age": 3.0, "place": {"city": "c2"}}


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_one_event(client: httpx.Client, snapshots: Path) -> None:
    answer = client.post("/v1/predict", json=EVENT)
    snapshot = Snapshot(snapshots, "default")
    found = answer.json()
    assert answer.status_code == 200
    assert found["score"] == snapshot.score(EVENT) == model().score_one(EVENT)
    assert found["probability"] == model().predict_proba_one(EVENT)[True]
    assert found["label"] is True
    assert (found["learner"], found["version"]) == ("default", "1-400")


def test_label_of_the_stream_is_no_feature(client: httpx.Client) -> None:
    found = client.post("/v1/predict", json={**EVENT, "clicked": False, "id": 7}).json()
    assert found["score"] == model().score_one(EVENT)
    assert found["id"] == "7"


def test_an_invalid_event_spoils_itself_alone(client: httpx.Client) -> None:
    body = b'[{"user": "u1"}, {"age": 1e999}, 5, {"age": {"x": [1]}}, {"user": "u2"}]'
    found = client.post("/v1/predict", content=body).json()["predictions"]
    assert ["error" in one for one in found] == [False, True, True, True, False]
    assert found[3]["error"]["field"] == "age.x"
    assert found[0]["score"] == model().score_one({"user": "u1"})
    assert found[4]["score"] == model().score_one({"user": "u2"})


def test_lines(client: httpx.Client) -> None:
    events = [{"user": f"u{i}"} for i in range(50)]
    body = "\n".join(map(json.dumps, events)) + "\n\n"
    answer = client.post(
        "/v1/predict", content=body, headers={"content-type": "application/x-ndjson"}
    )
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["streamlearn-version"] == "1-400"
    scores = [one["score"] for one in lines(answer.text)]
    assert scores == [model().score_one(event) for event in events]


def test_contributions(client: httpx.Client) -> None:
    found = client.post("/v1/predict?explain=true", json=EVENT).json()
    total = sum(one["contribution"] for one in found["contributions"])
    assert total == pytest.approx(found["score"])
    assert {one["name"] for one in found["contributions"]} == {
        None, "user=u1", "age", "place.city=c2",
    }  # fmt: skip


def test_several_classes(client: httpx.Client) -> None:
    found = client.post("/v1/predict?learner=several", json={"age": 1.0}).json()
    assert found["label"] == max(found["score"], key=found["score"].__getitem__)
    assert sum(found["probabilities"].values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/predict", b"", 422),
        ("/v1/predict", b"{", 422),
        ("/v1/predict", b"[1,", 422),
        ("/v1/predict", b"\xff\xfe", 422),
        ("/v1/predict", b"[" * 100_000, 422),
        ("/v1/predict", b'{"a":' * 100_000, 422),
        ("/v1/predict", b"[" + b"{}," * 10_000 + b"{}]", 413),
        ("/v1/predict?learner=none", b"{}", 404),
        ("/v1/predict?learner=../../etc/passwd", b"{}", 404),
        ("/v1/predict?explain=maybe", b"{}", 400),
        ("/v1/predict?model=x", b"{}", 400),
        ("/v1/nothing", b"{}", 404),
        ("/v2/models/none/infer", json.dumps({"inputs": [EMPTY]}).encode(), 404),
        ("/v2/models/default/infer", b"{}", 400),
        ("/v2/models/default/infer", b'{"inputs":[]}', 400),
    ],
)  # fmt: skip
def test_refused(client: httpx.Client, path: str, body: bytes, status: int) -> None:
    answer = client.post(path, content=body)
    assert answer.status_code == status
    assert answer.json()["error"]["reason"]


@pytest.mark.parametrize(
    ("datatype", "value", "told"),
    [
        ("XX", 1, "FP32"),
        ("fp32", 1, "FP32"),
        ("FP32", "1", "numbers"),
        ("FP64", True, "numbers"),
        ("INT64", 1.5, "integers"),
        ("BOOL", 1, "true"),
        ("BYTES", 1, "texts"),
        ("BYTES", ["x"], "texts"),
        ("UINT8", 256, "0 to 255"),
        ("INT16", -32769, "-32768"),
        ("INT16", -32768, ""),
        ("FP32", 1, ""),
        ("UINT8", 1, ""),
        ("BOOL", False, ""),
        ("BYTES", None, ""),
    ],
)
def test_values_are_of_their_datatype(
    client: httpx.Client, datatype: str, value: Any, told: str
) -> None:
    one = {"name": "age", "shape": [2], "datatype": datatype, "data": [None, value]}
    answer = client.post("/v2/models/default/infer", json={"inputs": [one]})
    assert answer.status_code == (400 if told else 200)
    if told:
        assert told in answer.json()["error"]["reason"]


def test_there_is_no_label_before_the_first_one(tmp_path: Path) -> None:
    publish(tmp_path, sl.LinearClassifier(), 1, "default")
    body = {"inputs": [{"name": "age", "shape": [2], "datatype": "FP64", "data": [1.0, 2.0]}]}
    with running(str(tmp_path)) as (_, client):
        found = client.post("/v2/models/default/infer", json=body).json()
        about = client.get("/v2/models/default").json()
    assert [one["name"] for one in found["outputs"]] == ["score"]
    assert [one["name"] for one in about["outputs"]] == ["score"]


def test_open_inference(client: httpx.Client) -> None:
    users = ["u1", "u2", "u6"]
    request = {
        "id": "42",
        "inputs": [
            {"name": "user", "shape": [3], "datatype": "BYTES", "data": users},
            {"name": "age", "shape": [3, 1], "datatype": "FP64", "data": [1.0, 2.0, 3.0]},
        ],
    }
    found = client.post("/v2/models/default/infer", json=request).json()
    assert (found["id"], found["model_name"], found["model_version"]) == ("42", "default", "1-400")
    outputs = {one["name"]: one for one in found["outputs"]}
    events = [{"user": user, "age": i + 1.0} for i, user in enumerate(users)]
    assert outputs["score"]["data"] == [model().score_one(event) for event in events]
    assert outputs["label"] == {
        "name": "label",
        "shape": [3],
        "datatype": "BOOL",
        "data": [model().predict_one(event) for event in events],
    }
    assert client.get("/v2/models/default").json()["versions"] == ["1-400"]
    assert client.get("/v2/models/default/ready").json()["ready"] is True


@pytest.mark.parametrize("learner", ["default", "several"])
def test_outputs_of_no_events_have_the_types_of_outputs(client: httpx.Client, learner: str) -> None:
    def types(count: int) -> dict[str, str]:
        one = {"name": "age", "shape": [count], "datatype": "FP64", "data": [1.0] * count}
        found = client.post(f"/v2/models/{learner}/infer", json={"inputs": [one]}).json()
        assert all(one["shape"] == [count] for one in found["outputs"])
        return {one["name"]: one["datatype"] for one in found["outputs"]}

    assert types(0) == types(2)


def test_only_outputs_that_are_asked_for_are_given(client: httpx.Client) -> None:
    one = {"name": "age", "shape": [1], "datatype": "FP64", "data": [1.0]}
    body: dict[str, Any] = {"inputs": [one], "outputs": [{"name": "probability"}]}
    found = client.post("/v2/models/default/infer", json=body).json()
    assert [one["name"] for one in found["outputs"]] == ["probability"]
    body["outputs"] = [{"name": "score"}, {"name": "none"}]
    answer = client.post("/v2/models/default/infer", json=body)
    assert answer.status_code == 400
    assert "probability" in answer.json()["error"]["reason"]


def test_a_media_type_has_no_case(client: httpx.Client) -> None:
    kind = {"content-type": "Application/X-NDJSON; charset=utf-8"}
    answer = client.post("/v1/predict", content=b'{"age": 1}\n{"age": 2}', headers=kind)
    assert (answer.status_code, len(answer.text.splitlines())) == (200, 2)


def test_a_client_of_the_open_inference_protocol(client: httpx.Client) -> None:
    """NVIDIA's client for Triton, which speaks the same protocol."""
    users, ages = np.array(["u1", "ü2"], dtype=object), np.array([1.0, 2.0])
    inputs = []
    for name, datatype, values in (("user", "BYTES", users), ("age", "FP64", ages)):
        inputs.append(triton.InferInput(name, [2], datatype))
        inputs[-1].set_data_from_numpy(values, binary_data=False)
    with triton.InferenceServerClient(f"{client.base_url.host}:{client.base_url.port}") as found:
        assert found.is_server_live()
        assert found.is_server_ready()
        assert found.is_model_ready("default")
        assert not found.is_model_ready("none")
        assert found.get_model_metadata("default")["versions"] == ["1-400"]
        answer = found.infer("default", inputs, request_id="42")
    events = [{"user": u, "age": a} for u, a in zip(users.tolist(), ages.tolist(), strict=True)]
    assert answer.get_response()["id"] == "42"
    assert answer.as_numpy("score").tolist() == [model().score_one(event) for event in events]
    assert answer.as_numpy("label").tolist() == [model().predict_one(event) for event in events]


@pytest.mark.parametrize(
    ("learner", "fields"),
    [
        ("default", {"user": "BYTES", "age": "FP64", "place.city": "BYTES"}),
        ("several", {"age": "FP64"}),
    ],
)
def test_metadata_is_that_of_the_model(
    client: httpx.Client, learner: str, fields: dict[str, str]
) -> None:
    """Its inputs are the fields it learned, not those of a request."""
    odd = {"inputs": [{"name": "odd", "shape": [1], "datatype": "BYTES", "data": ["x"]}]}
    answer = client.post(f"/v2/models/{learner}/infer", json=odd).json()
    about = client.get(f"/v2/models/{learner}").json()
    assert {one["name"]: one["datatype"] for one in about["inputs"]} == fields
    told = [(one["name"], one["datatype"]) for one in about["outputs"]]
    assert told == [(one["name"], one["datatype"]) for one in answer["outputs"]]


def test_an_encoded_body_is_refused(client: httpx.Client) -> None:
    body, headers = gzip.compress(b"{}"), {"content-encoding": "gzip"}
    for path in ("/v1/predict", "/v2/models/default/infer"):
        assert client.post(path, content=body, headers=headers).status_code == 415
    identity = {"content-encoding": "identity"}
    assert client.post("/v1/predict", content=b"{}", headers=identity).status_code == 200


def test_not_ready_without_the_learner_that_answers(tmp_path: Path) -> None:
    """A balancer is not told to send requests that are answered with 404."""
    publish(tmp_path, model(), 400)
    options = Options(path=tmp_path, counts=tmp_path, learner="other")
    with TestClient(application(options)[0]) as client:
        assert client.get("/v2/health/ready").status_code == 503
        publish(tmp_path, model(), 400, "other")
        while client.get("/v2/health/ready").status_code != 200:
            time.sleep(0.05)


def test_what_cannot_be_served_is_said_at_the_start(
    snapshots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(snapshots), "--learner", "defalt"]) == 2
    assert "default" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["serve", str(snapshots), "--port", address.partition(":")[2]]) == 2
    assert address in capsys.readouterr().err


def test_metrics(client: httpx.Client) -> None:
    client.post("/v1/predict", json=EVENT)
    text = client.get("/metrics").text
    assert 'streamlearn_serve_snapshot_events{learner="default"} 400.0' in text
    assert "streamlearn_serve_in_flight 1.0" in text


def test_description_holds(client: httpx.Client) -> None:
    """Every answer to generated requests is as the OpenAPI document says."""
    schema = schemathesis.openapi.from_url(f"{client.base_url}/openapi.json")
    checked = 0
    for operation in schema.get_all_operations():
        assert isinstance(operation, Ok)
        found = operation.ok()

        @hypothesis.given(case=found.as_strategy())
        @hypothesis.settings(
            max_examples=20,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        def check(case: Any) -> None:
            case.call_and_validate(excluded_checks=UNTOLD if case.path.endswith("infer") else [])

        check()
        checked += 1
    assert checked == 8


def test_access(tmp_path: Path) -> None:
    publish(tmp_path / "serving", model(), 1)
    config = tmp_path / "serve.toml"
    config.write_text(
        f"""
        [source]
        kind = "synthetic"
        [checkpoint]
        path = "{tmp_path}"
        [serve]
        token = "secret"
        max_body_bytes = 2000
        body_seconds = 0.3
        """
    )
    with running(str(config)) as (server, client):
        assert client.post("/v1/predict", json={}).status_code == 401
        for path in ("/metrics", "/v1/learners", "/v2/models/default"):
            assert client.get(path).status_code == 401
        assert client.get("/v2/health/live").status_code == 200
        wrong = {"authorization": "Bearer secre"}
        assert client.post("/v1/predict", json={}, headers=wrong).status_code == 401
        right = {"authorization": "Bearer secret"}
        assert client.post("/v1/predict", json={}, headers=right).status_code == 200
        large = b'{"a": "' + b"x" * 2000 + b'"}'
        assert client.post("/v1/predict", content=large, headers=right).status_code == 413
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10.0) as slow:
            slow.sendall(
                b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            assert slow.recv(100).startswith(b"HTTP/1.1 408")
        with socket.create_connection((host, int(port)), timeout=10.0) as endless:
            endless.sendall(b"GET / HTTP/1.1\r\n")
            with contextlib.suppress(ConnectionError):
                for _ in range(1000):
                    endless.sendall(b"X-A: " + b"x" * 1000 + b"\r\n")
                assert endless.recv(100) == b""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_exchanges_and_shutdown(workers: str, tmp_path: Path) -> None:
    """Every answer has the score of the version that it names, and a shutdown fails none."""
    path = tmp_path / "snapshots"
    models = {version: model(version) for version in range(1, 12)}
    publish(path, models[1], 1)
    expected = {f"1-{version}": one.score_one(EVENT) for version, one in models.items()}
    assert len(set(expected.values())) > 3
    stop = threading.Event()
    versions: set[str] = set()

    def ask(client: httpx.Client) -> int:
        for count in itertools.count():
            if stop.is_set():
                return count
            answer = client.post("/v1/predict", json=EVENT)
            assert answer.status_code == 200
            found = answer.json()
            assert found["score"] == expected[found["version"]]
            versions.add(found["version"])
            if answer.headers.get("connection") == "close":  # ask another server from now on
                return count
        return 0

    with (
        running(str(path), "--workers", workers) as (server, client),
        concurrent.futures.ThreadPoolExecutor(4) as pool,
    ):
        asking = [pool.submit(ask, client) for _ in range(4)]
        for version in range(2, 12):
            publish(path, models[version], version)
            time.sleep(0.3)
        assert server.stop() == 0
        stop.set()
        assert sum(one.result() for one in asking) > 20
    assert len(versions) > 5


def test_processes_end_with_their_parent(tmp_path: Path) -> None:
    publish(tmp_path / "snapshots", model(), 1)
    with running(str(tmp_path / "snapshots"), "--workers", "2") as (server, client):
        server.process.kill()
        server.process.wait()
        wait_until(lambda: not answers(client))


def answers(client: httpx.Client) -> bool:
    """Return whether a new connection is answered."""
    try:
        client.get("/v2/health/live", headers={"connection": "close"})
    except httpx.TransportError:
        return False
    return True
