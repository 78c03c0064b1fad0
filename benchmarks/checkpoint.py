"""Measure how long a checkpoint of 2^20 hashed slots pauses learning.

The pause is the copy of the state between two batches. The daemon runs with its defaults, with
regret and dead letters, over synthetic clicks. A checkpoint every 100,000 events makes some begin
while the previous one is still being written. The first copy is slower: it allocates its memory.

python -m benchmarks.checkpoint [--events N]
"""

import argparse
import io
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.report import table
from streamlearn import config
from streamlearn.daemon import build
from streamlearn.daemon.checkpointing.checkpointer import Checkpointer
from streamlearn.daemon.process.log import Log

CONFIG = """
[source]
kind = "synthetic"
events = {events}
[features]
kind = "{features}"
{learners}
[dead_letters]
path = "{directory}/dead.jsonl"
[checkpoint]
path = "{directory}/models"
every_events = 100_000
[telemetry]
port = 0
[run]
until = "end"
"""
LEARNERS = {
    "default": "",
    "sparse": 'rule = "DualAveraging(gamma=25.0)"\npenalty = "L1(1e-4)"',
    "pegasos": 'model = "PegasosClassifier(l2=1e-4)"',
    "adaptive": 'model = "AdaptiveClassifier()"',
}
SETS = {"default": ["default"], "four": list(LEARNERS)}


def text(directory: str, features: str, learners: list[str], events: int) -> str:
    """Return the configuration."""
    tables = "\n".join(f'[[learner]]\nname = "{name}"\n{LEARNERS[name]}' for name in learners)
    return CONFIG.format(directory=directory, features=features, learners=tables, events=events)


@contextmanager
def timed(pauses: list[tuple[float, float]]) -> Iterator[None]:
    """Record the wall time and the CPU time of each copy."""
    begin = Checkpointer._start  # noqa: SLF001 - what is measured

    def measured(self: Checkpointer, *arguments: Any) -> None:
        start, busy = time.perf_counter(), time.thread_time()
        begin(self, *arguments)
        pauses.append((time.perf_counter() - start, time.thread_time() - busy))

    setattr(Checkpointer, "_start", measured)  # noqa: B010 - restored below
    yield
    setattr(Checkpointer, "_start", begin)  # noqa: B010


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    args = parser.parse_args()
    lines = []
    for features in ("hashing", "names"):
        for name, learners in SETS.items():
            pauses: list[tuple[float, float]] = []
            with tempfile.TemporaryDirectory() as directory, timed(pauses):
                settings = config.parse(text(directory, features, learners, args.events))
                build.loop(settings, Log(stream=io.StringIO())).run()
            walls = [1e3 * wall for wall, _ in pauses]
            cpu = [1e3 * busy for _, busy in pauses]
            lines.append(
                [
                    name,
                    features,
                    str(len(pauses)),
                    f"{walls[0]:.0f}",
                    f"{statistics.median(walls):.0f}",
                    f"{max(walls):.0f}",
                    f"{statistics.median(cpu):.0f}",
                    f"{max(cpu):.0f}",
                ]
            )
    head = ["learners", "features", "checkpoints", "first", "median", "longest"]
    print("Pause per checkpoint, milliseconds of wall time and of CPU time\n")
    print(table([*head, "median CPU", "longest CPU"], lines))


if __name__ == "__main__":
    main()
