"""Collection and learning, and the `mlwright` command."""
