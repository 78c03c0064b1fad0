"""Losses of a whole data set or of structured labels, for the batch problems of [Teo07]."""
