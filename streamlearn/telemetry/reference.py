"""The metrics reference, from the catalog itself.

python -m streamlearn.telemetry.reference > docs/metrics.md
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from streamlearn.telemetry.catalog import (
    DAEMON,
    EDGES,
    FATES,
    FLOW,
    LATE,
    MODEL,
    PREFIX,
    QUALITY,
    REASONS,
    REGRET,
    STAGES,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.telemetry.catalog import Metric

GROUPS = {
    "What flows": FLOW,
    "Labels that come late": LATE,
    "How good predictions are": QUALITY,
    "Regret": REGRET,
    "Models": MODEL,
    "The daemon": DAEMON,
}
INTRODUCTION = """\
# Metrics

Made from the code by `python -m streamlearn.telemetry.reference`; a test keeps the two equal.

A daemon serves them at `http://HOST:PORT/metrics` (see `[telemetry]` in the
[configuration](configuration.md)) for Prometheus; they are read when it asks, so that learning pays
nothing for them. The numbers that all processes have (`process_cpu_seconds_total`,
`process_resident_memory_bytes`, ...) are there too.

- A `_total` begins at 0 with the process. What belongs to a model's life is a gauge, which goes on
  from the checkpoint: no `rate()` jumps at a restart.
- A number that does not exist is absent, not 0: the area under a curve of labels that are all
  alike, the step size of a rule that has none, a bound that is not proved.
- "Of late" and "the last events" are windows counted in events.
"""
LABELS = {
    "learner": "the learner's name in the configuration",
    "member": "a rule of the mixture",
    "topic, partition": "where records come from; a file is partition 0 of its path",
    "stage": f"of the way of a batch: {', '.join(STAGES)}",
}


def text() -> str:
    """The reference, in Markdown."""
    return "\n".join([INTRODUCTION, *labels(), *(line for part in sections() for line in part)])


def labels() -> Iterator[str]:
    """What the labels mean."""
    yield "| label | |\n|---|---|"
    for name, meaning in LABELS.items():
        yield f"| `{name.replace(', ', '`, `')}` | {meaning} |"
    for name, meaning in REASONS.items():
        yield f'| `reason="{name}"` | {meaning} |'
    for name, meaning in FATES.items():
        yield f'| `fate="{name}"` | {meaning} |'
    yield ""


def sections() -> Iterator[list[str]]:
    """A table a group."""
    for title, metrics in GROUPS.items():
        yield [f"## {title}\n", "| metric | type | labels | |\n|---|---|---|---|"]
        yield [*map(row, metrics), ""]


def row(metric: Metric) -> str:
    """One metric."""
    named = ", ".join(f"`{label}`" for label in metric.labels)
    about = metric.help
    if metric.kind == "histogram":
        about += f" Buckets end at {', '.join(f'{edge:.10g}' for edge in EDGES[metric.name])} s."
    kind = "gauge, always 1" if metric.kind == "info" else metric.kind
    return f"| `{PREFIX}{metric.name}` | {kind} | {named} | {about} |"


if __name__ == "__main__":
    sys.stdout.write(text())
