"""The watchdog's native half: it ends a process whose loop is stalled, whoever holds the GIL."""

from libc.time cimport gmtime_r, strftime, time, time_t, tm

cdef extern from "<signal.h>" nogil:
    ctypedef void (*handler_t)(int) noexcept nogil
    int raise_signal "raise"(int signal)
    handler_t set_handler "signal"(int signal, handler_t handler)
    handler_t SIG_IGN
    int SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV

cdef extern from "<unistd.h>" nogil:
    void exit_process "_exit"(int code)
    ssize_t write_bytes "write"(int handle, const void* text, size_t length)
    int usleep(unsigned int microseconds)

cdef extern from "<time.h>" nogil:
    struct timespec:
        time_t tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec* now)
    enum:
        CLOCK_MONOTONIC
        CLOCK_PROCESS_CPUTIME_ID
        CLOCK_THREAD_CPUTIME_ID

cdef enum:
    TICK = 50_000  # microseconds
    MAX_LENGTH = 1024  # bytes of a line
    MAX_PATIENCE = 20  # times the limit of an exit, if it uses a processor now and then

cdef double PROGRESS = 1e-4  # seconds of a processor; less may be an error of the measurement


cdef double seconds_of(int clock) noexcept nogil:
    cdef timespec now
    clock_gettime(clock, &now)
    return now.tv_sec + 1e-9 * now.tv_nsec


cdef double seconds_now() noexcept nogil:
    return seconds_of(CLOCK_MONOTONIC)


cdef double seconds_of_others() noexcept nogil:
    """Return the processor time of all threads but this one."""
    cdef double own = seconds_of(CLOCK_THREAD_CPUTIME_ID)
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - own


cdef void write_line(int handle, const char* line) noexcept nogil:
    """Write a line, with the current time in its strftime fields."""
    cdef char text[MAX_LENGTH]
    cdef tm parts
    cdef time_t now = time(NULL)
    gmtime_r(&now, &parts)
    write_bytes(handle, text, strftime(text, MAX_LENGTH, line, &parts))


cdef int[5] fatal_signals = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV]
cdef int last_code = 0  # the exit code, even if dumping the stacks crashes


cdef void exit_on_signal(int _) noexcept nogil:
    """Handle a fatal signal, which would otherwise hide the exit code."""
    exit_process(last_code)


cdef void abort(int signal, int code) noexcept nogil:
    """Dump the stacks by raising a signal, and end the process with the code.

    The interpreter may be finalizing, so that dumping a stack can crash.
    """
    global last_code
    last_code = code
    for fatal in fatal_signals:
        set_handler(fatal, exit_on_signal)
    raise_signal(signal)
    exit_process(code)


def ignore(int signal):
    """Ignore a signal in any thread, also after Python removed its handlers."""
    set_handler(signal, SIG_IGN)


def watch_exit(double seconds, int code, int signal, int handle, bytes overdue):
    """End the process with this code if it hangs at exit.

    It hangs if no other thread uses a processor for `seconds`. Wall time alone does not tell: on a
    busy machine, an exit that works may have to wait for a processor much longer than it runs.
    """
    cdef const char* overdue_line = overdue
    cdef double idle = 0.0, total = 0.0, used, before, now, tick, last
    with nogil:
        before, last = seconds_now(), seconds_of_others()
        while idle < seconds and total < MAX_PATIENCE * seconds:
            usleep(TICK)
            now, used = seconds_now(), seconds_of_others()
            tick = min(now - before, 2e-6 * TICK)
            before = now
            idle, total = idle + tick, total + tick
            if used - last > PROGRESS:
                idle, last = 0.0, used
        write_line(handle, overdue_line)
        abort(signal, code)


cdef class Heartbeat:
    """Count the beats of a loop, and watch them from a thread that needs no GIL.

    A suspended process (SIGSTOP, a frozen container) is not stalled: a tick of the watch counts
    at most twice its length, however long it took.
    """

    cdef long long beats
    cdef double left
    cdef int overdue_code
    cdef bint stopped

    def __cinit__(self):
        self.left = -1.0

    def beat(self):
        """Record that the loop is alive."""
        self.beats += 1

    def deadline(self, double seconds, int code):
        """End the process with this code after `seconds`; a later call replaces it."""
        self.overdue_code = code
        self.left = seconds

    def stop(self):
        """Stop watching."""
        self.stopped = True

    def watch(
        self, double seconds, int code, int signal, int handle, bytes stalled, bytes overdue
    ):
        """Watch until `stop`, or write a line, dump the stacks by the signal, and end the process.

        The line is `stalled` after `seconds` without a beat, and `overdue` after the deadline. Both
        are formats for strftime.
        """
        cdef const char* stalled_line = stalled
        cdef const char* overdue_line = overdue
        with nogil:
            self.wait(seconds, code, signal, handle, stalled_line, overdue_line)

    cdef void wait(
        self, double seconds, int code, int signal, int handle, const char* stalled,
        const char* overdue,
    ) noexcept nogil:
        cdef long long last = self.beats
        cdef double idle = 0.0, before = seconds_now(), now, tick
        while not self.stopped:
            usleep(TICK)
            now = seconds_now()
            tick = min(now - before, 2e-6 * TICK)
            before = now
            idle = idle + tick if self.beats == last else 0.0
            last = self.beats
            if self.left > 0.0:
                self.left -= tick
                if self.left <= 0.0:
                    write_line(handle, overdue)
                    abort(signal, self.overdue_code)
            if idle > seconds:
                write_line(handle, stalled)
                abort(signal, code)
