"""Everything of the operator that touches the world: API server, clock, signals, probes, logs."""
