"""`streamlearn demo`: five learners on a made-up click stream, through the daemon's own loop.

view    the live table, or plain lines
story   what was learnt, computed from what happened
"""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING, Any

from streamlearn.cli.demo.story import told
from streamlearn.cli.demo.view import View
from streamlearn.cli.parsing import whole
from streamlearn.cli.tables import show_json
from streamlearn.daemon import config, parts
from streamlearn.daemon.exits import Exit
from streamlearn.daemon.log import Log

if TYPE_CHECKING:
    import argparse

    from streamlearn.cli.parsing import Options
    from streamlearn.stream import Source

HELP = "watch five learners on a made-up click stream; no Kafka, no files"
EXAMPLES = """\
  streamlearn demo
  streamlearn demo --seed 7 --no-drift
  streamlearn demo --events 50000 --plain --no-page
"""
LEARNERS = (
    {"name": "default"},
    {"name": "sparse", "rule": "AdaGradDualAveraging(step=0.3)", "penalty": "L1(1e-4)"},
    {"name": "pegasos", "model": "PegasosClassifier(l2=1e-3)"},
    {"name": "adaptive", "model": "AdaptiveClassifier(l2=1e-4)"},
    {"name": "proximal", "model": "ProximalClassifier(l2=1e-4)"},
)
PAGE_PORT = 9464


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the stream and how it is shown."""
    parser.add_argument(
        "--events", metavar="N", type=whole, default=300_000, help="how many (300000)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="another truth (1)")
    parser.add_argument(
        "--no-drift", action="store_true", help="the truth does not change half way"
    )
    parser.add_argument("--no-page", action="store_true", help="without the live page")
    parser.add_argument(
        "--plain", action="store_true", help="plain lines, as when this is no terminal"
    )
    parser.add_argument("--json", action="store_true", help="the summary as JSON, at the end")


def run(options: Options) -> int:
    """Run the demonstration; Ctrl-C is a normal end."""
    settings = configured(options)
    plain = options.plain or options.json or not sys.stdout.isatty()
    view = View(settings, plain=plain, quiet=options.json)
    loop = parts.loop(settings, Log(level="warning"), observers=[view])
    code = loop.run()
    if code != Exit.OK:
        return code
    story = told(view, made_up(loop.source))
    if options.json:
        show_json(story.facts)
    else:
        sys.stdout.write("\n" + story.text)
    return 0


def configured(options: Options) -> config.Config:
    """The configuration of the demonstration."""
    overrides: dict[str, Any] = {
        "source.kind": "synthetic",
        "source.events": options.events,
        "source.seed": options.seed,
        "source.drift": not options.no_drift,
        "learner": [dict(learner) for learner in LEARNERS],
        "run.until": "end",
        "telemetry.enabled": not options.no_page,
        "telemetry.port": free_port(PAGE_PORT),
    }
    return config.parse("", "demo", overrides, environ={})


def free_port(wish: int) -> int:
    """The port that is wished for, or 0, which takes a free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wish))
        except OSError:
            return 0
    return wish


def made_up(source: Source) -> Any:
    """The stream behind a synthetic source, which knows the planted truth."""
    stream: Any = getattr(source, "stream")  # noqa: B009 - a Source in general has none
    return stream
