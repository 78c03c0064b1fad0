"""Observers of the daemon: metrics, regret, the audit."""
