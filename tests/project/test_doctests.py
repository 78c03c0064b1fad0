"""Doctests of all modules, including compiled ones."""

import doctest
import importlib
import pkgutil

import pytest

import streamlearn

MODULES = [module.name for module in pkgutil.walk_packages(streamlearn.__path__, "streamlearn.")]


@pytest.mark.parametrize("name", ["streamlearn", *MODULES])
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_doctests_of_compiled_modules_are_found() -> None:
    assert doctest.testmod(importlib.import_module("streamlearn.losses.margin")).attempted >= 10
