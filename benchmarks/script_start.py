"""How fast a script starts: through the fork server, locked down, against a fresh interpreter with the same imports.

    python benchmarks/script_start.py [--scripts 40] [--fresh 5]

Both ways run in turn, so that whatever else the machine does hits both; the ratio is what counts. Prints one JSON
document. "sandboxed" is the whole way of a script that does nothing: request, fork, namespaces, lock, run, everything
killed, work folder opened, result read. "starting" is the part of it before the script's first line.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mlwright_api.mltask import MetricSpec, MLTaskSpec, SubmissionKind, SubmissionSpec, TaskReference
from mlwright_sandbox.backend import SandboxRequest, TaskMounts
from mlwright_sandbox.local import LocalBackend, open_backend

FRESH = "import pandas, sklearn.ensemble, sklearn.linear_model, sklearn.pipeline, sklearn.model_selection"
GOAL = {"p50_ms_at_most": 60, "ratio_at_least": 15}


def make_task(root: Path) -> TaskMounts:
    """A task without data: nothing but the start is measured."""
    for name in ("public", "private"):
        (root / name).mkdir()
    spec = MLTaskSpec(
        title="Start",
        description="None",
        metric=MetricSpec(name="accuracy"),
        submission=SubmissionSpec(target_columns=["target"], kind=SubmissionKind.LABELS),
        reference=TaskReference(baseline=0),
    )
    return TaskMounts("start", spec, root / "public", root / "private")


def sandboxed(backend: LocalBackend, task: TaskMounts) -> tuple[float, float]:
    """(seconds in all, seconds before the script's first line) of one script that does nothing."""
    # It ends with an error code, so that there is nothing to grade.
    request = SandboxRequest(rollout="start", task=task, script="raise SystemExit(1)", seed=0)
    begun = time.perf_counter()
    backend.submit(request)
    (finished,) = backend.collect()
    assert finished.status.exit_code == 1, finished.status.reason
    return time.perf_counter() - begun, finished.status.seconds.starting


def fresh() -> float:
    """Seconds of a new interpreter that imports what scripts import, and ends."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", FRESH], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return time.perf_counter() - begun


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds."""
    return {
        "n": len(seconds),
        "p50_ms": round(1000 * statistics.median(seconds), 2),
        "min_ms": round(1000 * min(seconds), 2),
        "max_ms": round(1000 * max(seconds), 2),
    }


def measure(kind: str, scripts: int, interpreters: int) -> dict[str, object]:
    """Run both ways in turn; the first of each is thrown away."""
    whole, starting, plain = [], [], []
    with tempfile.TemporaryDirectory() as root, open_backend(kind, slots=1) as backend:  # type: ignore[arg-type]  # argparse checks it
        task = make_task(Path(root))
        sandboxed(backend, task)
        fresh()
        for _ in range(interpreters):
            plain.append(fresh())
            for _ in range(max(scripts // interpreters, 1)):
                total, start = sandboxed(backend, task)
                whole.append(total)
                starting.append(start)
        isolation = backend.kind
    ratio = statistics.median(plain) / statistics.median(whole)
    return {
        "isolation": isolation,
        "sandboxed": summary(whole),
        "starting": summary(starting),
        "fresh_interpreter": summary(plain),
        "ratio": round(ratio, 1),
        "goal": GOAL,
        "met": statistics.median(whole) <= 0.06 and ratio >= GOAL["ratio_at_least"],
        "load_average": os.getloadavg()[0],
        "cores": len(os.sched_getaffinity(0)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", default="namespaces", choices=["namespaces", "lock"])
    parser.add_argument("--scripts", type=int, default=40)
    parser.add_argument("--fresh", type=int, default=5)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.kind, arguments.scripts, arguments.fresh), indent=2))


if __name__ == "__main__":
    main()
