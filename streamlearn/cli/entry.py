"""The command `streamlearn` from its first moment on.

Importing the package takes a second, in which Ctrl-C should end the command as quietly as later;
so this stands outside of it.
"""

import signal


def main() -> None:
    """Import the command line and run it."""
    waits = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if waits:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from streamlearn.cli import process  # noqa: PLC0415 - the second that it takes

    if waits:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    process()
