"""Print a script that completes commands, options and choices in a shell.

The script is static: asking the program at each Tab would be slow.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from streamlearn.cli.parsing import CommandParser, Options


def run(options: Options) -> int:
    """Print the script."""
    from streamlearn.cli.main import parser  # noqa: PLC0415 - it imports the commands

    words = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell](parser().commands)
    sys.stdout.write("\n".join(words) + "\n")
    return 0


def flags(parser: CommandParser) -> Iterator[argparse.Action]:
    """Yield the options of a command."""
    for action in parser.actions:
        if action.option_strings:
            yield action


def bash(known: dict[str, CommandParser]) -> Iterator[str]:
    """Complete commands and options by word, all else by file name."""
    yield "_streamlearn() {"
    yield '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"'
    yield '  local command="${COMP_WORDS[1]}" words=""'
    yield '  if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'    words="{" ".join([*known, "--help", "--version"])}"'
    yield "  else"
    yield '    case "$command $previous" in'
    for name, parser in known.items():
        for action in flags(parser):
            if action.choices:
                patterns = "|".join(f'"{name} {flag}"' for flag in action.option_strings)
                yield f'      {patterns}) words="{" ".join(map(str, action.choices))}" ;;'
    yield "    esac"
    yield '    if [ -z "$words" ]; then case "$command" in'
    for name, parser in known.items():
        words = [flag for action in flags(parser) for flag in action.option_strings]
        words += choices(parser)
        yield f'      {name}) words="{" ".join(words)}" ;;'
    yield "    esac; fi"
    yield "  fi"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "}"
    yield "complete -o default -F _streamlearn streamlearn"


def zsh(known: dict[str, CommandParser]) -> Iterator[str]:
    """Complete commands and options with their help, all else by file name."""
    yield "#compdef streamlearn"
    yield "local -a subcommands=("  # `commands` is a parameter of zsh itself
    for name, parser in known.items():
        yield f"  {shlex.quote(f'{name}:{plain(parser.description)}')}"
    yield ")"
    yield "if (( CURRENT == 2 )); then _describe command subcommands; return; fi"
    yield "shift words; (( CURRENT-- ))"
    yield 'case "$words[1]" in'
    for name, parser in known.items():
        yield f"  {name}) _arguments \\"
        for action in flags(parser):
            for flag in action.option_strings:
                value = "" if action.nargs == 0 else f":{action.dest}:{given(action)}"
                yield f"    {shlex.quote(f'{flag}[{plain(action.help)}]{value}')} \\"
        words = " ".join(choices(parser))
        yield f"    '*:argument:{f'({words})' if words else '_files'}' ;;"
    yield "esac"


def fish(known: dict[str, CommandParser]) -> Iterator[str]:
    """Complete commands and options with their help, all else by file name."""
    for name, parser in known.items():
        help_text = shlex.quote(plain(parser.description))
        yield f"complete -c streamlearn -f -n __fish_use_subcommand -a {name} -d {help_text}"
        here = f"complete -c streamlearn -n '__fish_seen_subcommand_from {name}'"
        for action in flags(parser):
            for flag in action.option_strings:
                kind = "-l" if flag.startswith("--") else "-s"
                value = "" if action.nargs == 0 else " -r"
                if action.choices:
                    value = f" -x -a {shlex.quote(' '.join(map(str, action.choices)))}"
                described = shlex.quote(plain(action.help))
                yield f"{here} {kind} {flag.lstrip('-')}{value} -d {described}"
        if choices(parser):
            yield f"{here} -f -a {shlex.quote(' '.join(choices(parser)))}"


def choices(parser: CommandParser) -> list[str]:
    """Return the choices of positional arguments."""
    actions = parser.actions
    return [str(one) for a in actions if not a.option_strings for one in a.choices or ()]


def given(action: argparse.Action) -> str:
    """Return what zsh offers as the value of an option."""
    return f"({' '.join(map(str, action.choices))})" if action.choices else "_files"


def plain(text: str | None) -> str:
    """Return a help text without characters that are special in shells."""
    return "".join(" " if sign in "[]:\\\n" else sign for sign in (text or "").replace("%%", "%"))
