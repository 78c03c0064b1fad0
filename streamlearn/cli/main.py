"""The command `streamlearn`.

Nothing heavy is imported before a command runs, so that `--help` and `--version` are immediate.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

import streamlearn
from streamlearn.cli.commands import (
    check,
    completion,
    demo,
    evaluate,
    export,
    inspect,
    models,
    predict,
    publish,
    replay,
    run,
    serve,
    solve,
    test,
    train,
)
from streamlearn.cli.parsing import INTERRUPTED, Command, CommandParser, Options
from streamlearn.daemon.process.exits import Exit, Stop, exit_code
from streamlearn.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMANDS: dict[str, Command] = {
    "demo": demo,
    "run": run,
    "serve": serve,
    "check": check,
    "train": train,
    "test": test,
    "predict": predict,
    "solve": solve,
    "evaluate": evaluate,
    "inspect": inspect,
    "export": export,
    "models": models,
    "publish": publish,
    "replay": replay,
    "completion": completion,
}
DAEMON = ("demo", "run", "models", "replay")
EXIT_SECONDS = 3.0  # for the interpreter to exit after the command
EPILOG = """\
exit codes: 0 success, 1 unexpected error, 2 wrong usage or configuration,
3 and above: why the daemon stopped (see streamlearn run --help)"""


def parser() -> CommandParser:
    """Return the parser of all commands."""
    root = CommandParser(
        prog="streamlearn",
        description="Learn linear models from event streams, one event at a time.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=streamlearn.__version__)
    commands = root.add_subparsers(metavar="COMMAND", dest="command", parser_class=CommandParser)
    for name, command in COMMANDS.items():
        one = commands.add_parser(
            name,
            help=command.HELP,
            description=f"{command.HELP[0].upper()}{command.HELP[1:]}.",
            epilog=f"examples:\n{command.EXAMPLES.rstrip()}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.arguments(one)
        one.add_argument("--debug", action="store_true", help="print the traceback of an error")
        one.set_defaults(parser=one)
        root.commands[name] = one
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
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
    if options.command in DAEMON and not posix():
        options.parser.error("the daemon needs Linux or macOS; on Windows, use WSL or Docker")
    try:
        code = int(action(options.command)(options))
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader (head, less) has closed the pipe; what is still buffered goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets one line
        return failed(error, options)
    return code


def action(command: str) -> Callable[[Options], int]:
    """Import what a command does; Ctrl-C ends the process quietly meanwhile, too."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    run: Callable[[Options], int] = importlib.import_module(
        f"streamlearn.cli.actions.{command}"
    ).run
    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run


def posix() -> bool:
    """Return whether this system has what the daemon needs."""
    return importlib.util.find_spec("fcntl") is not None  # Windows has none


def process() -> NoReturn:
    """Run `main` as a process, which ends when the command has ended."""
    open_streams()
    code = main()
    if not posix():
        sys.exit(code)
    watchdog = importlib.import_module("streamlearn.daemon.process.watchdog")
    watchdog.exit_within(EXIT_SECONDS, code, watchdog.Log())
    sys.exit(code)


def open_streams() -> None:
    """Open closed standard streams (`>&-`, as for daemons) on the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def failed(error: Exception, options: Options) -> int:
    """Print what went wrong in one line and return the exit code."""
    if options.debug:
        traceback.print_exception(error)
    name = options.parser.prog
    if isinstance(error, Stop):
        sys.stderr.write(f"{name}: {error.reason}\n")
        return error.code
    if isinstance(error, StoreError):
        sys.stderr.write(f"{name}: {error}\n")
        return exit_code(error)
    if isinstance(error, OSError) and error.filename is not None:
        sys.stderr.write(f"{name}: {error.filename}: {error.strerror}\n")
        return Exit.USAGE
    if isinstance(error, ValueError | OSError):
        sys.stderr.write(f"{name}: {error}\n")
        return Exit.USAGE
    hint = "" if options.debug else " (run again with --debug for the traceback)"
    sys.stderr.write(f"{name}: {type(error).__name__}: {error}{hint}\n")
    return Exit.CRASH
