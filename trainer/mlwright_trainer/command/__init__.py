"""The `mlwright` command, a module a subcommand."""

from __future__ import annotations

import os

# Read when torch is first loaded. OpenMP's threads wait for each other by spinning, which beside other work on the
# same cores makes a small model's step 9 times slower (measured: 2.1 s against 0.23 s); asleep they cost little.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
