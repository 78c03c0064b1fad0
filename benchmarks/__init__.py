"""Streamlearn beside its peers: `python -m benchmarks.speed`, `python -m benchmarks.default`."""
