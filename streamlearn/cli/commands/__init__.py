"""The commands, one file each: help, examples and arguments.

A module of the same name in `cli.actions` does the work. It is imported when the command runs.
"""
