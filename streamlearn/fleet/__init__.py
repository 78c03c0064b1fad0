"""Several processes or machines for one model, on Ray (the extra `ray`)."""
