"""The base class of losses, penalties, rules and schedules, and the check of their parameters."""


cdef class Parameterized:
    """A value defined by its constructor's parameters, which `_names` lists.

    repr, equality, hash, copy and pickle are derived from `_names`. `_examples` are constructor
    arguments that cover the range of the parameters, for tests that run over every subclass.
    """

    _names = ()
    _examples = ((),)

    @classmethod
    def examples(cls):
        """Return instances that cover the range of the parameters."""
        return [cls(*arguments) for arguments in cls._examples]

    @classmethod
    def parameter_names(cls):
        """Return the names of the constructor's parameters, in order."""
        return cls._names

    @property
    def params(self):
        """The constructor's arguments by name."""
        return {name: getattr(self, name) for name in self._names}

    def __repr__(self):
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        return self.params == other.params

    def __hash__(self):
        return hash((type(self).__name__, repr(self)))

    def __reduce__(self):
        return _rebuild, (type(self), self.params)


def _rebuild(kind, params):
    return kind(**params)


def number(owner, name, value, *, low=None, above=None, below=None, high=None):
    """Return `value` as a float; ValueError if it is not a finite number within the bounds."""
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{owner}: {name} must be a number, got {value!r}") from None
    wanted = []
    if low is not None:
        wanted.append((x >= low, f"at least {low:g}"))
    if above is not None:
        wanted.append((x > above, f"greater than {above:g}"))
    if high is not None:
        wanted.append((x <= high, f"at most {high:g}"))
    if below is not None:
        wanted.append((x < below, f"less than {below:g}"))
    # NaN fails every comparison, and infinity is never a valid parameter
    if x - x != 0.0 or not all(holds for holds, _ in wanted):
        needs = " and ".join(text for _, text in wanted) or "finite"
        raise ValueError(f"{owner}: {name} must be {needs}, got {value!r}")
    return x
