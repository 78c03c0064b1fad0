"""Read times in Python as the transforms of fields do."""

from libc.stdint cimport int64_t

ORDERS = {None: ISO, "ymd": YMD, "mdy": MDY, "dmy": DMY}


def date_seconds(value, order):
    """Return the whole seconds since 1970 of a date in this order of its parts, None if it is none.

    >>> date_seconds("31.01.1970 01:00", "dmy"), date_seconds("1/31/1970 1:00 AM", "mdy")
    (2595600, 2595600)
    >>> date_seconds("31.01.1970", "mdy"), date_seconds(19700131, "ymd")
    (None, 2592000)
    """
    cdef int64_t seconds = 0
    cdef bytes text
    if not isinstance(value, str):
        return seconds if order == "ymd" and date_of_number(value, &seconds) else None
    text = value.strip().encode()
    return seconds if scan_date(text, len(text), ORDERS[order], &seconds) else None
