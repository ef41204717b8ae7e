"""From tasks to graded rollouts: prompts, scripts, execution, and what closes a batch."""
