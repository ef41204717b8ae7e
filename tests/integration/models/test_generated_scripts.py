"""Generated scripts do what their labels say, on a task that none of them names: right ones submit, broken ones not."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from mlwright_trainer.generators.bugs import BUGS
from mlwright_trainer.generators.families import FAMILIES
from mlwright_trainer.generators.script import Script
from mlwright_trainer.generators.sklearn_tabular import right_script

SECONDS = 3


def _submits(scripts: Sequence[str], data: Path) -> list[bool]:
    job = {"data": str(data), "scripts": list(scripts), "seconds": SECONDS}
    runner = Path(__file__).with_name("run_scripts.py")
    done = subprocess.run(
        [sys.executable, str(runner)],
        input=json.dumps(job),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    results: list[bool] = json.loads(done.stdout)
    return results


def test_right_scripts_of_every_family_submit(binary_task: Path) -> None:
    scripts = [
        right_script(family, random.Random(seed)).text() for family, seed in product(FAMILIES, range(8))
    ]
    wrong = [script for script, fine in zip(scripts, _submits(scripts, binary_task), strict=True) if not fine]
    assert not wrong, wrong[0]


def _broken_forms(rng: random.Random) -> list[tuple[str, Script]]:
    """Every form of every bug, in a script of one family that notices it and of one that may not."""
    families = [next(f for f in FAMILIES if f.name == name) for name in ("tree", "dummy")]
    return [
        (name, form(right_script(family, rng)))
        for name, bug in BUGS.items()
        for form in bug.forms
        for family in families
        if not (bug.in_features and family.takes_anything)
    ]


def test_every_form_of_every_bug_keeps_a_script_from_submitting(binary_task: Path) -> None:
    forms = _broken_forms(random.Random(0))
    submitted = _submits([script.text() for _, script in forms], binary_task)
    harmless = [(name, script.text()) for (name, script), fine in zip(forms, submitted, strict=True) if fine]
    assert not harmless, harmless[0]
