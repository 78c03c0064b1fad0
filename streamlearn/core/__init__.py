"""Foundations of every layer: parameters, feature rows, and the loops over them."""
