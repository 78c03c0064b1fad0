"""What looks on while the daemon learns: metrics, regret, an audit."""
