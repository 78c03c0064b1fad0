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

cdef enum:
    TICK = 50_000  # microseconds
    MAX_LENGTH = 1024  # bytes of a line


cdef double seconds_now() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + 1e-9 * now.tv_nsec


cdef void write_line(int handle, const char* line) noexcept nogil:
    """Write a line, with the time as it is now where the line has its fields."""
    cdef char text[MAX_LENGTH]
    cdef tm parts
    cdef time_t now = time(NULL)
    gmtime_r(&now, &parts)
    write_bytes(handle, text, strftime(text, MAX_LENGTH, line, &parts))


cdef int[5] fatal_signals = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV]
cdef int last_code = 0  # with which the process ends, whatever dumping the stacks comes to


cdef void exit_on_signal(int _) noexcept nogil:
    """End the process, as the handler of a signal that would end it without its code."""
    exit_process(last_code)


cdef void abort(int signal, int code) noexcept nogil:
    """Dump the stacks by raising this signal, and end with the code.

    The interpreter may be in the middle of its own end, so that a stack is half gone.
    """
    global last_code
    last_code = code
    for fatal in fatal_signals:
        set_handler(fatal, exit_on_signal)
    raise_signal(signal)
    exit_process(code)


def ignore(int signal):
    """Ignore a signal in any thread, and where Python's own handlers are gone."""
    set_handler(signal, SIG_IGN)


cdef class Heartbeat:
    """Beats of a loop, and a watch over them that needs no GIL once it runs.

    A process that was stopped (SIGSTOP, a frozen container) is not stalled: a tick of the watch
    counts for two at most, however long it took.
    """

    cdef long long beats
    cdef double left
    cdef int late_code
    cdef bint ended

    def __cinit__(self):
        self.left = -1.0

    def beat(self):
        """The loop is alive."""
        self.beats += 1

    def deadline(self, double seconds, int code):
        """End the process with this code when so much time has passed; a later call replaces it."""
        self.late_code = code
        self.left = seconds

    def end(self):
        """End the watch; the process goes on."""
        self.ended = True

    def watch(
        self, double seconds, int code, int signal, int handle, bytes stalled, bytes overdue
    ):
        """Wait until `end`, or write_line the line, raise the signal here, and end with the code.

        `stalled` is said when there was no beat for so many seconds, `overdue` after the deadline;
        both as for strftime, which puts the time in.
        """
        cdef const char* silent_line = stalled
        cdef const char* late_line = overdue
        with nogil:
            self.wait(seconds, code, signal, handle, silent_line, late_line)

    cdef void wait(
        self, double seconds, int code, int signal, int handle, const char* stalled,
        const char* overdue,
    ) noexcept nogil:
        cdef long long last = self.beats
        cdef double idle = 0.0, before = seconds_now(), now, tick
        while not self.ended:
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
                    abort(signal, self.late_code)
            if idle > seconds:
                write_line(handle, stalled)
                abort(signal, code)
