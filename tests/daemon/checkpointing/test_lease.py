"""Leases, at the times where they change: a store in memory, and a clock that is set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from streamlearn.daemon.checkpointing import bucket_claim
from streamlearn.daemon.checkpointing.bucket_claim import ENDED, RENEWALS, TRUSTED, BucketClaim
from streamlearn.daemon.checkpointing.claim import UnconfirmedError
from streamlearn.daemon.process.exits import Fenced, Stop
from streamlearn.errors import ModelFileError, StoreError
from streamlearn.estimators import checkpoints
from streamlearn.estimators.checkpoints import Epoch, epoch_name
from streamlearn.storage import open_store

if TYPE_CHECKING:
    from pathlib import Path

LEASE = 10.0
RENEW = LEASE / RENEWALS


class World:
    """A store with conditional writes, and the time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.stored: dict[str, tuple[bytes, int]] = {}
        self.reads = 0
        self.fault: Exception | None = None

    def _reach(self) -> None:
        if self.fault is not None:
            raise self.fault

    def check(self) -> None:
        self._reach()

    def read(self, name: str) -> tuple[bytes, Any]:
        self.reads += 1
        self._reach()
        if name not in self.stored:
            raise FileNotFoundError(name)
        return self.stored[name]

    def create(self, name: str, data: bytes) -> Any:
        return self._write(name, data, None)

    def replace(self, name: str, data: bytes, version: Any) -> Any:
        return self._write(name, data, version)

    def _write(self, name: str, data: bytes, version: Any) -> Any:
        self._reach()
        now = self.stored[name][1] if name in self.stored else None
        if now != version:
            return None
        self.stored[name] = data, (now or 0) + 1
        return self.stored[name][1]

    def epochs(self, _: object) -> list[int]:
        self._reach()
        return checkpoints.epochs_of(list(self.stored))

    def fields(self, number: int) -> Any:
        return json.loads(self.stored[epoch_name(number)][0])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(bucket_claim, "clock", lambda: world.now)
    monkeypatch.setattr(checkpoints, "epochs", world.epochs)
    monkeypatch.setattr(bucket_claim, "ConditionalObjects", lambda *_: world)
    return world


@pytest.fixture
def store(tmp_path: Path) -> Any:
    return open_store(tmp_path)


def owned(store: Any, number: int = 1, name: str = "first") -> BucketClaim:
    claim = BucketClaim(store, LEASE, name)
    assert claim.create(Epoch(number, name, None))
    return claim


def test_a_standby_looks_twice_in_the_time_of_a_renewal(world: World, store: Any) -> None:
    owned(store)
    standby = BucketClaim(store, LEASE, "second")
    assert standby.holder() == "first"
    assert world.reads == 1
    world.now += 0.49 * RENEW
    assert standby.holder() == "first"
    assert world.reads == 1
    world.now += 0.02 * RENEW
    assert standby.holder() == "first"
    assert world.reads == 2


def test_a_standby_takes_over_once_it_has_seen_no_renewal_for_a_lease(
    world: World, store: Any
) -> None:
    owned(store)
    standby = BucketClaim(store, LEASE, "second")
    assert standby.holder() == "first"
    assert not standby.certain  # it may be dead
    steps = 0
    while standby.holder() is not None:
        world.now += RENEW
        steps += 1
    assert steps == RENEWALS + 1  # more than the lease
    assert world.fields(1)["lease"] == ENDED
    assert world.fields(1)["ended_by"] == "second"
    assert standby.holder() is None


def test_a_standby_that_was_frozen_has_not_watched(world: World, store: Any) -> None:
    owned(store)
    standby = BucketClaim(store, LEASE, "second")
    standby.holder()
    for _ in range(RENEWALS):
        world.now += 99.0 * LEASE
        assert standby.holder() == "first"
    world.now += 99.0 * LEASE
    assert standby.holder() is None


def test_the_longer_one_of_two_leases_counts(world: World, store: Any) -> None:
    owned(store)
    for lease, steps in ((LEASE / 2.0, 2 * RENEWALS + 1), (3.0 * LEASE, RENEWALS + 1)):
        world.stored[epoch_name(1)] = (
            json.dumps({"owner": "first", "lease": {"seconds": LEASE}}).encode(),
            7,
        )
        standby, count = BucketClaim(store, lease, "second"), 0
        while standby.holder() is not None:
            world.now += lease / RENEWALS
            count += 1
        assert count == steps


def test_a_renewal_begins_the_lease_again(world: World, store: Any) -> None:
    owner = owned(store)
    standby = BucketClaim(store, LEASE, "second")
    standby.holder()
    for _ in range(3 * RENEWALS):
        world.now += RENEW
        owner.renew()
        assert standby.holder() == "first"
    assert standby.certain
    for _ in range(RENEWALS):
        world.now += RENEW
        assert standby.holder() == "first"
    world.now += RENEW
    assert standby.holder() is None
    owner.renew()
    with pytest.raises(Fenced):
        owner.confirm()
    assert isinstance(owner.lost_reason(), Fenced)


def test_an_owner_trusts_its_last_renewal_for_a_part_of_the_lease(world: World, store: Any) -> None:
    owner = owned(store)
    for _ in range(2):
        world.now += TRUSTED * LEASE - 0.01
        assert owner.lost_reason() is None
        world.now += 0.01
        with pytest.raises(UnconfirmedError):
            owner.lost_reason()
        owner.confirm()
    world.fault = StoreError("no answer")
    owner.renew()  # it fails, and it counts from its beginning
    with pytest.raises(StoreError):
        owner.confirm()
    world.now += TRUSTED * LEASE
    world.fault = None
    owner.renew()
    with pytest.raises(UnconfirmedError, match="no answer"):
        owner.lost_reason()
    owner.confirm()
    assert world.fields(1)["lease"] == {"seconds": LEASE, "renewals": 4}


def test_a_standby_waits_while_the_store_does_not_answer(world: World, store: Any) -> None:
    owned(store)
    standby = BucketClaim(store, LEASE, "second")
    world.fault = StoreError("no answer")
    with pytest.raises(StoreError):
        standby.holder()
    world.fault = None
    standby.holder()
    world.fault = StoreError("no answer")
    reads = world.reads
    for _ in range(5 * RENEWALS):
        world.now += RENEW
        assert standby.holder() == "first"
        assert standby.holder() == "first"
    assert world.reads == reads + 5 * RENEWALS  # not again with every call
    world.fault = None
    world.now += RENEW
    assert standby.holder() == "first"


def test_an_epoch_that_has_ended_has_no_holder_unless_there_is_a_newer_one(
    world: World, store: Any
) -> None:
    assert BucketClaim(store, LEASE, "second").holder() is None  # nothing was ever owned
    owner = owned(store)
    standby = BucketClaim(store, LEASE, "second")
    assert standby.holder() == "first"
    owner.release()
    owner.release()
    world.now += RENEW
    assert standby.holder() is None
    owned(store, 2, "third")
    assert standby.holder() is not None
    world.now += RENEW
    assert standby.holder() == "third"
    assert standby.newest == 2
    assert not BucketClaim(store, LEASE, "fourth").create(Epoch(2, "fourth", None))


def test_an_epoch_that_is_deleted_has_ended(world: World, store: Any) -> None:
    owner = owned(store)
    standby = BucketClaim(store, LEASE, "second")
    standby.holder()
    owned(store, 2, "third")
    del world.stored[epoch_name(1)]
    world.now += RENEW
    assert standby.holder() is not None
    assert standby.newest == 2
    owner.renew()
    assert isinstance(owner.lost_reason(), Fenced)
    assert standby.holder() == "third"
    world.stored.clear()
    world.now += RENEW
    with pytest.raises(Stop) as gone:
        standby.holder()
    assert not isinstance(gone.value, Fenced)


def test_an_owner_whose_store_is_emptied_is_told_so(world: World, store: Any) -> None:
    owner = owned(store)
    world.stored.clear()
    owner.renew()
    stop = owner.lost_reason()
    assert stop is not None
    assert not isinstance(stop, Fenced)


@pytest.mark.parametrize("data", [b"{", b"5", b'{"lease": 5}', b'{"lease": {"seconds": "x"}}'])
def test_an_epoch_that_is_damaged_is_named(data: bytes, world: World, store: Any) -> None:
    world.stored[epoch_name(3)] = data, 1
    with pytest.raises(ModelFileError, match=epoch_name(3)):
        BucketClaim(store, LEASE, "second").holder()
    world.stored[epoch_name(3)] = b'{"owner": "copied from a directory"}', 1
    assert BucketClaim(store, LEASE, "second").holder() is None
