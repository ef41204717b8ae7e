"""mlwright's API: kinds, result schemas and the rules between them; imports nothing else of ours."""
