"""A run on one machine: its plan, its folder, and the wiring of all parts."""
