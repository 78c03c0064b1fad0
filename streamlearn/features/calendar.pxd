"""Times: parsing of ISO 8601 and of other dates, and the calendar of a time zone."""

from libc.stdint cimport int64_t

cdef enum DateOrder:  # of a date's numbers
    ISO
    YMD
    MDY
    DMY


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


cdef inline bint scan_zone(const char* p, const char* end, int64_t* seconds) noexcept nogil:
    """Subtract an offset from UTC such as `Z` or `+01:00`, if any; False if there is more."""
    cdef int offset, more = 0
    if p == end:
        return True
    if p[0] == b"Z" or p[0] == b"z":
        return p + 1 == end
    if end - p < 3 or (p[0] != b"+" and p[0] != b"-"):
        return False
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
    seconds[0] += offset if p[0] == b"-" else -offset
    return True


cdef inline const char* skip_fraction(const char* p, const char* end) noexcept nogil:
    """Skip the fraction of a second, if any."""
    if end - p >= 2 and p[0] == b".":
        p += 1
        while p < end and 48 <= p[0] <= 57:
            p += 1
    return p


cdef inline bint scan_time(const char* p, Py_ssize_t length, int64_t* seconds) noexcept nogil:
    """Read a time such as `2026-01-31T13:05:00.5+01:00`, or a date; whole seconds since 1970.

    False if it has another form, which may be ISO 8601 nevertheless.
    """
    cdef const char* end = p + length
    cdef int year, month, day, hour, minute, second = 0
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
        p = skip_fraction(p + 3, end)
    seconds[0] += 3600 * hour + 60 * minute + second
    return scan_zone(p, end, seconds)


cdef inline const char* scan_number(
        const char* p, const char* end, int most, int* x) noexcept nogil:
    """Read a number of at most so many digits; return its end, NULL if there is none."""
    cdef const char* first = p
    x[0] = 0
    while p < end and p - first <= most and 48 <= p[0] <= 57:
        x[0] = 10 * x[0] + p[0] - 48
        p += 1
    return p if 0 < p - first <= most else NULL


cdef inline const char* scan_month(const char* p, const char* end, int* month) noexcept nogil:
    """Read an English month, at least its first three letters; NULL if there is none."""
    cdef const char* names = (
        b"january  february march    april    may      june     "
        b"july     august   septemberoctober  november december ")
    cdef const char* name
    cdef int k, n
    for k in range(12):
        name = names + 9 * k
        n = 0
        while n < 9 and name[n] != b" " and p + n < end and (p[n] | 32) == name[n]:
            n += 1
        if n >= 3 and (p + n == end or not 97 <= (p[n] | 32) <= 122):
            month[0] = k + 1
            return p + n
    return NULL


cdef inline bint scan_clock(const char* p, const char* end, int64_t* seconds) noexcept nogil:
    """Add a time of day such as `13:05`, `1:05:00 PM` or `13:05:00.5+01:00`; False if none."""
    cdef int hour, minute, second = 0
    p = scan_number(p, end, 2, &hour)
    if p == NULL or p == end or p[0] != b":":
        return False
    p = scan_number(p + 1, end, 2, &minute)
    if p == NULL:
        return False
    if p < end and p[0] == b":":
        p = scan_number(p + 1, end, 2, &second)
        if p == NULL:
            return False
        p = skip_fraction(p, end)
    while p < end and p[0] == b" ":
        p += 1
    if end - p == 2 and (p[1] | 32) == b"m" and ((p[0] | 32) == b"a" or (p[0] | 32) == b"p"):
        if not 1 <= hour <= 12:
            return False
        hour = hour % 12 + (12 if (p[0] | 32) == b"p" else 0)
        p = end
    if hour > 23 or minute > 59 or second > 59:
        return False
    seconds[0] += 3600 * hour + 60 * minute + second
    return scan_zone(p, end, seconds)


cdef inline bint is_of_date(char c) noexcept nogil:
    return c == b"." or c == b"/" or c == b"-" or c == b"," or c == b" "


cdef inline bint scan_date(
        const char* p, Py_ssize_t length, DateOrder order, int64_t* seconds) noexcept nogil:
    """Read a date such as `31.1.2026`, `1/31/26` or `31 Jan 2026`, with or without a time of day.

    A year of two digits is from 1969 to 2068.
    """
    cdef const char* end = p + length
    cdef const char* first
    cdef int[3] part
    cdef int i, year, month, day, at_year = 0 if order == YMD else 2
    cdef int at_month = 0 if order == MDY else 1
    for i in range(3):
        first = p
        p = scan_number(first, end, 4 if i == at_year else 2, &part[i])
        if p == NULL and i == at_month:
            p = scan_month(first, end, &part[i])
        if p == NULL:
            return False
        if i == at_year:
            if p - first == 2:
                part[i] += 2000 if part[i] < 69 else 1900
            elif p - first != 4:
                return False
        first = p
        while i < 2 and p < end and is_of_date(p[0]):
            p += 1
        if i < 2 and p == first:
            return False
    year, month, day = part[at_year], part[at_month], part[3 - at_year - at_month]
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= days_of_month(year, month):
        return False
    seconds[0] = 86400 * days_from_civil(year, month, day)
    if p == end:
        return True
    if p[0] == b"T":
        return scan_clock(p + 1, end, seconds)
    first = p
    while p < end and (p[0] == b" " or p[0] == b","):
        p += 1
    return p > first and scan_clock(p, end, seconds)


cdef inline bint date_of_number(double x, int64_t* seconds) noexcept nogil:
    """Read a date that is a number, such as 20260131."""
    cdef int64_t n
    cdef int year, month, day
    if not 10101.0 <= x <= 99991231.0:
        return False
    n = <int64_t> x
    year, month, day = <int> (n // 10000), <int> (n // 100 % 100), <int> (n % 100)
    if n != x or not 1 <= month <= 12 or not 1 <= day <= days_of_month(year, month):
        return False
    seconds[0] = 86400 * days_from_civil(year, month, day)
    return True
