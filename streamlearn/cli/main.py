"""The command `streamlearn`."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

import streamlearn
from streamlearn.cli.commands import (
    check,
    completion,
    demo,
    evaluate,
    inspect,
    models,
    predict,
    publish,
    replay,
    run,
    train,
)
from streamlearn.cli.parsing import INTERRUPTED, Command, Options, Parser, add
from streamlearn.daemon.process.exits import Exit, Stop
from streamlearn.daemon.process.log import Log
from streamlearn.daemon.process.watchdog import end_soon

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS: dict[str, Command] = {
    "demo": demo,
    "run": run,
    "check": check,
    "train": train,
    "predict": predict,
    "evaluate": evaluate,
    "inspect": inspect,
    "models": models,
    "publish": publish,
    "replay": replay,
    "completion": completion,
}
EXIT_SECONDS = 3.0  # for the interpreter to end, once the command has
EPILOG = """\
exit codes: 0 done, 1 an error that nobody foresaw, 2 wrong usage or configuration,
3 and above: why the daemon stopped (see streamlearn run --help)"""


def parser() -> Parser:
    """The parser of all commands."""
    root = Parser(
        prog="streamlearn",
        description="Learn linear models from event streams, one event at a time.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=streamlearn.__version__)
    commands = root.add_subparsers(metavar="COMMAND", dest="command", parser_class=Parser)
    for name, command in COMMANDS.items():
        add(commands, name, command)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    root = parser()
    given = sys.argv[1:] if arguments is None else list(arguments)
    options, unknown = root.parse_known_args(given, argparse.Namespace(command_line=given))
    if options.command is None:
        if unknown:
            root.unknown(unknown)
        root.print_help()
        return Exit.OK
    if unknown:
        options.parser.unknown(unknown)
    try:
        code = int(options.run(options))
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader (head, less) has seen enough; what is still buffered goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets one line
        return failed(error, options)
    return code


def process() -> NoReturn:
    """`main` as a process of its own, which ends when the command has ended."""
    open_streams()
    code = main()
    end_soon(EXIT_SECONDS, code, Log())
    sys.exit(code)


def open_streams() -> None:
    """What was closed for us (`>&-`, as for daemons) is empty, and takes whatever is written."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def failed(error: Exception, options: Options) -> int:
    """Say in one line what went wrong; the exit code."""
    if options.debug:
        traceback.print_exception(error)
    name = options.parser.prog
    if isinstance(error, Stop):
        sys.stderr.write(f"{name}: {error.reason}\n")
        return error.code
    if isinstance(error, OSError) and error.filename is not None:
        sys.stderr.write(f"{name}: {error.filename}: {error.strerror}\n")
        return Exit.USAGE
    if isinstance(error, ValueError | OSError):
        sys.stderr.write(f"{name}: {error}\n")
        return Exit.USAGE
    hint = "" if options.debug else " (run again with --debug to see where)"
    sys.stderr.write(f"{name}: {type(error).__name__}: {error}{hint}\n")
    return Exit.CRASH
