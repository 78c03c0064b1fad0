"""`streamlearn demo`: five learners on a made-up click stream, through the daemon's own loop.

view    counts what happens, and says when it is over
screen  how that is shown: a live table on a terminal, lines elsewhere
story   what was learned, computed from what happened
"""

from __future__ import annotations

import dataclasses
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn import config
from streamlearn.cli.actions.demo.screen import PlainScreen, Screen, Silent
from streamlearn.cli.actions.demo.story import told
from streamlearn.cli.actions.demo.view import UntilNobodyLooks, View
from streamlearn.cli.tables import show_json
from streamlearn.daemon import build
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.daemon.process.log import Log

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options
    from streamlearn.daemon.process.exits import Exit
    from streamlearn.stream import Source

LEARNERS = (
    {"name": "default"},
    {"name": "sparse", "rule": "AdaGradDualAveraging(step=0.3)", "penalty": "L1(3e-4)"},
    {"name": "pegasos", "model": "PegasosClassifier(l2=1e-2)"},
    {"name": "adaptive", "model": "AdaptiveClassifier(l2=1e-2)"},
    {"name": "proximal", "model": "ProximalClassifier(l2=1e-2)"},
)
PAGE_PORT = 9464


def run(options: Options) -> int:
    """Run the demonstration; Ctrl-C is a normal end."""
    try:
        view, code = shown(options)
    except KeyboardInterrupt:
        sys.stdout.write("It ended before the first event.\n")
        return 0
    if options.json and view.story is not None:
        show_json(view.story.facts)
    return int(code)


def shown(options: Options) -> tuple[View, Exit]:
    """Run it; what there was to see, and how it ended."""
    settings = configured(options)
    log = Log(level="warning")
    # the numbers are the page's; without a page nobody is served
    watching = TelemetryCollector(settings, log, serves=not options.no_page)
    watching.regrets.share = 0.2  # here they are what there is to see
    screen = chosen(options)
    view = View(settings, screen, watching, lambda: told(view, made_up(loop.source)))
    own = msgspec.structs.replace(settings.telemetry, enabled=False)
    settings = msgspec.structs.replace(settings, telemetry=own)
    loop = build.loop(settings, log, observers=[watching, view])
    view.wanted = loop.stop_wanted
    loop.policy = dataclasses.replace(loop.policy, until=UntilNobodyLooks(view))
    return view, loop.run()


def chosen(options: Options) -> Silent:
    """How it is shown: as JSON at the end, as lines, or live."""
    if options.json:
        return Silent()
    simple = os.environ.get("TERM", "dumb") in {"dumb", "unknown"}
    if options.plain or simple or not sys.stdout.isatty():
        return PlainScreen()
    return Screen()


def configured(options: Options) -> config.Config:
    """The configuration of the demonstration."""
    overrides: dict[str, Any] = {
        "source.kind": "synthetic",
        "source.events": options.events,
        "source.seed": options.seed,
        "source.drift": not options.no_drift,
        "learner": [dict(learner) for learner in LEARNERS],
        "run.until": "end",
        "regret.memory": 10_000,
        "regret.cpu_share": 0.2,
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
