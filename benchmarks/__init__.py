"""Benchmarks: `python -m benchmarks.speed`, `python -m benchmarks.default`, one module each."""
