"""Runs scripts one after the other in forks of a warm process; JSON in and out. Not a sandbox: for own scripts.

stdin: {"data": folder, "scripts": [source, ...], "seconds": limit}; stdout: [true where the submission is right, ...].
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import warnings
from pathlib import Path

import pandas as pd
import sklearn.ensemble
import sklearn.linear_model
import sklearn.metrics
import sklearn.model_selection
import sklearn.naive_bayes
import sklearn.neighbors
import sklearn.pipeline  # noqa: F401  # imported here so that no fork has to


def runs(script: str, data: Path, seconds: int) -> bool:
    """Whether the script ends well and leaves a submission with the sample's columns, ids and finite numbers."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "data").symlink_to(data)
        child = os.fork()
        if child == 0:
            execute(script, folder, seconds)
        _, status = os.waitpid(child, 0)
        return status == 0 and is_right(Path(folder) / "submission.csv", data / "sample_submission.csv")


def execute(script: str, folder: str, seconds: int) -> None:
    """In the child: never returns."""
    code = 1
    try:
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        warnings.simplefilter("ignore")
        exec(compile(script, "script.py", "exec"), {"__name__": "__main__"})
        code = 0
    finally:
        os._exit(code)


def is_right(submission: Path, sample: Path) -> bool:
    """Whether the grader would take it."""
    if not submission.exists():
        return False
    got, wanted = pd.read_csv(submission), pd.read_csv(sample)
    key, target = wanted.columns
    return (
        set(got.columns) == {key, target}
        and sorted(got[key]) == sorted(wanted[key])
        and bool(got[target].between(0, 1).all())
    )


if __name__ == "__main__":
    job = json.load(sys.stdin)
    json.dump([runs(script, Path(job["data"]), job["seconds"]) for script in job["scripts"]], sys.stdout)
