"""The daemon as a process: log, exit codes, watchdog."""
