"""CSV: a row a record, a column a field; the first row names the columns, unless that is said.

A column is of numbers or of text. Which, is guessed from the first lines: text, if a value is no
number. Empty values and what stands for missing ones (`NA`, `null`, ...) are left out.

The header of a file that follows may name the columns in another order.
"""

import csv
import math
from collections import Counter

from streamlearn.errors import BadEvent, TableMismatch

from streamlearn.engine.events cimport Events
from streamlearn.stream.decoder cimport Decoder

from streamlearn.features.pieces import shown
from streamlearn.stream.lines import checked

SAMPLE = 1000  # rows, the header among them, from which types are guessed
DELIMITERS = ";\t|,"
BREAK = "a line break outside quotes: a record is one row"
MISSING = frozenset(["", "na", "n/a", "nan", "null", "none", "?"])


cdef class CSVDecoder(Decoder):
    """Lines of values with a delimiter between them, quoted as spreadsheets do.

    `columns` names the columns of data without a header; `text` all those that are text, so that
    nothing is guessed. The header of the next file is no event. Values keep their type: a bool or
    number as the label is one (`true`, `1`), other labels are text.

    >>> from streamlearn import Names
    >>> from streamlearn.stream import Events, Fields
    >>> decoder, events = CSVDecoder(Names(), Fields(label="clicked")), Events()
    >>> decoder.decode([b"ad,price,clicked", b"shoes,2.5,1", b'"a, b",,0'], events)
    >>> decoder.types
    {'ad': 'text', 'price': 'numbers', 'clicked': 'numbers'}
    >>> decoder.reader.names(), events.labels
    (['ad=shoes', 'price', 'ad=a, b'], array([1., 0.]))
    """

    cdef readonly tuple columns
    cdef readonly dict types
    cdef str delimiter
    cdef bytes header
    cdef object text

    def __init__(self, reader, fields=None, learners=(), grow_always=False, *, delimiter=",",
                 columns=(), text=None):
        Decoder.__init__(self, reader, fields, learners, grow_always)
        self.delimiter = checked(delimiter)
        self.text = None if text is None else frozenset(text)
        self.columns = ()
        self.types = {}
        if columns:
            self.begin_table(columns, None)

    def begin_table(self, names, header):
        """These are the columns."""
        names = tuple(names)
        if len(set(names)) < len(names):
            twice, _ = Counter(names).most_common(1)[0]
            raise TableMismatch(
                f"two columns are called {twice!r}: rename one of them in the file's first line, or"
                " take that line out and give names of your own, `columns`")
        missing = [name for name in self.asked_for() if name not in names]
        if missing:
            said = f"no column {missing[0]!r} in the header {', '.join(names)[:200]!r}"
            other = [sign for sign in DELIMITERS if len(names) == 1 and sign in names[0]]
            if other:
                said += f": are its columns split by {other[0]!r}? then say so, `delimiter`"
            raise TableMismatch(said)
        self.columns = names
        self.header = header
        if self.text is not None:
            self.types = {
                name: "text" if name in self.text else "numbers" for name in names}

    def know(self, types):
        """These columns are of numbers or of text, as those were that a model learnt."""
        if self.text is None:
            self.types.update(types)

    def asked_for(self):
        """The columns that must be there."""
        fields, text = self.fields, self.text or ()
        included = getattr(fields, "include")
        asked = (*fields.roles, *(included or ()))
        if fields.label is not None:
            return (*asked, *fields.exclude, *text)
        # a table of what is to be predicted needs its features alone
        features = [name for name in text if included is None or name in included]
        return (*asked, *[name for name in features if name not in fields.exclude])

    def decode(self, values, Events events, order=None):
        """Append the events of these records, in this order; null is a tombstone."""
        if not self.columns or not self.types.keys() >= set(self.columns):
            self.guess(values if order is None else [values[k] for k in order])
        Decoder.decode(self, values, events, order)

    def guess(self, records):
        """Find the header, and the types of columns not known yet, from the first records."""
        order = self.columns
        rows = []
        for record in records[:SAMPLE]:
            try:
                row = cells(record, self.delimiter) if record else None
            except BadEvent:
                continue
            if row is None or not any(row):
                continue
            if not self.columns:
                self.begin_table([name.strip() for name in row], line_of(record))
                order = self.columns
            elif self.is_header(row):
                order = [name.strip() for name in row]
                self.header = self.header or line_of(record)
            elif len(row) == len(order):
                rows.append(dict(zip(order, row, strict=True)))
        if not rows:
            return
        for name in self.columns:
            if name in self.types:
                continue
            said = [row[name] for row in rows if row[name].strip().lower() not in MISSING]
            text = not said or any([number(value) is None for value in said])
            self.types[name] = "text" if text else "numbers"

    cdef int record(self, bytes value, Events events) except -1:
        cdef bytes line = line_of(value)
        if not line.strip() or line == self.header:
            events.blank += 1
            return 0
        if not self.columns:
            raise BadEvent("no header: the first line names the columns")
        row = cells(line, self.delimiter)
        if self.is_header(row):
            self.columns = tuple([name.strip() for name in row])
            self.header = line
            events.blank += 1
            return 0
        if len(row) != len(self.columns):
            raise BadEvent(f"{len(row)} values for {len(self.columns)} columns")
        event = {}
        label = self.fields.label
        for name, cell in zip(self.columns, row, strict=True):
            if cell.strip().lower() in MISSING:
                continue
            if self.types.get(name) == "numbers" and name != self.fields.id:
                x = number(cell)
                if x is None:
                    raise BadEvent(
                        f"field {name!r} is {shown(cell)} in a column of numbers: name the column"
                        " among those of text", name)
                event[name] = x
            elif name == label and cell.lower() in ("true", "false"):
                event[name] = cell.lower() == "true"
            elif name == self.fields.weight or name == self.fields.time:
                x = number(cell)
                event[name] = cell if x is None else x
            else:
                event[name] = cell
        return self.take_event(event, events)

    cdef bint is_header(self, list row) except -1:
        """Whether these are the names of the columns, in whatever order.

        Of columns that were named by hand: the same names, in their order.
        """
        if self.header is None:
            return row[0].strip() == self.columns[0] and (
                [name.strip() for name in row] == list(self.columns))
        if row[0].strip() not in self.columns:
            return False
        return sorted([name.strip() for name in row]) == sorted(self.columns)

    def table(self):
        """Header and types, ready for JSON."""
        header = None if self.header is None else self.header.decode("latin-1")
        return {"columns": list(self.columns), "types": self.types, "header": header}

    def state(self):
        """The labels met and the table's columns, ready for JSON."""
        return {**Decoder.state(self), "table": self.table()}

    def restore(self, state):
        """Take over a state that `state` gave."""
        Decoder.restore(self, state)
        table = state["table"]
        self.columns = tuple(table["columns"])
        self.types = dict(table["types"])
        self.header = None if table["header"] is None else table["header"].encode("latin-1")


cdef bytes line_of(bytes record):
    """A record without its end."""
    return record.rstrip(b"\r\n")


def cells(record, delimiter):
    """The values of a line.

    >>> cells(b'1,"a, b",', ",")
    ['1', 'a, b', '']
    """
    try:
        text = line_of(record).decode()
    except UnicodeDecodeError as error:
        raise BadEvent(f"no valid UTF-8: {error}") from None
    if '"' not in text:
        if "\n" in text:
            raise BadEvent(BREAK)
        return text.split(delimiter)
    try:
        [row] = csv.reader([text], delimiter=delimiter, strict=True)
    except (csv.Error, ValueError) as error:
        if "unexpected end" in str(error):
            raise BadEvent(
                "a quoted value does not end: close it, and double the quotes inside") from None
        if "new-line" in str(error):
            raise BadEvent(BREAK) from None
        raise BadEvent(f"no CSV: {error}") from None
    return row


def number(text):
    """The number that a text is, whole ones as int; None: it is none."""
    if "_" in text:  # which Python would read over
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        x = float(text)
    except ValueError:
        return None
    return x if math.isfinite(x) else None
