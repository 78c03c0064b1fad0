"""The daemon as a process: its log, exit codes and watchdog."""
