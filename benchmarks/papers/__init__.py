"""The papers' experiments, reproduced: one module each, with `run(data, *, quick) -> Finding`."""
