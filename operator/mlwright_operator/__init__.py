"""The controller: observe -> plan -> apply. Makes hardened Jobs of MLTasks and Rollouts, and outcomes of their ends."""
