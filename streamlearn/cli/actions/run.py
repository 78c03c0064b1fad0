"""Run the daemon."""

from __future__ import annotations

import gc
import logging
import threading
from typing import TYPE_CHECKING

from streamlearn import config
from streamlearn.cli.configured import load
from streamlearn.daemon import build, preflight
from streamlearn.daemon.process.exits import exit_code
from streamlearn.daemon.process.log import LibraryLogHandler, Log, log_failed_threads
from streamlearn.errors import SinkError, SourceError
from streamlearn.fleet import build as fleet
from streamlearn.serving import build as serving
from streamlearn.stream import Partition

if TYPE_CHECKING:
    from streamlearn.cli.parsing import Options

# New objects before Python's cycle collector runs. At its default of 700 it would scan the messages
# of one poll again and again while they are being learned.
COLLECT_EVERY = 20_000


def run(options: Options) -> int:
    """Run until the daemon stops; the exit code tells why."""
    extra = {
        "run.until": options.until,
        "source.on_gap": options.on_gap,
        "fleet.ray": options.ray,
    }
    settings = load(options, {key: value for key, value in extra.items() if value is not None})
    if options.reset_offsets and not isinstance(settings.source, config.KafkaSourceConfig):
        raise ValueError(
            f'{options.file}: --reset-offsets is for Kafka; source.kind is not "kafka"'
        )
    if options.begin and settings.checkpoint is None:
        raise ValueError(f"{options.file}: --begin writes a checkpoint; set checkpoint.path")
    if problems := [
        *preflight.loops(settings),
        *preflight.directories(settings),
        *preflight.formats(settings),
    ]:
        raise config.ConfigError(options.file, problems)
    if options.begin and options.until is not None:
        raise ValueError("--begin ends before the first record; remove --until")
    log = Log(settings.log.format, settings.log.level)
    team = fleet.team(settings, log)
    forward = LibraryLogHandler(log)
    logging.getLogger().addHandler(forward)
    hook = log_failed_threads(log)
    gc.set_threshold(COLLECT_EVERY, *gc.get_threshold()[1:])
    try:
        loop = build.loop(
            settings,
            log,
            reset=options.reset,
            skip_to={Partition(topic, n): offset for topic, n, offset in options.skip_to},
            reset_offsets=options.reset_offsets,
            begin=options.begin,
            observers=serving.observers(settings, log),
            connect=fleet.connect(settings, log),
            team=team,
        )
    except (SourceError, SinkError) as error:  # an output is opened first
        code = exit_code(error)
        log.error("stopped", reason=str(error), exit=int(code))  # noqa: TRY400 - our own log
        return code
    else:
        return loop.run()
    finally:
        logging.getLogger().removeHandler(forward)
        threading.excepthook = hook
