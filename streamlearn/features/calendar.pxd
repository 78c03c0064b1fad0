"""Times: parsing of ISO 8601, and the calendar of a time zone."""

from libc.stdint cimport int64_t


cdef inline int64_t days_from_civil(int64_t year, int month, int day) noexcept nogil:
    """The days from 1970-01-01 to a date of the Gregorian calendar, which begins in March here."""
    cdef int64_t y = year - (month <= 2)
    cdef int64_t era = y // 400  # years are positive
    cdef int64_t of_era = y - 400 * era
    cdef int64_t of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


cdef inline int month_of(int64_t days) noexcept nogil:
    """The month, from 1, of a day since 1970-01-01, of the years 1 to 9999."""
    cdef int64_t z = days + 719468
    cdef int64_t of_era = z - 146097 * (z // 146097)
    cdef int64_t years = (
        of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    cdef int64_t of_year = of_era - (365 * years + years // 4 - years // 100)
    cdef int month = <int> ((5 * of_year + 2) // 153)
    return month + 3 if month < 10 else month - 9


cdef inline int digits(const char* p, int n) noexcept nogil:
    """The number that n digits at p write; -1 if they are none."""
    cdef int i, d, x = 0
    for i in range(n):
        d = <unsigned char> p[i] - 48
        if d < 0 or d > 9:
            return -1
        x = 10 * x + d
    return x


cdef inline int days_of_month(int year, int month) noexcept nogil:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


cdef inline bint scan_time(const char* p, Py_ssize_t length, int64_t* seconds) noexcept nogil:
    """Read a time such as `2026-01-31T13:05:00.5+01:00`, or a date; whole seconds since 1970.

    False if it has another form, which may be ISO 8601 nevertheless.
    """
    cdef const char* end = p + length
    cdef int year, month, day, hour, minute, second = 0, offset = 0, more = 0
    if length < 10 or p[4] != b"-" or p[7] != b"-":
        return False
    year = digits(p, 4)
    month = digits(p + 5, 2)
    day = digits(p + 8, 2)
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= days_of_month(year, month):
        return False
    seconds[0] = 86400 * days_from_civil(year, month, day)
    p += 10
    if p == end:
        return True
    if end - p < 6 or (p[0] != b"T" and p[0] != b" " and p[0] != b"t") or p[3] != b":":
        return False
    hour = digits(p + 1, 2)
    minute = digits(p + 4, 2)
    if not 0 <= hour <= 23 or not 0 <= minute <= 59:
        return False
    p += 6
    if end - p >= 3 and p[0] == b":":
        second = digits(p + 1, 2)
        if not 0 <= second <= 59:
            return False
        p += 3
        if end - p >= 2 and p[0] == b".":
            p += 1
            while p < end and 48 <= p[0] <= 57:
                p += 1
    if p < end and (p[0] == b"Z" or p[0] == b"z"):
        p += 1
    elif end - p >= 3 and (p[0] == b"+" or p[0] == b"-"):
        offset = digits(p + 1, 2)
        if end - p == 6 and p[3] == b":":
            more = digits(p + 4, 2)
        elif end - p == 5:
            more = digits(p + 3, 2)
        elif end - p != 3:
            return False
        if not 0 <= offset <= 23 or not 0 <= more <= 59:
            return False
        offset = 3600 * offset + 60 * more
        if p[0] == b"-":
            offset = -offset
        p = end
    seconds[0] += 3600 * hour + 60 * minute + second - offset
    return p == end
