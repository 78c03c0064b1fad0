"""`streamlearn run`: the daemon."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

from streamlearn import config
from streamlearn.cli.commands.check import config_arguments, directories, formats, load, read_again
from streamlearn.daemon import build
from streamlearn.daemon.process.exits import Exit, code_of
from streamlearn.daemon.process.log import Forward, Log
from streamlearn.errors import SinkError, SourceError
from streamlearn.stream import Partition

if TYPE_CHECKING:
    import argparse

    from streamlearn.cli.parsing import Options

CODES = {
    Exit.OK: "ended as asked: by a signal, or --until",
    Exit.CRASH: "an error that nobody foresaw; the log has its stack",
    Exit.USAGE: "the command line or the configuration is wrong",
    Exit.SOURCE: "the source or an output is not reachable, or failed in another way",
    Exit.STREAM: "not the stream of the checkpoint, or its position is gone: see --on-gap",
    Exit.BAD_EVENTS: "too many events that cannot be read: see --skip-to",
    Exit.CHECKPOINT: "no checkpoint could be written for too long, or none can be read",
    Exit.FENCED: "another instance has taken over",
    Exit.WATCHDOG: "the loop was silent for too long; the log has its stack",
    Exit.OWNED: "another instance owns the models, and standby = false",
    Exit.UNSAVED: "stopped as asked, but without a last checkpoint",
    Exit.DENIED: "the source or an output is there, and refuses the login or the right",
    Exit.MISSING: "the server is there, and has no such topic; or there is no such file",
    Exit.UNLEARNED: "the end was reached, and none of the records could be learned",
    Exit.NO_CHECKPOINT: "no checkpoint where one is required, or its directory is gone",
}
# Objects made before Python looks for cycles among them. By itself it does so every 700, which are
# messages of one poll: each would be looked at again and again while the poll is learned.
COLLECT_EVERY = 20_000
HELP = "run the daemon: consume, predict, learn, checkpoint"
EXAMPLES = """\
  streamlearn run config/quickstart.toml
  streamlearn run config/clicks.toml --until end   # the backlog, then exit 0
  streamlearn run config/clicks.toml --begin       # once, where checkpoint.required = true
  streamlearn run config/clicks.toml --skip-to clicks:0:12345
  streamlearn run config/clicks.toml --reset sparse

exit codes:
""" + "\n".join(f"  {code:2d} {text}" for code, text in CODES.items())


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file, when to end, and what to do about a checkpoint that does not fit."""
    config_arguments(parser)
    parser.add_argument(
        "--until", metavar="WHEN", help='"end" of the backlog, a number of events, or a time'
    )
    parser.add_argument(
        "--begin",
        action="store_true",
        help="write the first checkpoint of a new model and end; none may be there yet",
    )
    parser.add_argument(
        "--reset",
        metavar="NAME",
        action="append",
        default=[],
        help="this learner begins afresh, its old state is archived (all: every one)",
    )
    parser.add_argument(
        "--skip-to",
        metavar="TOPIC:PARTITION:OFFSET",
        type=position,
        action="append",
        default=[],
        help="go on from there in this partition; all before it is passed over, good events too",
    )
    parser.add_argument(
        "--on-gap",
        choices=["stop", "continue"],
        help="records that are no longer there: stop, or go on and count them",
    )
    parser.add_argument(
        "--reset-offsets",
        action="store_true",
        help="go on where positions are past the end, or a topic was made again",
    )


def position(text: str) -> tuple[Partition, int]:
    """A place in a partition."""
    topic, number, offset = text.rsplit(":", 2)
    where = Partition(topic, int(number)), int(offset)
    if min(where[0].number, where[1]) < 0:
        raise ValueError(text)
    return where


def run(options: Options) -> int:
    """Run until the end; the exit code says why."""
    extra = {"run.until": options.until, "source.on_gap": options.on_gap}
    settings = load(options, {key: value for key, value in extra.items() if value is not None})
    if options.reset_offsets and not isinstance(settings.source, config.KafkaSourceConfig):
        raise ValueError(
            f"{options.file}: --reset-offsets is for topics; the source is not Kafka's"
        )
    if options.begin and settings.checkpoint is None:
        raise ValueError(f"{options.file}: --begin is for checkpoints; checkpoint.path is not set")
    if problems := [*read_again(settings), *directories(settings), *formats(settings)]:
        raise config.ConfigError(options.file, problems)
    if options.begin and options.until is not None:
        raise ValueError("--begin ends before the first record; leave out --until")
    log = Log(settings.log.format, settings.log.level)
    forward = Forward(log)
    logging.getLogger().addHandler(forward)
    gc.set_threshold(COLLECT_EVERY, *gc.get_threshold()[1:])
    try:
        loop = build.loop(
            settings,
            log,
            reset=options.reset,
            skip_to=dict(options.skip_to),
            reset_offsets=options.reset_offsets,
            begin=options.begin,
        )
    except (SourceError, SinkError) as error:  # an output is looked at before all else
        code = code_of(error)
        log.error("stopped", reason=str(error), exit=int(code))  # noqa: TRY400 - our own log
        return code
    else:
        return loop.run()
    finally:
        logging.getLogger().removeHandler(forward)
