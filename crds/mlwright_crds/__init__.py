"""Writes crds/*.yaml from the models of mlwright_api: a development tool, shipped with nothing."""
