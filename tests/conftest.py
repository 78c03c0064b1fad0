"""Setup for all tests."""

from __future__ import annotations

import signal

# A shell starts background jobs with SIGINT ignored. Processes that tests start would inherit that,
# and could not be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
