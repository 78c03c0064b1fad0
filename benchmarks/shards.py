"""Shards on Ray beside threads and one thread: python -m benchmarks.hindsight --shards.

Three tables: a pass over two shards; a problem larger than the memory of a process; and the time of
a pass over 1 to 64 shards, of which 1 and 2 are measured and the others modeled ([Teo07] Figure 3).
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import streamlearn as sl
from benchmarks.report import Run, Timing, alternate, table
from streamlearn.fleet.cluster import connected
from streamlearn.fleet.shards import RayHost
from streamlearn.hindsight import ArrayShard, Problem, Solution, solve_shards
from streamlearn.hindsight.sharded import Host, LocalHost
from streamlearn.hindsight.sharded.files import file_shards
from streamlearn.hindsight.sharded.problem import load_shards

ROWS = 400_000  # of a shard
MANY_ROWS = 100_000_000  # for which a cluster is used
ENTRIES = 12  # of a row
FEATURES = 1 << 16
LOSS, PENALTY = sl.losses.Logistic(), sl.penalties.L2(1e-6)
STORE = 300 << 20
ACTORS = (1, 2, 4, 8)  # for the fixed costs of a pass
MODELED = (4, 8, 16, 32, 64)
LARGE_ROWS, LARGE_ENTRIES, PARTS = 250_000, 40, 4
LIMIT = 3.0  # memory of a process for its rows and for loading them, relative to those of a part


def shard(seed: int, rows: int) -> ArrayShard:
    """Return random rows like hashed clicks."""
    draw = np.random.default_rng(seed)
    index = draw.integers(0, FEATURES, rows * ENTRIES).astype(np.int32)
    first = np.arange(rows + 1, dtype=np.int32) * ENTRIES
    data = np.ones(rows * ENTRIES, dtype=np.float32)
    X = scipy.sparse.csr_array((data, index, first), shape=(rows, FEATURES))
    truth = np.random.default_rng(0).normal(size=FEATURES)
    return ArrayShard(X, np.where(X @ truth + draw.normal(size=rows) > 0.0, 1, -1))


def passes(risks: dict[str, Any], rounds: int) -> dict[str, Timing]:
    """Return the seconds of a pass over each risk."""
    w = np.full(FEATURES, 1e-3)
    sides: dict[str, Callable[[], Run]] = {
        name: partial(partial, risk.value_and_gradient, w) for name, risk in risks.items()
    }
    return alternate(sides, rounds)


def overhead(ray: Any, rounds: int) -> tuple[str, dict[str, float]]:
    """Compare a pass over two shards in one thread, in two, and in two actors."""
    given = [shard(1, ROWS), shard(2, ROWS)]
    whole = scipy.sparse.csr_array(scipy.sparse.vstack([one.X for one in given]))
    y = np.concatenate([one.y for one in given])
    with RayHost(ray) as host:
        risks = {
            "one thread": Problem(whole, y, LOSS, PENALTY).risk,
            "two threads": load_shards(given, LOSS, PENALTY, LocalHost()).problem.risk,
            "two actors": load_shards(given, LOSS, PENALTY, host).problem.risk,
        }
        timings = passes(risks, 10 * rounds)
    found = {name: 1e3 * timing.median for name, timing in timings.items()}
    row = [f"{value:.1f}" for value in found.values()]
    ratios = [
        found["one thread"] / found["two threads"],
        found["two actors"] / found["two threads"],
    ]
    head = [*(f"{name}, ms" for name in found), "one / two threads", "actors / threads"]
    return table(head, [[*row, *(f"{ratio:.2f}" for ratio in ratios)]]), found


def fixed_costs(ray: Any, rounds: int) -> tuple[float, float]:
    """Fit a + b K to the milliseconds of a pass over K actors that hardly have rows."""
    times = []
    for count in ACTORS:
        with RayHost(ray) as host:
            few = [shard(k, 10) for k in range(count)]
            risk = load_shards(few, LOSS, PENALTY, host).problem.risk
            times.append(1e3 * min(passes({"": risk}, 10 * rounds)[""].seconds))
    slope, start = np.polyfit(ACTORS, times, 1)
    return float(start), float(slope)


def curve(found: dict[str, float], start: float, slope: float) -> str:
    """Return the time of a pass over rows in 1 to 64 shards, each with a core of its own."""
    small, factor = 2 * ROWS, MANY_ROWS / (2 * ROWS)
    rows = []
    for count in (1, 2, *MODELED):
        times = [
            scale * found["one thread"] / count + (count > 1) * (start + slope * count)
            for scale in (1.0, factor)
        ]
        known = {1: found["one thread"], 2: found["two actors"]}.get(count)
        measured = "" if known is None else f"{known:.1f}"
        speedup = f"{factor * found['one thread'] / times[1]:.1f}"
        rows.append([str(count), measured, *(f"{each:.1f}" for each in times), speedup])
    head = ["shards", f"{small:,} rows measured, ms", "model, ms"]
    return table([*head, f"{MANY_ROWS:,} rows, model, ms", "speedup"], rows)


def write_parts(folder: Path) -> Iterator[Path]:
    """Write files whose rows together are four times as large as one of them."""
    draw = np.random.default_rng(3)
    for k in range(PARTS):
        path = folder / f"part-{k}.svm"
        with path.open("w") as file:
            for _ in range(LARGE_ROWS // 1000):
                index = np.sort(draw.integers(0, FEATURES, (1000, LARGE_ENTRIES)), axis=1)
                for row in index.tolist():
                    label = 1 if sum(row) % 7 > 2 else -1
                    file.write(f"{label} {' '.join(f'{j}:1' for j in dict.fromkeys(row))}\n")
        yield path


@dataclass(frozen=True)
class Limited:
    """A shard whose process may take only so many bytes from now on."""

    shard: Any
    limit: int

    @property
    def name(self) -> str:
        """The shard's name."""
        return str(self.shard.name)

    def load(self, loss: Any) -> Any:
        """Limit the process, and load the shard."""
        status = Path("/proc/self/status").read_text(encoding="ascii")
        (used,) = [int(line.split()[1]) << 10 for line in status.splitlines() if "VmData" in line]
        if resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_DATA, (used + self.limit, used + self.limit))
        return self.shard.load(loss)


def solve_limited(paths: Sequence[str], limit: int, host: Host | None = None) -> Solution:
    """Solve files, a shard each, by processes of limited memory."""
    features = sl.Hashing(16)
    given = file_shards(paths, format="svmlight", features=features)
    shards = [Limited(one, limit) for one in given]
    return solve_shards(shards, LOSS, sl.penalties.L2(1e-4), host=host, gap=1e-3)


def larger_than_memory(ray: Any) -> str:
    """Solve rows that one process has no memory for."""
    part = LARGE_ROWS * LARGE_ENTRIES * 8
    limit = int(LIMIT * part)
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(path) for path in write_parts(Path(folder))]
        code = f"from benchmarks.shards import solve_limited; solve_limited({paths!r}, {limit})"
        command = [sys.executable, "-c", code]
        alone = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 -- ourselves
        errors = alone.stderr.decode()
        end = "out of memory" if "MemoryError" in errors or "allocate" in errors else errors[-200:]
        begun = time.perf_counter()
        with RayHost(ray) as host:
            solution = solve_limited(paths, limit, host)
        seconds = time.perf_counter() - begun
    head = ["rows, MB", "limit of a process, MB", "one process", "four actors"]
    size = [f"{PARTS * part / 1e6:.0f}", f"{limit / 1e6:.0f}"]
    return table(head, [[*size, end, f"gap {solution.gap:.1e} in {seconds:.0f} s, with loading"]])


def main(rounds: int) -> None:
    """Print the tables."""
    with connected("local", cpus=4, object_store_bytes=STORE) as ray:
        first, found = overhead(ray, rounds)
        print(f"A pass over {2 * ROWS:,} rows\n\n{first}\n")
        print(f"More rows than a process has memory for\n\n{larger_than_memory(ray)}\n")
        start, slope = fixed_costs(ray, rounds)
        print(f"Fixed costs of a pass over K actors: {start:.1f} + {slope:.2f} K ms\n")
        print(curve(found, start, slope))
