"""From the start of the process to the first batch learned, on a real broker: `config/bench.toml`.

python -m benchmarks.start [--rounds N]

Beside the time on the clock there is the CPU time of the process: on a machine with other work to
do it says more, though waiting for the broker is not in it. `STREAMLEARN_BOOTSTRAP` names a broker;
else one is started, which needs Java and Maven. The last line is a made-up stream, without broker.
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

# a daemon that tells when it has learned its first records, and ends
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
    """Seconds on the clock, and of the process."""
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
    print(table(["client", "least, s", "median, s", "CPU, s"], rows))


if __name__ == "__main__":
    main()
