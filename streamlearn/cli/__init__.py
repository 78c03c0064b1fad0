"""The command line: one file a command; commands are thin, what they do is in the layers below.

main         the commands, and how they end: one line for an error, and an exit code
parsing      arguments: help with examples, errors with the nearest that is valid
tables       rows for people (terminal), for pipes (plain lines), for programs (JSON)
completion   the shell completes commands, options and choices
check ..     the commands
"""

from streamlearn.cli.main import main, process

__all__ = ["main", "process"]
