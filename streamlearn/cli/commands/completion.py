"""`streamlearn completion`: what makes a shell complete commands, options and choices.

The scripts are whole: a shell that completes by asking the program would load it at each Tab.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlearn.cli.parsing import Options

HELP = "print what makes a shell complete commands and options"
EXAMPLES = """\
  streamlearn completion bash > ~/.local/share/bash-completion/completions/streamlearn
  streamlearn completion zsh > ~/.zfunc/_streamlearn   # a directory of $fpath
  streamlearn completion fish > ~/.config/fish/completions/streamlearn.fish
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the shell."""
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="for which shell")


def run(options: Options) -> int:
    """Print the script."""
    from streamlearn.cli.main import parser  # noqa: PLC0415 - which knows this command too

    words = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell](commands(parser()))
    sys.stdout.write("\n".join(words) + "\n")
    return 0


Known = dict[str, argparse.ArgumentParser]


def commands(root: argparse.ArgumentParser) -> Known:
    """All commands by name."""
    actions = root._actions  # noqa: SLF001 - argparse has no public way to its own declarations
    found: Known = {}
    for action in actions:
        if isinstance(action.choices, dict):
            found |= action.choices
    return found


def flags(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options of a command."""
    for action in parser._actions:  # noqa: SLF001 - see above
        if action.option_strings:
            yield action


def bash(known: Known) -> Iterator[str]:
    """Words for options and commands; files for the rest."""
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
        words += places(parser)
        yield f'      {name}) words="{" ".join(words)}" ;;'
    yield "    esac; fi"
    yield "  fi"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "}"
    yield "complete -o default -F _streamlearn streamlearn"


def zsh(known: Known) -> Iterator[str]:
    """Commands and options with their help; files for the rest."""
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
        words = " ".join(places(parser))
        yield f"    '*:argument:{f'({words})' if words else '_files'}' ;;"
    yield "esac"


def fish(known: Known) -> Iterator[str]:
    """Commands and options with their help; files for the rest."""
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
        if places(parser):
            yield f"{here} -f -a {shlex.quote(' '.join(places(parser)))}"


def places(parser: argparse.ArgumentParser) -> list[str]:
    """The choices of arguments that are no options."""
    actions = parser._actions  # noqa: SLF001 - see above
    return [str(one) for a in actions if not a.option_strings for one in a.choices or ()]


def given(action: argparse.Action) -> str:
    """What zsh offers as an option's value."""
    return f"({' '.join(map(str, action.choices))})" if action.choices else "_files"


def plain(text: str | None) -> str:
    """A help text without what shells give a meaning to."""
    return "".join(" " if sign in "[]:\\\n" else sign for sign in (text or "").replace("%%", "%"))
