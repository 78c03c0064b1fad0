"""What every layer stands on: parameters, a row of features, and the loops over it."""
