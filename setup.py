"""Compile every .pyx of the package; a new member of a family needs no entry here."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

FLAGS = ["-O3", "-g0", "-fno-math-errno"] if os.name == "posix" else ["/O2"]
WORKERS = os.cpu_count() or 1

modules = [
    Extension(".".join(path.with_suffix("").parts), [str(path)], extra_compile_args=FLAGS)
    for path in sorted(Path("streamlearn").rglob("*.pyx"))
]
setup(
    ext_modules=cythonize(
        modules,
        nthreads=WORKERS,
        compiler_directives={
            "language_level": "3",
            "cdivision": True,
            "embedsignature": True,
        },
    ),
    options={"build_ext": {"parallel": WORKERS}},
)
