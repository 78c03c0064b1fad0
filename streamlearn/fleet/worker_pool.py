"""Several workers on Ray: hand out rounds, collect what was learned, replace who does not answer.

Until `begin`, it is the reader of a daemon that learns alone. Then it is a `KafkaReader` without
records: the source says which partitions there are, and `take` returns what was learned of them. A
worker that dies, or does not answer within the deadline after the end of its round (one that is
frozen is not seen by Ray), is replaced; what it learned is lost, and learned again from the records
in the next round. `rounds.Rounds` decides what counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamlearn.daemon.checkpointing.checkpointer import PERMANENT_ERRORS
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.errors import FleetError, SinkError, SourceUnreachableError
from streamlearn.fleet.actor_pool import START_SECONDS, ActorPool
from streamlearn.fleet.cluster import AUTO
from streamlearn.fleet.remote_worker import Base, Failed, RemoteWorker
from streamlearn.fleet.round_length import RoundLength
from streamlearn.fleet.rounds import BaseId, Delta, Rounds
from streamlearn.fleet.scaling import RoundLoad, Scaling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from streamlearn.daemon.process.log import Log
    from streamlearn.fleet.learned import Learned
    from streamlearn.fleet.remote_worker import WorkerInstructions
    from streamlearn.kafka.reader import KafkaReader
    from streamlearn.stream import Partition, Records


@dataclass(eq=False)
class Worker:
    """One worker, as the pool sees it."""

    number: int
    actor: Any
    call: Any = None  # what it was asked
    since: float = 0.0  # when
    started: bool = False
    holds: BaseId | None = None  # the base that it has
    partitions: int = 0
    accepted: float | None = None  # when its last round was accepted
    rate: float = 0.0  # events a second in that round
    lag: int | None = None  # records that it has not read, after that round


class WorkerPool(ActorPool):
    """Workers in several processes; see `ActorPool` for the other parameters.

    Parameters
    ----------
    round_seconds
        How long a round is at most: see `RoundLength`.
    deadline_seconds
        How long after the end of a round a worker may answer.
    least
        How many workers there are at least: between this and `count`, by lag.
    """

    noun = "worker"

    def __init__(
        self,
        local: KafkaReader,
        told: WorkerInstructions,
        count: int,
        *,
        address: str = AUTO,
        round_seconds: float,
        deadline_seconds: float = 10.0,
        least: int,
        log: Log,
    ) -> None:
        self._scaling = Scaling(least, count)
        self._length = RoundLength(round_seconds)
        self._deadline = deadline_seconds
        self.rounds: Rounds | None = None  # None: the daemon learns alone
        self.goals: Mapping[Partition, int] = {}  # where rounds may end early
        self.workers: list[Worker] = []
        self._state: Callable[[], dict[str, Any]] = dict  # of the base, whole
        self._whole: Any = None  # the base in Ray's store, for workers that have no earlier one
        self._change: Any = None  # since the base before
        self._before: BaseId | None = None
        self._late: list[Any] = []  # calls of workers that were replaced
        self._began = 0.0  # the round
        self._events = 0  # that were learned in it
        self._under_way = self._reached = False  # the latter: whether any worker has started
        self._marks: dict[Partition, int] = {}
        self.round_bytes: int | None = None  # of what was learned in the last round
        super().__init__(local, RemoteWorker, told, count, address, log)
        self.workers = [self._start(number) for number in range(self._scaling.least)]

    # -- the interface of readers -----------------------------------------------------------------

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Also read these partitions, from these positions."""
        if self.rounds is None:
            self.local.assign(positions)
        else:
            self.rounds.place(positions)

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions."""
        if self.rounds is None:
            gone = list(partitions)
            marks = {where: self.local.highwater(where) for where in gone}
            self._marks = {where: mark for where, mark in marks.items() if mark is not None}
            self.local.drop(gone)
        else:
            self.rounds.remove(partitions)

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Stop fetching these partitions until `resume`."""
        if self.rounds is None:
            self.local.pause(partitions)

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch these partitions again."""
        if self.rounds is None:
            self.local.resume(partitions)

    def highwater(self, partition: Partition) -> int | None:
        """Return the offset after the newest record as of the last round."""
        if self.rounds is None:
            return self.local.highwater(partition)
        return self._marks.get(partition)

    def poll(self, seconds: float, most: int) -> list[Records]:
        """Return records while the daemon learns alone; then wait for workers, and return none."""
        self.check_head()
        self._await_starts()
        self._raise()
        if self.rounds is None:
            return self.local.poll(seconds, most)
        self._step(self.rounds, seconds)
        self._raise()
        return []

    def _raise(self) -> None:
        if self.raised is not None:
            raised, self.raised = self.raised, None
            raise raised

    def close(self) -> None:
        """Stop the workers, and Ray if it was started here."""
        workers, self.workers = self.workers, []
        self.close_all(worker.actor for worker in workers)

    # -- rounds -----------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether a worker has started."""
        return any(worker.started for worker in self.workers)

    def begin(
        self, epoch: int, positions: Mapping[Partition, int], state: Callable[[], dict[str, Any]]
    ) -> None:
        """Let the workers learn from here on; the local reader only answers questions.

        `state` returns that of the base that is handed out, for workers that have no earlier one.
        """
        self.rounds = Rounds(epoch, positions)
        self._state = state
        self.log.info("workers learn", workers=len(self.workers), partitions=len(positions))

    def finished(self) -> bool:
        """Whether all workers of the round have answered, or were replaced."""
        return self._under_way and not any(w.started and w.call for w in self.workers)

    def topics_read(self) -> set[str]:
        """Return the topics of all partitions."""
        return set() if self.rounds is None else {where.topic for where in self.rounds.positions}

    def take(self) -> list[Delta]:
        """Return what was learned in the finished round."""
        assert self.rounds is not None  # noqa: S101 - nothing is finished before `begin`
        self._under_way = False
        deltas = self.rounds.finish()
        self._events = sum(delta.learned.counts.learned for delta in deltas)
        if deltas:
            self.round_bytes = sum(
                move.nbytes for delta in deltas for move in delta.learned.moves.values()
            )
        self._scale(self.rounds, [delta.learned for delta in deltas])
        return deltas

    def hand_out(self, moved: dict[str, Any], learned: int) -> None:
        """Say how the base has moved, which has learned so many events, for the next round."""
        assert self.rounds is not None  # noqa: S101 - as above
        now = self.rounds.base
        self._before = now._replace(number=now.number - 1)
        self._change, self._whole = self.put(Base(now, self._before, moved)), None
        between = max(time.monotonic() - self._began - self._length.seconds, 0.0)
        self._length.after(learned=learned, events=self._events, between=between)

    def _scale(self, rounds: Rounds, learned: Sequence[Learned]) -> None:
        """Start or end workers after a round, by its lag."""
        now = len(self.workers)
        if not all(worker.started for worker in self.workers):
            return
        length = self._length
        read = sum(one.counts.records for one in learned)
        events = int(read * length.most / length.seconds)  # in a whole round
        lag = sum(worker.lag or 0 for worker in self.workers)
        busy = sum(one.busy for one in learned) / now
        wanted = self._scaling.after(RoundLoad(now, events, lag, busy))
        wanted = max(min(wanted, len(rounds.positions)), self._scaling.least)
        if wanted != now:
            self.log.info("workers changed", workers=wanted, lag=lag)
        for worker in self.workers[wanted:]:
            self.kill(worker.actor)
        del self.workers[wanted:]
        self.workers += [self._start(number) for number in range(now, wanted)]

    def _step(self, rounds: Rounds, seconds: float) -> None:
        """Begin a round if none is under way, or wait for answers."""
        if not self._under_way:
            self._begin_round(rounds)
        calls = [worker.call for worker in self.workers if worker.call is not None]
        if calls:
            self.ray.wait(calls, num_returns=1, timeout=seconds, fetch_local=True)
        else:
            time.sleep(seconds)
        for worker in list(self.workers):
            self._collect(rounds, worker)
        self._refuse_late(rounds)

    def _begin_round(self, rounds: Rounds) -> None:
        """Ask all workers that have started to learn their share."""
        free = [worker for worker in self.workers if worker.started and worker.call is None]
        tasks = rounds.tasks(len(free)) if free else []
        for worker in free:
            worker.partitions = 0
        for worker, task in zip(free, tasks, strict=False):
            worker.partitions = len(task.starts)
            base = self._base_for(rounds, worker)
            goals, seconds = dict(self.goals), self._length.seconds
            self._ask(worker, worker.actor.learn.remote(task, base, goals, seconds))
        self._under_way, self._began = bool(tasks), time.monotonic()

    def _base_for(self, rounds: Rounds, worker: Worker) -> Any:
        """Return what a worker needs to have the base: nothing, changes, or all of it."""
        if worker.holds == rounds.base:
            return None
        if worker.holds is not None and worker.holds == self._before and self._change is not None:
            return self._change
        if self._whole is None:
            self._whole = self.put(Base(rounds.base, None, self._state()))
        return self._whole

    def _ask(self, worker: Worker, call: Any) -> None:
        worker.call, worker.since = call, time.monotonic()

    def _collect(self, rounds: Rounds, worker: Worker) -> None:
        """Take a worker's answer, or replace it if there is none for too long."""
        if worker.call is None or not worker.started:
            return
        if not self.ray.wait([worker.call], num_returns=1, timeout=0)[0]:
            silent = time.monotonic() - worker.since
            if silent > self._length.seconds + self._deadline:
                self._replace(worker, f"no answer for {silent:.1f} s")
            return
        call, worker.call = worker.call, None
        try:
            answer = self.ray.get(call)
        except self.ray.exceptions.RayError as error:
            self._replace(worker, str(error).strip().splitlines()[-1])
            return
        worker.holds = None if isinstance(answer, Failed) else rounds.base
        if isinstance(answer, Failed):
            self._fail(answer)
        elif any(move.has_nan for move in answer.learned.moves.values()):
            rounds.refused["number"] += 1
            self._replace(worker, "it learned a weight that is not a number")
        elif (refused := rounds.offer(answer)) is None:
            self._note(worker, answer)
        else:
            self.log.warning("round refused", worker=worker.number, reason=refused)

    def _note(self, worker: Worker, delta: Delta) -> None:
        learned = delta.learned
        worker.accepted = time.time()
        worker.rate = learned.counts.events / max(learned.seconds, 1e-9)
        worker.lag = sum(mark - delta.ends[where] for where, mark in learned.marks.items())
        self._marks.update(learned.marks)

    def _fail(self, failed: Failed) -> None:
        """Let the next poll raise an error, unless it may pass: then the round is learned again."""
        error = failed.error or Stop(Exit(failed.code), failed.reason)
        if isinstance(error, SinkError) and not isinstance(error, PERMANENT_ERRORS):
            self.log.rate_limited("outputs", "warning", "round repeated", error=str(error))
        else:
            self.raised = error

    def _refuse_late(self, rounds: Rounds) -> None:
        """Offer what replaced workers still send; it begins where others have continued."""
        if not self._late:
            return
        done, self._late = self.ray.wait(self._late, num_returns=len(self._late), timeout=0)
        for call in done:
            try:
                answer = self.ray.get(call)
            except self.ray.exceptions.RayError:
                continue
            if isinstance(answer, Delta) and (refused := rounds.offer(answer)) is not None:
                self.log.warning("late round refused", reason=refused)

    # -- workers ----------------------------------------------------------------------------------

    def _start(self, number: int) -> Worker:
        actor, starting = self.new_actor()
        worker = Worker(number, actor)
        self._ask(worker, starting)
        return worker

    def _await_starts(self) -> None:
        """Note which workers have started; they take part from the next round on."""
        for worker in list(self.workers):
            if worker.started:
                continue
            if self.ray.wait([worker.call], num_returns=1, timeout=0)[0]:
                call, worker.call = worker.call, None
                try:
                    answer = self.ray.get(call)
                except self.ray.exceptions.RayError as error:
                    self._replace(worker, str(error).strip().splitlines()[-1])
                    continue
                if isinstance(answer, Failed):
                    self._start_again(worker, answer)
                else:
                    worker.started = self._reached = True
            elif (silent := time.monotonic() - worker.since) > START_SECONDS:
                if not self.ready:
                    raise self.not_started(worker.number, silent)
                worker.since = time.monotonic()
                self.log.warning("worker waits for a CPU", worker=worker.number)

    def _start_again(self, worker: Worker, failed: Failed) -> None:
        """Start a worker again if no broker answers it now, as others were answered before."""
        if not self._reached or not isinstance(failed.error, SourceUnreachableError):
            self._fail(failed)
            return
        error = str(failed.error)
        self.log.rate_limited("unreachable", "warning", "worker waits for brokers", error=error)
        self._ask(worker, worker.actor.start.remote(self._told))

    def _replace(self, worker: Worker, reason: str) -> None:
        """Replace a worker; the others read its partitions in the next round."""
        if worker.started and worker.call is not None:
            self._late.append(worker.call)
        self.kill(worker.actor)
        try:
            self.count_replacement(worker.number, reason)
        except FleetError as error:
            self.raised = error
            return
        self.workers[self.workers.index(worker)] = self._start(worker.number)
