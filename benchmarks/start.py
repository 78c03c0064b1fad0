"""Measure the time from process start to the first learned batch, on a real broker.

python -m benchmarks.start [--rounds N]

The daemon runs `config/bench.toml`. CPU time is more reliable than wall time on a busy machine,
but does not include waiting for the broker. `STREAMLEARN_BOOTSTRAP` names a broker; otherwise one
is started, which needs Java and Maven. The last line is a synthetic stream, without a broker.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks.kafka import CLIENTS, ROOT, fill
from benchmarks.report import table
from tests.broker.apache_kafka import ApacheKafka

# a daemon that reports when it has learned its first records, and exits
DAEMON = """
import os, sys, time
from streamlearn.daemon.pipeline import Pipeline
process = Pipeline.process
def marking(self, batch):
    process(self, batch)
    if self.counts.records:
        print(time.time(), time.process_time(), flush=True)
        os._exit(0)
Pipeline.process = marking
from streamlearn.cli.main import main
sys.exit(main(["run", sys.argv[1], "--set", "telemetry.port=0"]))
"""


def started(config: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Run a daemon until its first batch; return wall and CPU seconds."""
    with tempfile.TemporaryDirectory() as state:
        begun = time.time()
        done = subprocess.run(  # noqa: S603 -- ourselves
            [sys.executable, "-c", DAEMON, str(config)],
            env={**os.environ, "STREAMLEARN_STATE": state, **environ},
            check=False,
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
    if done.returncode or not done.stdout:
        raise RuntimeError(done.stderr[-3000:])
    moment, busy = map(float, done.stdout.split())
    return moment - begun, busy


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as place:
        bootstrap = os.environ.get("STREAMLEARN_BOOTSTRAP")
        if bootstrap is None:
            bootstrap = stack.enter_context(ApacheKafka(Path(place))).bootstrap
        topic = f"bench-{os.getpid()}"
        fill(bootstrap, topic, 10_000)
        text = (ROOT / "config" / "bench.toml").read_text(encoding="utf-8")
        bench, quick = Path(place, "bench.toml"), ROOT / "config" / "quickstart.toml"
        bench.write_text(text.replace('"bench', f'"{topic}'), encoding="utf-8")
        sides = {
            client: (bench, {"KAFKA_BOOTSTRAP": bootstrap, "BENCH_CLIENT": client})
            for client in CLIENTS
        }
        sides["none"] = (quick, {})
        rows = []
        for name, (config, environ) in sides.items():
            times = [started(config, environ) for _ in range(args.rounds)]
            walls, busy = [wall for wall, _ in times], [cpu for _, cpu in times]
            rows.append([name, *(f"{s:.2f}" for s in (min(walls), median(walls), median(busy)))])
    print(table(["client", "fastest, s", "median, s", "median CPU, s"], rows))


if __name__ == "__main__":
    main()
