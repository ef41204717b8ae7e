"""`make parity`: makes the anchors' environments, compares, and writes benchmarks/parity/results.jsonl."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE.parent.parent / "benchmarks" / "parity" / "results.jsonl"


def main() -> int:
    """The exit status of the comparison."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.unlink(missing_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "pytest", HERE / "check_parity.py", *sys.argv[1:]],
        env={**os.environ, "MLWRIGHT_PARITY_REPORT": str(RESULTS)},
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
