"""A cluster in memory for the operator's tests: an API server, the controllers around it, and what users do to it."""
