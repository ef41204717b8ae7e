"""A real Kubernetes for tests and for trying things out, built from the Go module proxy.

`programs` builds what runs, `plan` says how it is started, `supervisor` runs it and ends with whoever asked for it,
`cluster` is the handle that tests and the command (`python -m mlwright_cluster`) use. Standard library only.
"""
