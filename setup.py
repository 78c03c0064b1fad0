"""Compile every .pyx file of the package; new modules are found automatically."""

import os
import re
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

FLAGS = ["-O2", "-g0", "-fno-math-errno"] if os.name == "posix" else ["/O2"]
COLD = {"parameters", "schedules"}  # not on the path of an event: compiled faster
COLD_FLAGS = ["-O1", "-g0"] if os.name == "posix" else ["/O1"]
POSIX = {"heartbeat"}  # the daemon's watchdog, which the library does not use
WORKERS = os.cpu_count() or 1

SOURCE = "https://github.com/streamlearn/streamlearn"
# the README with links that also work where it is not next to the files
readme = Path("README.md").read_text(encoding="utf-8")
readme = re.sub(r"\]\((?!http)(.*?\.png)\)", rf"]({SOURCE}/raw/main/\1)", readme)
readme = re.sub(r"\]\((?!http)", f"]({SOURCE}/blob/main/", readme)

modules = [
    Extension(
        ".".join(path.with_suffix("").parts),
        [str(path)],
        extra_compile_args=COLD_FLAGS if path.stem in COLD else FLAGS,
        # without it, exp() and pow() would be the slower versions of the oldest C library
        libraries=["m"] if os.name == "posix" else [],
    )
    for path in sorted(Path("streamlearn").rglob("*.pyx"))
    if os.name == "posix" or path.stem not in POSIX
]
setup(
    long_description=readme,
    long_description_content_type="text/markdown",
    ext_modules=cythonize(
        modules,
        nthreads=WORKERS,
        compiler_directives={
            "language_level": "3",
            "cdivision": True,
            "auto_pickle": False,  # classes that can be pickled define it
            # plain C functions take a third less code than Cython's own function type, and
            # `inspect` reads their signatures from the docstrings
            "binding": False,
            "embedsignature": True,
            "embedsignature.format": "clinic",
        },
    ),
    options={"build_ext": {"parallel": WORKERS}},
)
