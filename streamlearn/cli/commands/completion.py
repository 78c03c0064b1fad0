"""`streamlearn completion`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamlearn.cli.parsing import CommandParser

HELP = "print the completion script of a shell"
EXAMPLES = """\
  streamlearn completion bash > ~/.local/share/bash-completion/completions/streamlearn
  streamlearn completion zsh > ~/.zfunc/_streamlearn   # a directory in $fpath
  streamlearn completion fish > ~/.config/fish/completions/streamlearn.fish
"""


def arguments(parser: CommandParser) -> None:
    """Add the arguments."""
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="the shell")
