"""Synthetic streams with a known sparse truth: clicks, spending and mail.

Event n depends only on the seed and n (draws are hashes of a counter: Salmon et al., Parallel
random numbers: as easy as 1, 2, 3, 2011), so a stream can begin at any event and is the same on
every machine. Values follow Zipf's law by powers of two: the k ranges 1, 2-3, 4-7, ... of a
field's 2**k names are equally frequent.

A drift changes which names and numbers matter, and not how hard it is: the truth after it is the
truth before it, applied to an event whose names have traded places within their ranges and whose
numbers are mirrored. That event is as likely as the event itself. So the truth errs as often, and
as many events are positive.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.math cimport exp, log
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

import numpy as np

cdef enum:
    FIELDS = 6  # categories
    HEAD = 63  # the first names of a field, in whole ranges, which may have weights
    NUMBERS = 6
    WORDS = 24  # maximum words of a mail
    ROOM = 1024

KINDS = ("clicks", "impressions", "spending", "spam")
NAMED = (("user", "u", 14), ("ad", "a", 11), ("site", "s", 9), ("campaign", "c", 7),
         ("country", "", 4), ("device", "", 2))
COUNTRIES = (
    "DE", "FR", "US", "GB", "IT", "ES", "PL", "NL", "JP", "IN", "BR", "SE", "NO", "CH", "AT", "BE")
DEVICES = ("mobile", "desktop", "tablet", "tv")
PLANTED = (0.15, 0.4, 0.4, 0.3, 0.3, 0.5)  # the share of a field's head with non-zero weights
# weight before the drift, and center: the least plus the greatest value, halved
NUMERIC = (("hour", 0.0, 11.5), ("price", -0.25, 5.245), ("age", 0.0, 47.5),
           ("position", -0.3, 4.5), ("history", 2.0, 0.49995), ("returning", 0.0, 0.5))
BIAS = -0.7  # the log-odds of an event whose names have no weights, at the center
VOCABULARY = 12  # 2**12 words
SIGNS = 0.12  # the share of the first words with non-zero weights
START = 1_790_000_000  # the time of event 0


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """Return the finalizer of SplitMix64 ([Steele14])."""
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL
    return x ^ (x >> 31)


cdef inline uint64_t draw(uint64_t seed, uint64_t n, uint64_t k) noexcept nogil:
    """Return the k-th draw of event n."""
    return mix(mix(seed + n * 0x9e3779b97f4a7c15ULL) + k * 0xd1b54a32d192ed03ULL)


cdef inline double share(uint64_t bits) noexcept nogil:
    """Return a number in [0, 1) from random bits."""
    return <double>(bits >> 11) * (1.0 / 9007199254740992.0)


cdef inline uint64_t rank(uint64_t bits, int stretches) noexcept nogil:
    """Return a name's rank, from 0; small ranks are frequent."""
    cdef uint64_t stretch = (bits & 0xFFFFFFFFULL) * <uint64_t>stretches >> 32
    return (<uint64_t>1 << stretch) - 1 + (bits >> 32 & ((<uint64_t>1 << stretch) - 1))


cdef inline int partner(int name) noexcept nogil:
    """Return the name that trades places with this one: that of the other half of its range."""
    cdef int start = 1
    while 2 * start <= name + 1:
        start *= 2
    return (name + 1 ^ start >> 1) - 1


cdef inline char* put_text(char* to, const char* text, Py_ssize_t length) noexcept nogil:
    memcpy(to, text, length)
    return to + length


cdef inline char* put_int(char* to, uint64_t x) noexcept nogil:
    cdef char[24] digits
    cdef int n = 0
    while True:
        digits[n] = <char>(48 + x % 10)
        n += 1
        x //= 10
        if x == 0:
            break
    while n:
        n -= 1
        to[0] = digits[n]
        to += 1
    return to


cdef inline char* put_decimal(char* to, int64_t x, int places) noexcept nogil:
    """Write x / 10**places."""
    cdef int _i
    cdef int64_t unit = 1
    for _i in range(places):
        unit *= 10
    if x < 0:
        to[0] = b"-"
        to += 1
        x = -x
    to = put_int(to, <uint64_t>(x // unit))
    to[0] = b"."
    to += 1
    x %= unit
    for _i in range(places):
        unit //= 10
        to[0] = <char>(48 + x // unit)
        to += 1
        x %= unit
    return to


cdef class Clicks:
    """A stream of JSON events, by number.

    - `"clicks"`: names and numbers, label `clicked`;
    - `"impressions"`: the same with `id` and `time` and without label, see `delayed_clicks`;
    - `"spending"`: the same with a number as the label `spent`;
    - `"spam"`: a list of `words`, label `"spam"` or `"ham"`.

    From event `drift_at` on, the truth is a different one, and as hard to predict.

    >>> stream = Clicks(seed=1)
    >>> stream.value(0)
    b'{"user":"u0","ad":"a971","site":"s2","campaign":"c22","country":"IT","device":"mobile",\
"hour":14,"price":8.28,"age":42,"position":8,"history":0.0861,"returning":true,"clicked":false}'
    >>> stream.values(5, 2) == [stream.value(5), stream.value(6)]
    True
    >>> Clicks(seed=1).truth()["position"]
    -0.3
    """

    cdef readonly str kind
    cdef readonly uint64_t seed
    cdef readonly object drift_at
    cdef int sort
    cdef int64_t drift
    cdef double[2][FIELDS][HEAD] planted
    cdef double[2][NUMBERS] slope
    cdef double[2][HEAD] sign  # of words
    cdef list fixed  # countries and devices, as bytes

    def __init__(self, kind="clicks", seed=0, drift_at=None):
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r}: expected one of {', '.join(KINDS)}")
        if not 0 <= seed < 1 << 63:
            raise ValueError(f"seed={seed!r}: expected an integer >= 0")
        if drift_at is not None and drift_at < 0:
            raise ValueError(f"drift_at={drift_at!r}: expected the number of an event, >= 0")
        self.kind, self.seed, self.drift_at = kind, seed, drift_at
        self.sort = KINDS.index(kind)
        self.drift = 0x7FFFFFFFFFFFFFFF if drift_at is None else drift_at
        self.fixed = [[text.encode() for text in names] for names in (COUNTRIES, DEVICES)]
        self.plant()

    cdef int plant(self) except -1:
        """Draw the weights before the drift, and derive those after it."""
        cdef uint64_t seed = mix(self.seed * 2 + 1), bits
        cdef int f, v
        for f in range(FIELDS):
            for v in range(min(<int>HEAD, (1 << <int>NAMED[f][2]) - 1)):
                bits = draw(seed, v, f)
                if share(bits) < PLANTED[f]:
                    self.planted[0][f][v] = (
                        (1.0 if bits & 1 else -1.0) * (5 + (bits >> 1) % 11) / 10.0)
        for v in range(HEAD):
            bits = draw(seed, v, FIELDS)
            if share(bits) < SIGNS:
                self.sign[0][v] = (1.0 if bits & 1 else -1.0) * log(4.0)
        for v in range(HEAD):
            self.sign[1][v] = self.sign[0][partner(v)]
            for f in range(FIELDS):
                self.planted[1][f][v] = self.planted[0][f][partner(v)]
        for f in range(NUMBERS):
            self.slope[0][f], self.slope[1][f] = NUMERIC[f][1], -NUMERIC[f][1]
        return 0

    def truth(self, offset=0):
        """Return the true non-zero weights at this event, by the feature's name."""
        cdef int age = offset >= self.drift, f, v
        found = {}
        if self.kind == "spam":
            for v in range(HEAD):
                if self.sign[age][v] != 0.0:
                    found[f"words=w{v}"] = self.sign[age][v]
            return found
        for f in range(FIELDS):
            field, letter, _ = NAMED[f]
            for v in range(HEAD):
                if self.planted[age][f][v] != 0.0:
                    name = f"{letter}{v}" if f < 4 else self.fixed[f - 4][v].decode()
                    found[f"{field}={name}"] = self.planted[age][f][v]
        for f in range(NUMBERS):
            if self.slope[age][f] != 0.0:
                found[NUMERIC[f][0]] = self.slope[age][f]
        return found

    def intercept(self, offset=0):
        """Return the true intercept at this event, beside the weights of `truth`."""
        cdef int age = offset >= self.drift, f
        return BIAS - sum([self.slope[age][f] * NUMERIC[f][2] for f in range(NUMBERS)])

    @property
    def label(self):
        """The field of the label, None if events have none."""
        return {"clicks": "clicked", "spending": "spent", "spam": "label"}.get(self.kind)

    def __repr__(self):
        drift = "" if self.drift_at is None else f", drift_at={self.drift_at}"
        return f"Clicks({self.kind!r}, seed={self.seed}{drift})"

    def value(self, int64_t offset):
        """Return event `offset` as bytes."""
        cdef char[ROOM] text
        if offset < 0:
            raise ValueError(f"offset {offset}: expected an integer >= 0")
        return PyBytes_FromStringAndSize(text, self.write(offset, text))

    def values(self, int64_t start, Py_ssize_t n):
        """Return events start .. start + n - 1."""
        cdef Py_ssize_t i
        return [self.value(start + i) for i in range(n)]

    def clicked(self, int64_t offset):
        """Whether impression `offset` is clicked."""
        cdef char[ROOM] text
        cdef bint yes
        self.write_event(offset, text, &yes)
        return yes

    def chances(self, int64_t start, Py_ssize_t n):
        """Return the true probabilities that the events start .. start + n - 1 are clicked.

        Whoever knows them still errs in min(p, 1 - p) of the cases.

        >>> Clicks(seed=1).chances(0, 2).round(3)
        array([0.042, 0.065])
        """
        cdef double[::1] found = np.empty(n)
        cdef uint64_t[FIELDS] name
        cdef uint64_t[NUMBERS] number
        cdef Py_ssize_t i
        if self.sort > 1:
            raise ValueError(f"{self!r} has no clicks")
        for i in range(n):
            found[i] = 1.0 / (1.0 + exp(-self.draw_event(start + i, name, number)))
        return np.asarray(found)

    cdef Py_ssize_t write(self, int64_t n, char* text) except -1:
        cdef bint yes
        if self.sort == 3:
            return self.write_mail(n, text)
        return self.write_event(n, text, &yes)

    cdef double draw_event(self, int64_t n, uint64_t* name, uint64_t* number) noexcept nogil:
        """Draw names and numbers of an event; return the log-odds of a click."""
        cdef int age = n >= self.drift, f
        cdef double score = BIAS_VALUE
        cdef uint64_t bits
        for f in range(FIELDS):
            name[f] = rank(draw(self.seed, n, f), WIDTH[f])
            if name[f] < HEAD:
                score += self.planted[age][f][name[f]]
        bits = draw(self.seed, n, FIELDS)
        number[0] = (bits & 0xFFFF) * 24 >> 16
        number[1] = 50 + ((bits >> 16 & 0xFFFF) * 950 >> 16)  # cents
        number[2] = 18 + ((bits >> 32 & 0xFFFF) * 60 >> 16)
        number[3] = 1 + ((bits >> 48) * 8 >> 16)
        bits = draw(self.seed, n, FIELDS + 1)
        number[4] = (bits & 0xFFFFFFFFULL) * 10000 >> 32  # in units of 1/10000
        number[5] = bits >> 63
        score += self.slope[age][1] * (number[1] / 100.0 - CENTER[1])
        score += self.slope[age][3] * (number[3] - CENTER[3])
        return score + self.slope[age][4] * (number[4] / 10000.0 - CENTER[4])

    cdef Py_ssize_t write_event(self, int64_t n, char* text, bint* yes) except -1:
        cdef double score, noise
        cdef uint64_t[FIELDS] name
        cdef uint64_t[NUMBERS] number
        cdef uint64_t bits = draw(self.seed, n, FIELDS + 2)
        cdef char* to = text
        score = self.draw_event(n, name, number)
        yes[0] = share(bits) * (1.0 + exp(-score)) < 1.0
        to = put_text(to, b"{", 1)
        if self.sort == 1:
            to = put_text(to, b"\"id\":\"e", 7)
            to = put_int(to, n)
            to = put_text(to, b"\",\"time\":", 9)
            to = put_decimal(to, 10 * <int64_t>START * 1000 + 10 * n, 4)
            to = put_text(to, b",", 1)
        to = put_text(to, b"\"user\":\"u", 9)
        to = put_int(to, name[0])
        to = put_text(to, b"\",\"ad\":\"a", 9)
        to = put_int(to, name[1])
        to = put_text(to, b"\",\"site\":\"s", 11)
        to = put_int(to, name[2])
        to = put_text(to, b"\",\"campaign\":\"c", 15)
        to = put_int(to, name[3])
        to = put_text(to, b"\",\"country\":\"", 13)
        country = <bytes>(<list>self.fixed[0])[<Py_ssize_t>name[4]]
        to = put_text(to, country, len(country))
        to = put_text(to, b"\",\"device\":\"", 12)
        device = <bytes>(<list>self.fixed[1])[<Py_ssize_t>name[5]]
        to = put_text(to, device, len(device))
        to = put_text(to, b"\",\"hour\":", 9)
        to = put_int(to, number[0])
        to = put_text(to, b",\"price\":", 9)
        to = put_decimal(to, number[1], 2)
        to = put_text(to, b",\"age\":", 7)
        to = put_int(to, number[2])
        to = put_text(to, b",\"position\":", 12)
        to = put_int(to, number[3])
        to = put_text(to, b",\"history\":", 11)
        to = put_decimal(to, number[4], 4)
        if number[5]:
            to = put_text(to, b",\"returning\":true", 17)
        else:
            to = put_text(to, b",\"returning\":false", 18)
        if self.sort == 0:
            if yes[0]:
                to = put_text(to, b",\"clicked\":true", 15)
            else:
                to = put_text(to, b",\"clicked\":false", 16)
        elif self.sort == 2:
            noise = share(mix(bits)) + share(mix(bits + 1)) + share(mix(bits + 2)) - 1.5
            to = put_text(to, b",\"spent\":", 9)
            to = put_decimal(to, <int64_t>(100.0 * (20.0 + 3.0 * score + noise)), 2)
        to = put_text(to, b"}", 1)
        return to - text

    cdef Py_ssize_t write_mail(self, int64_t n, char* text) except -1:
        """Write a mail: words of spam are mostly replaced in ham, and vice versa."""
        cdef int age = n >= self.drift, i, count
        cdef uint64_t bits = draw(self.seed, n, 0), word
        cdef bint spam = share(bits) < 0.3
        cdef double sign
        cdef char* to = put_text(text, b"{\"words\":[", 10)
        count = <int>(6 + (bits & 0xFF) * (WORDS - 6) // 256)
        for i in range(count):
            bits = draw(self.seed, n, i + 1)
            word = rank(bits, VOCABULARY)
            if word < HEAD:
                sign = self.sign[age][word] if spam else -self.sign[age][word]
                if sign < 0.0 and share(mix(bits)) < 0.75:
                    word = HEAD + mix(bits + 1) % ((1 << VOCABULARY) - HEAD)
            to = put_text(to, b",\"w" if i else b"\"w", 3 if i else 2)
            to = put_int(to, word)
            to = put_text(to, b"\"", 1)
        to = put_text(to, b"],\"label\":\"", 11)
        to = put_text(to, b"spam\"}" if spam else b"ham\"}", 6 if spam else 5)
        return to - text


cdef int[FIELDS] WIDTH
cdef double[NUMBERS] CENTER
cdef double BIAS_VALUE = BIAS
for _f in range(FIELDS):
    WIDTH[_f] = NAMED[_f][2]
for _f in range(NUMBERS):
    CENTER[_f] = NUMERIC[_f][2]


def delayed_clicks(Clicks stream, Py_ssize_t n, double scale=60.0, double tail=1.2):
    """Return impressions and their clicks in the order of time: (seconds, topic, value).

    A click comes `scale * (u**(-1/tail) - 1)` seconds after its impression, u uniform: the mean is
    scale/(tail - 1), with a heavy tail. There are a thousand impressions per second.

    >>> log = delayed_clicks(Clicks("impressions", seed=3), 1000)
    >>> [topic for _, topic, _ in log].count("impressions")
    1000
    >>> log[-1]  # doctest: +ELLIPSIS
    (..., 'clicks', b'{"id":"e...","clicked":true,"time":...}')
    """
    cdef Py_ssize_t i
    cdef double u, moment
    if stream.kind != "impressions":
        raise ValueError(f"{stream!r} already has labels: use Clicks('impressions')")
    found = []
    for i in range(n):
        moment = START + i / 1000.0
        found.append((moment, "impressions", stream.value(i)))
        if stream.clicked(i):
            u = 1.0 - share(draw(stream.seed, i, FIELDS + 3))
            # at least a millisecond later: times are rounded, and equal ones sorted by topic
            moment = round(moment + max(scale * (exp(-log(u) / tail) - 1.0), 1e-3), 3)
            click = f'{{"id":"e{i}","clicked":true,"time":{moment}}}'
            found.append((moment, "clicks", click.encode()))
    found.sort()
    return found
