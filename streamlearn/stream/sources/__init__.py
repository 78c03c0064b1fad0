"""Sources of records: files, standard input, synthetic streams."""
