"""Run five learners on a synthetic click stream, through the daemon's own loop.

view       counts errors, regrets and true weights, and decides when to end
screen     a live table on a terminal, plain lines otherwise
summary    what was learned, in words
explained  one event, by what its features add
files      the saved model, a sample of events, and what to do with them
"""

from __future__ import annotations

import dataclasses
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from streamlearn import config
from streamlearn.cli.actions.demo.files import DemoFiles
from streamlearn.cli.actions.demo.screen import PlainScreen, Screen, Silent
from streamlearn.cli.actions.demo.summary import summarize
from streamlearn.cli.actions.demo.view import UntilInterrupted, View
from streamlearn.cli.tables import show_json
from streamlearn.daemon import build
from streamlearn.daemon.collectors.telemetry import TelemetryCollector
from streamlearn.daemon.process.log import Log

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options
    from streamlearn.daemon.process.exits import Exit
    from streamlearn.stream import Source

SHOWN = "sparse"  # the learner that is explained and saved
LEARNERS = (
    {"name": "default"},
    {"name": SHOWN, "penalty": "L1(1e-4)"},
    {"name": "pegasos", "model": "PegasosClassifier(l2=1e-2)"},
    {"name": "adaptive", "model": "AdaptiveClassifier(l2=1e-2)"},
    {"name": "proximal", "model": "ProximalClassifier(l2=1e-2)"},
)
SECONDS = 60.0  # that the stream takes where somebody watches
PAGE_PORT = 9464


def run(options: Options) -> int:
    """Run the demo; Ctrl-C is a normal end."""
    try:
        view, code = watch(options)
    except KeyboardInterrupt:
        sys.stdout.write("Interrupted before the first event.\n")
        return 0
    if options.json and view.summary is not None:
        show_json(view.summary.facts)
    return int(code)


def watch(options: Options) -> tuple[View, Exit]:
    """Run the daemon's loop with a view of it."""
    settings = configured(options)
    log = Log(level="warning")
    # the view reads the numbers of the live page, even if it is not served
    telemetry = TelemetryCollector(settings, log, serve=not options.no_page)
    telemetry.regret.share = 0.2  # regret is what the demo shows
    screen = screen_of(options)
    files = DemoFiles(settings, None if options.no_save else options.save, options.command_line)
    view = View(settings, screen, telemetry, lambda: summarize(view, files, SHOWN))
    disabled = msgspec.structs.replace(settings.telemetry, enabled=False)
    settings = msgspec.structs.replace(settings, telemetry=disabled)
    loop = build.loop(settings, log, observers=[telemetry, view])
    view.stream = stream_of(loop.source)
    view.decoder_state = loop.pipeline.event_reader.decoder.state
    view.shown = SHOWN
    view.stays = is_watched(options) and not options.no_page
    view.stop_requested = loop.stop_requested
    loop.policy = dataclasses.replace(loop.policy, until=UntilInterrupted(view))
    return view, loop.run()


def is_watched(options: Options) -> bool:
    """Return whether a person is in front of the screen, rather than a program or a file."""
    return sys.stdout.isatty() and not options.json


def screen_of(options: Options) -> Silent:
    """Return a live screen, plain lines, or nothing for --json."""
    if options.json:
        return Silent()
    simple = os.environ.get("TERM", "dumb") in {"dumb", "unknown"}
    if options.plain or simple or not sys.stdout.isatty():
        return PlainScreen()
    return Screen()


def configured(options: Options) -> config.Config:
    """Return the configuration of the demo."""
    paced = is_watched(options) and not options.fast
    overrides: dict[str, Any] = {
        "source.kind": "synthetic",
        "source.events": options.events,
        "source.seed": options.seed,
        "source.drift": not options.no_drift,
        "learner": [dict(learner) for learner in LEARNERS],
        "run.until": "end",
        "regret.memory_bytes": 16_000_000,
        "regret.cpu_share": 0.2,
        "telemetry.port": free_port(PAGE_PORT),
    }
    if paced:
        overrides["source.rate"] = options.events / SECONDS
    return config.parse("", "demo", overrides, environ={})


def free_port(preferred: int) -> int:
    """Return the preferred port if it is free, else 0, which binds any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            return 0
    return preferred


def stream_of(source: Source) -> Any:
    """Return the stream of a synthetic source, which knows the true weights."""
    stream: Any = getattr(source, "stream")  # noqa: B009 - a Source in general has none
    return stream
