"""Every store keeps whole files under their names."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from streamlearn.errors import StoreDeniedError, StoreError
from streamlearn.storage import Store, open_store
from streamlearn.storage.bucket import PART_BYTES, Bucket

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Server
    from tests.support.faulty_proxy import Action, FaultyProxy, Request
    from tests.support.minio import MinIO

LARGE = random.Random(0).randbytes(2 * PART_BYTES + 12345)


@pytest.fixture(params=["directory", "minio", "azurite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return open_store(tmp_path)
    server: Server = request.getfixturevalue(request.param)
    return open_store(f"{server.root}/{tmp_path.name}")


def test_files_of_a_store(store: Store) -> None:
    assert store.names() == []
    with pytest.raises(FileNotFoundError):
        store.read("a")
    assert store.write("a", [b"one", memoryview(b"two")]) == 6
    assert store.write("b", [b""]) == 0
    assert store.read("a") == b"onetwo"
    assert store.read("b") == b""
    store.write("a", [b"again"])
    assert store.read("a") == b"again"
    assert sorted(store.names()) == ["a", "b"]
    assert {entry.name: entry.bytes for entry in store.entries()} == {"a": 5, "b": 0}
    store.delete("a")
    store.delete("a")
    assert store.names() == ["b"]


@pytest.mark.parametrize("pieces", [[LARGE], [b"head", memoryview(LARGE), b"tail"], [b"x"] * 999])
def test_pieces_of_any_size(store: Store, pieces: list[bytes | memoryview]) -> None:
    assert store.write("large", pieces) == sum(map(len, pieces))
    assert store.read("large") == b"".join(pieces)


@pytest.mark.parametrize("step", ["write", "rename"])
@pytest.mark.parametrize("piece", [b"small", LARGE])
def test_interrupted_write_leaves_nothing(store: Store, step: str, piece: bytes) -> None:
    class InterruptedWriteError(Exception):
        pass

    def before(now: str) -> None:
        if now == step:
            raise InterruptedWriteError

    with pytest.raises(InterruptedWriteError):
        store.write("a", [piece], before=before)
    assert store.names() == []


def test_prefixes_are_apart(bucket: str) -> None:
    one, other = Bucket(f"{bucket}/one"), Bucket(f"{bucket}/one-more/")
    one.write("a", [b"1"])
    other.write("a", [b"2"])
    assert (one.read("a"), other.read("a")) == (b"1", b"2")
    assert one.names() == other.names() == ["a"]


@pytest.mark.parametrize("location", ["s4://models/a", "s3://", "s3://models/a?b", "https://a/b"])
def test_invalid_urls_are_refused(location: str) -> None:
    with pytest.raises(ValueError, match=location[:5]):
        open_store(location)


def test_unknown_bucket_is_not_an_empty_one(server: Server, bucket: str) -> None:
    nowhere = Bucket(bucket.replace("models", "nowhere"))
    for action in (nowhere.names, lambda: nowhere.read("a"), lambda: nowhere.write("a", [b"1"])):
        with pytest.raises(StoreError, match=server.no_bucket):
            action()


def test_wrong_credentials_are_denied(
    server: Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*server.wrong_login)
    denied = Bucket(bucket)
    for action in (denied.names, lambda: denied.read("a"), lambda: denied.write("a", [b"1"])):
        with pytest.raises(StoreDeniedError, match=server.denied):
            action()


def test_missing_credentials_are_denied(minio: MinIO, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")  # of no instance of Amazon's
    with pytest.raises(StoreDeniedError, match="AWS_ACCESS_KEY_ID"):
        Bucket(minio.root).names()


@pytest.mark.parametrize("fault", ["500", "503", "cut", "lose"])
@pytest.mark.parametrize("data", [b"small", LARGE])
def test_faults_of_a_moment_are_survived(
    bucket: str, proxy: FaultyProxy, fault: Action, data: bytes
) -> None:
    left = dict.fromkeys(("GET", "PUT", "DELETE"), 2)

    def rule(request: Request) -> Action:
        left[request.method] = left.get(request.method, 0) - 1
        return fault if left[request.method] >= 0 else "pass"

    store = Bucket(bucket)
    proxy.rule = rule
    assert store.write("a", [data]) == len(data)
    assert store.names() == ["a"]
    assert store.read("a") == data
    store.delete("a")
    assert store.names() == []


def test_faults_that_last_are_errors(bucket: str, proxy: FaultyProxy) -> None:
    store = Bucket(bucket)
    store.write("a", [b"before"])
    proxy.rule = lambda _: "500"
    for action in (store.names, lambda: store.read("a"), lambda: store.write("a", [LARGE])):
        with pytest.raises(StoreError, match="500"):
            action()
    proxy.rule = lambda _: "pass"
    assert store.read("a") == b"before"
