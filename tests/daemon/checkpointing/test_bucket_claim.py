"""Epochs in an object store: what an owner may believe when the store fails or others take over."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon.checkpointing import bucket_claim
from streamlearn.daemon.checkpointing.bucket_claim import BucketClaim
from streamlearn.daemon.checkpointing.claim import UnconfirmedError
from streamlearn.daemon.checkpointing.ownership import Ownership
from streamlearn.daemon.checkpointing.writer import (
    CheckpointWriter,
    FailedCheckpoint,
    WrittenCheckpoint,
)
from streamlearn.daemon.process.exits import Exit, Fenced, Stop
from streamlearn.estimators import checkpoints
from streamlearn.estimators.checkpoints import CheckpointId, Epoch, epoch_name
from streamlearn.storage import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.faulty_proxy import Action, FaultyProxy, Request

LEASE = 2.0


def acquire(bucket: str, lease: float = LEASE) -> Ownership:
    owner = Ownership(bucket, lease_seconds=lease)
    owner.acquire(lambda: checkpoints.newest(owner.store), wait=lambda: False)
    return owner


@pytest.fixture
def owner(bucket: str) -> Iterator[Ownership]:
    owner = acquire(bucket)
    yield owner
    owner.release()


def freeze(owner: Ownership) -> None:
    """Stop its renewals, as if its process were stopped."""
    assert owner._renewer is not None
    owner._renewer.stop()


def trust(owner: Ownership) -> None:
    """Let it pass the checks before an upload, which then takes long."""
    assert isinstance(owner.claim, BucketClaim)
    owner.claim._trusted_until += 60.0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def confirmed(owner: Ownership) -> bool:
    try:
        owner.check()
    except UnconfirmedError:
        return False
    return True


def start(writer: CheckpointWriter, events: int) -> Any:
    writer.start({"events": events}, {})
    return writer.collect(30.0)


def test_owner_pauses_during_an_outage_and_resumes(bucket: str, proxy: FaultyProxy) -> None:
    owner = acquire(bucket)
    proxy.rule = lambda _: "500"
    until(lambda: not confirmed(owner))
    proxy.rule = lambda _: "pass"
    until(lambda: confirmed(owner))
    owner.release()
    assert checkpoints.epochs(bucket) == [1]


def test_owner_survives_lost_answers(bucket: str, proxy: FaultyProxy) -> None:
    owner = acquire(bucket)
    lost = iter([True, False] * 100)

    def rule(request: Request) -> Action:
        return "lose" if request.method == "PUT" and next(lost) else "pass"

    proxy.rule = rule
    before = len(proxy.requests)
    until(lambda: sum(one.method == "PUT" for one in proxy.requests[before:]) > 12)
    until(lambda: confirmed(owner))
    owner.release()


def test_renewal_whose_answer_was_lost_counts_from_its_start(
    bucket: str, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = acquire(bucket)
    freeze(owner)
    now = bucket_claim.clock()
    monkeypatch.setattr(bucket_claim, "clock", lambda: now)
    proxy.rule = lambda request: "lose" if request.method == "PUT" else "pass"
    owner.claim.renew()  # done, though the owner does not know it
    now += 10.0 * LEASE
    proxy.rule = lambda _: "pass"
    owner.claim.renew()  # only finds this out, so a standby may have waited since then
    assert not confirmed(owner)
    owner.claim.renew()
    assert confirmed(owner)
    owner.release()


def test_frozen_owner_does_not_trust_its_lease(
    owner: Ownership, monkeypatch: pytest.MonkeyPatch
) -> None:
    freeze(owner)
    owner.check()
    later = bucket_claim.clock() + LEASE
    monkeypatch.setattr(bucket_claim, "clock", lambda: later)
    with pytest.raises(UnconfirmedError):
        owner.check()
    owner.confirm()
    owner.check()


def test_checkpoint_of_a_replaced_owner_is_not_durable(bucket: str, owner: Ownership) -> None:
    freeze(owner)
    others: list[Ownership] = []
    writer = CheckpointWriter(owner, flush=lambda _: others.append(acquire(bucket)))
    trust(owner)
    with pytest.raises(Fenced):
        start(writer, 1)
    assert checkpoints.all_ids(bucket) == [CheckpointId(1, 1)]
    assert checkpoints.valid(bucket) == []
    others[0].check()
    others[0].release()


def test_confirmed_checkpoint_is_seen_by_the_next_owner(bucket: str, owner: Ownership) -> None:
    writer = CheckpointWriter(owner, flush=lambda _: None)
    freeze(owner)
    assert isinstance(start(writer, 1), WrittenCheckpoint)
    standby = Ownership(bucket, lease_seconds=LEASE)
    written: list[Any] = []

    def load() -> Any:  # the epoch is over: what comes now is not confirmed
        with pytest.raises(Fenced):
            written.append(start(writer, 2))
        return checkpoints.newest(bucket)

    trust(owner)
    found = standby.acquire(load, wait=lambda: False)
    assert found is not None
    assert found[1]["events"] == 2  # it was there in time, and may count
    assert written == []
    standby.release()


def test_upload_that_seemed_to_fail_is_not_overwritten(bucket: str, proxy: FaultyProxy) -> None:
    owner = acquire(bucket)
    clock = iter([0.0, 100.0])
    writer = CheckpointWriter(owner, flush=lambda _: None, clock=lambda: next(clock))
    proxy.rule = lambda request: "lose" if request.upload else "pass"
    assert isinstance(start(writer, 1), FailedCheckpoint)
    proxy.rule = lambda _: "pass"
    assert isinstance(start(writer, 2), WrittenCheckpoint)
    assert checkpoints.all_ids(bucket) == [CheckpointId(1, 2), CheckpointId(1, 1)]
    owner.release()


def test_standby_survives_an_outage_which_does_not_count(bucket: str, proxy: FaultyProxy) -> None:
    owner = acquire(bucket)
    standby = Ownership(bucket, lease_seconds=0.5)
    stop = threading.Event()
    looks: list[bool] = []

    def wait() -> bool:
        looks.append(confirmed(owner))
        time.sleep(0.05)
        return not stop.is_set()

    thread = threading.Thread(target=lambda: refused(standby, wait))
    thread.start()
    until(lambda: len(looks) > 5)
    proxy.rule = lambda _: "503"
    until(lambda: not looks[-1])
    proxy.rule = lambda _: "pass"
    until(lambda: looks[-1])
    stop.set()
    thread.join()
    until(lambda: confirmed(owner))
    assert checkpoints.epochs(bucket) == [1]
    owner.release()


def refused(standby: Ownership, wait: Callable[[], bool]) -> None:
    with pytest.raises(Stop) as caught:
        standby.acquire(lambda: None, wait=wait)
    assert caught.value.code == Exit.OWNED


def test_killed_owner_is_replaced_without_waiting_to_be_told(bucket: str) -> None:
    """An instance that is not to wait for a live owner still waits to see whether it is alive."""
    freeze(acquire(bucket, lease=1.0))
    start = time.monotonic()
    second = acquire(bucket, lease=1.0)
    assert second.epoch == 2
    assert time.monotonic() - start > 1.0
    second.release()


def test_lease_of_the_owner_counts_if_it_is_longer(bucket: str) -> None:
    owner = acquire(bucket, lease=LEASE)
    freeze(owner)
    start = time.monotonic()
    second = acquire(bucket, lease=0.5)
    assert time.monotonic() - start > LEASE
    second.release()


def test_epoch_copied_from_a_directory_has_no_owner(bucket: str) -> None:
    store = open_store(bucket)
    store.write(epoch_name(7), [Epoch(7, "host:1:a", None, "models").packed()])
    owner = acquire(bucket, lease=3600.0)
    assert (owner.epoch, owner.models_id) == (8, "models")
    owner.release()


def test_emptied_store_has_its_own_exit_code(bucket: str, owner: Ownership) -> None:
    freeze(owner)
    for name in owner.store.names():
        owner.store.delete(name)
    owner.claim.renew()
    with pytest.raises(Stop) as caught:
        owner.check()
    assert caught.value.code == Exit.NO_CHECKPOINT
    assert checkpoints.names(bucket) == []


@pytest.mark.parametrize("ignored", ["if-match", "if-none-match"])
def test_store_without_conditional_writes_is_refused(
    bucket: str, proxy: FaultyProxy, ignored: str
) -> None:
    proxy.ignored_condition = ignored
    with pytest.raises(Stop, match="conditional writes") as caught:
        acquire(bucket)
    assert caught.value.code == Exit.CHECKPOINT
    assert checkpoints.epochs(bucket) == []


def test_denied_and_unreachable_stores_end_with_their_codes(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Stop) as caught:
        acquire(bucket.replace("models", "nowhere"))
    assert caught.value.code == Exit.CHECKPOINT
    with monkeypatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(Stop) as caught:
            acquire(bucket)
    assert caught.value.code == Exit.DENIED
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(Stop) as caught:
        acquire(bucket)
    assert caught.value.code == Exit.CHECKPOINT
