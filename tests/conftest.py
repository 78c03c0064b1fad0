"""What all tests need."""

from __future__ import annotations

import signal

# A shell starts what runs in its background with SIGINT ignored, and so would every process that a
# test starts, and interrupts in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
