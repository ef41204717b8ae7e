"""The controller: observe -> plan -> apply. Turns MLTasks and Rollouts into hardened Jobs and their ends into outcomes."""
