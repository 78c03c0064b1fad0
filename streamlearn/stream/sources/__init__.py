"""Where records come from: files, standard input, synthetic streams."""
