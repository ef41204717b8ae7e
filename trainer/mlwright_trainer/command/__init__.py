"""The `mlwright` command, a module a subcommand."""
