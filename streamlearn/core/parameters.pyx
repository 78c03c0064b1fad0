"""What losses, penalties, rules and schedules have in common: they are their parameters."""


cdef class Parameterized:
    """A value given by the parameters of its constructor, listed in `_names`.

    From that one list follow repr, equality, hash, copy and pickle. `_examples` are arguments that
    show the range of the parameters, for tests that run over every member of a family.
    """

    _names = ()
    _examples = ((),)

    @classmethod
    def examples(cls):
        """Instances that show the range of the parameters."""
        return [cls(*arguments) for arguments in cls._examples]

    @property
    def params(self):
        """The constructor's arguments, by name."""
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


def describe(spec):
    """A spec as plain data: its class's name and its parameters, nested specs included.

    >>> from streamlearn.penalties import ElasticNet
    >>> describe(ElasticNet(0.1, 0.2))
    {'name': 'ElasticNet', 'params': {'l1': 0.1, 'l2': 0.2}}
    """
    if isinstance(spec, Parameterized):
        params = {name: describe(value) for name, value in spec.params.items()}
        return {"name": type(spec).__name__, "params": params}
    if isinstance(spec, (list, tuple)):
        return [describe(item) for item in spec]
    return spec


def number(owner, name, value, *, low=None, above=None, below=None, high=None):
    """`value` as a float, or a ValueError that says what was given and what is allowed."""
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
    # a NaN fails every comparison, and an infinity is never a sensible parameter here
    if x - x != 0.0 or not all(holds for holds, _ in wanted):
        needs = " and ".join(text for _, text in wanted) or "finite"
        raise ValueError(f"{owner}: {name} must be {needs}, got {value!r}")
    return x
