"""Compile every .pyx of the package; a new member of a family needs no entry here."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

FLAGS = ["-O2", "-g0", "-fno-math-errno"] if os.name == "posix" else ["/O2"]
COLD = {"parameters", "schedules"}  # modules where no event spends time are compiled in less
COLD_FLAGS = ["-O1", "-g0"] if os.name == "posix" else ["/O1"]
POSIX = {"heartbeat"}  # the daemon's watchdog; the library needs nothing of it
WORKERS = os.cpu_count() or 1

modules = [
    Extension(
        ".".join(path.with_suffix("").parts),
        [str(path)],
        extra_compile_args=COLD_FLAGS if path.stem in COLD else FLAGS,
        # named, or exp() and pow() would be those of the oldest C library, and slower
        libraries=["m"] if os.name == "posix" else [],
    )
    for path in sorted(Path("streamlearn").rglob("*.pyx"))
    if os.name == "posix" or path.stem not in POSIX
]
setup(
    ext_modules=cythonize(
        modules,
        nthreads=WORKERS,
        compiler_directives={
            "language_level": "3",
            "cdivision": True,
            "auto_pickle": False,  # what can be pickled says so itself
            # plain C functions need a third less code than Cython's own kind of function,
            # and `inspect` reads their signatures from the docstrings
            "binding": False,
            "embedsignature": True,
            "embedsignature.format": "clinic",
        },
    ),
    options={"build_ext": {"parallel": WORKERS}},
)
