"""Build the parts of a daemon from a configuration; `daemon.build` connects them.

sources   where records come from
decoders  how they become events
outputs   where predictions and dead letters go
settings  the settings that models depend on
"""
