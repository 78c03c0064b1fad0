"""The client of schema registries: what it asks, and what becomes of each answer."""

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamlearn.errors import RegistryError, SchemaError
from streamlearn.stream.schema_registry import SchemaRegistry
from tests.support.schema_registry import FakeRegistry

CLICK = json.dumps({"type": "record", "name": "Click", "fields": []})


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with FakeRegistry() as registry:
        yield registry


def client(server: FakeRegistry, **settings: Any) -> SchemaRegistry:
    return SchemaRegistry(server.url, **{"wait_seconds": 0.0, **settings})


def test_a_schema_is_asked_for_once(server: FakeRegistry) -> None:
    number = server.add("clicks-value", CLICK)
    registry = client(server)
    assert registry.schema(number, "AVRO").text == CLICK
    assert registry.schema(number, "AVRO").kind == "AVRO"
    assert [call.path for call in server.calls] == [f"/schemas/ids/{number}"]


def test_references_are_resolved(server: FakeRegistry) -> None:
    server.add("inner/a b", '"long"')
    inner = {"name": "shop.Inner", "subject": "inner/a b", "version": 1}
    server.add("outer", '"string"', references=[inner])
    outer = {"name": "shop.Outer", "subject": "outer", "version": 1}
    number = server.add("clicks", CLICK, references=[outer])
    found = client(server).schema(number, "AVRO").with_imports("Click")
    assert [(name, one.text) for name, one in found.items()] == [
        ("shop.Inner", '"long"'),
        ("shop.Outer", '"string"'),
        ("Click", CLICK),
    ]


def test_protobuf_is_asked_for_serialized(server: FakeRegistry) -> None:
    server.add("a.proto", "YQ==", "PROTOBUF")
    one = {"name": "a.proto", "subject": "a.proto", "version": 1}
    number = server.add("clicks", "Yg==", "PROTOBUF", references=[one])
    assert client(server).schema(number, "PROTOBUF").text == "Yg=="
    assert {call.query for call in server.calls} == {"format=serialized"}


def test_a_schema_of_another_kind(server: FakeRegistry) -> None:
    number = server.add("clicks", CLICK)
    with pytest.raises(SchemaError, match="AVRO"):
        client(server).schema(number, "PROTOBUF")


def test_a_schema_that_is_registered_late(server: FakeRegistry) -> None:
    late = threading.Timer(0.3, server.add, ("clicks", CLICK))
    late.start()
    assert client(server, wait_seconds=30.0).schema(1, "AVRO").text == CLICK
    late.join()


def test_an_unknown_schema_is_waited_for_once(server: FakeRegistry) -> None:
    registry = client(server, wait_seconds=0.3)
    start = time.monotonic()
    with pytest.raises(SchemaError):
        registry.schema(1, "AVRO")
    assert time.monotonic() - start >= 0.3
    asked = len(server.calls)
    assert asked > 1
    for number in (1, 2, 1, 2):
        with pytest.raises(SchemaError):
            registry.schema(number, "AVRO")
    assert len(server.calls) == asked + 1  # for 2, without waiting
    server.add("clicks", CLICK)
    server.add("views", CLICK.replace("Click", "View"))
    server.add("buys", CLICK.replace("Click", "Buy"))
    assert registry.schema(3, "AVRO").kind == "AVRO"  # what is unknown does not affect others


@pytest.mark.parametrize(
    ("settings", "header"),
    [
        (
            {"username": "ann", "password": "s3cret"},
            "Basic " + base64.b64encode(b"ann:s3cret").decode(),
        ),
        ({"token": "s3cret"}, "Bearer s3cret"),
    ],
)
def test_logins(server: FakeRegistry, settings: dict[str, str], header: str) -> None:
    server.authorization = header
    number = server.add("clicks", CLICK)
    registry = client(server, **settings)
    assert registry.schema(number, "AVRO").text == CLICK
    assert "s3cret" not in repr(registry)
    with pytest.raises(RegistryError, match="401"):
        client(server).schema(number, "AVRO")


@pytest.mark.parametrize(
    "fault",
    [
        (500, b'{"error_code": 50001, "message": "Error in the backend datastore"}'),
        (503, b"<html>unavailable</html>"),
        (403, b""),
        (404, b"<html>a web server without this path</html>"),
        (404, b'{"error_code": 404, "message": "HTTP 404 Not Found"}'),
        (200, b"<html>another web server</html>"),
        (200, b"[]"),
        (200, b'{"status": "ok"}'),
    ],
)
def test_faults_are_not_those_of_the_schema(server: FakeRegistry, fault: tuple[int, bytes]) -> None:
    number = server.add("clicks", CLICK)
    registry = client(server)
    server.fault = fault
    with pytest.raises(RegistryError):
        registry.schema(number, "AVRO")
    server.fault = None
    assert registry.schema(number, "AVRO").text == CLICK


def test_a_registry_that_is_slow(server: FakeRegistry) -> None:
    server.delay = 1.0
    with pytest.raises(RegistryError, match="timed out"):
        client(server, timeout_seconds=0.05).schema(1, "AVRO")


def test_a_cache_answers_for_a_registry_that_is_down(server: FakeRegistry, tmp_path: Path) -> None:
    server.add("inner", '"long"')
    number = server.add(
        "outer", CLICK, references=[{"name": "I", "subject": "inner", "version": 1}]
    )
    cache = tmp_path / "not" / "there"
    settings = {"cache": str(cache)}
    first = client(server, **settings)
    expected = first.schema(number, "AVRO"), first.id_of("new", CLICK, "AVRO")
    server.fault = (503, b"")
    again = client(server, **settings)
    assert (again.schema(number, "AVRO"), again.id_of("new", CLICK, "AVRO")) == expected
    with pytest.raises(RegistryError):
        again.schema(99, "AVRO")
    with pytest.raises(RegistryError):
        again.latest("outer", "AVRO")
    with pytest.raises(RegistryError):  # another registry has other schemas
        SchemaRegistry(f"{server.url}/v7", cache=str(cache)).schema(number, "AVRO")
    for path in cache.iterdir():
        path.write_bytes(b"{")
    with pytest.raises(RegistryError):
        client(server, **settings).schema(number, "AVRO")
    server.fault = None
    assert client(server, **settings).schema(number, "AVRO") == expected[0]


def test_a_cache_that_is_not_writable(server: FakeRegistry, tmp_path: Path) -> None:
    number = server.add("clicks-value", CLICK)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RegistryError, match=r"registry\.cache"):
        client(server, cache=str(tmp_path / "file")).schema(number, "AVRO")


def test_a_registry_that_is_away(server: FakeRegistry) -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RegistryError, match="does not answer"):
            SchemaRegistry(away).schema(1, "AVRO")
        number = server.add("clicks", CLICK)
        registry = SchemaRegistry(f"{away}, {server.url}/")
        assert registry.schema(number, "AVRO").text == CLICK


@pytest.mark.parametrize(
    "settings",
    [{"url": ""}, {"url": "localhost:8081"}, {"url": "http://a", "username": "a", "token": "b"}],
)
def test_invalid_settings(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="registry"):
        SchemaRegistry(**settings)  # type: ignore[arg-type] # all are text
