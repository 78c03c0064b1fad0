"""The papers' experiments, reproduced: a module each, with `run(data, *, quick) -> Finding`."""
