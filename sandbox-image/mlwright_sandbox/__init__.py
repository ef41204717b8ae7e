"""What runs inside and around a sandbox: runner, lock, milestones, grader, metrics, local backends."""
