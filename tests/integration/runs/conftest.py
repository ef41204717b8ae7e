"""A whole run in miniature: a small real task, a model that has memorised six scripts, real sandboxes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mlwright_trainer.tasks.splitting import SplitSizes, TaskTables, assign_splits, shuffled_ids, write_tables

TASK = """\
apiVersion: mlwright.dev/v1alpha1
kind: MLTask
metadata: {name: coins}
spec:
  title: Which coins are real
  description: Predict the probability that a coin is real from its weight and width.
  metric: {name: roc_auc}
  submission: {targetColumns: [real], kind: Probabilities}
  limits: {timeoutSeconds: 20, memory: 1Gi, workSize: 64Mi}
  reference: {baseline: 0.5, best: 0.95}
"""
HEAD = "import pandas as pd\ntrain = pd.read_csv('data/train.csv')\ntest = pd.read_csv('data/test.csv')\n"
WRITE = "pd.DataFrame({'id': test['id'], 'real': p}).to_csv('submission.csv', index=False)\n"
SCRIPTS = (
    HEAD + "p = test['weight'].rank(pct=True)\n" + WRITE,
    HEAD + "p = test['width'].rank(pct=True)\n" + WRITE,
    HEAD + "p = (test['weight'] + test['width']).rank(pct=True)\n" + WRITE,
    HEAD + "p = test['colour']\n" + WRITE,
    HEAD + "p = 0.5\n" + WRITE,
    HEAD + "print(train.shape)\n",
)
"""Good, weaker, best, broken, trivial, and one that writes nothing."""
PROMPT = "# Area under the ROC curve\n"
"""What the template below makes of the metric: the model has to have seen it, or it writes nothing that runs."""

RUN: dict[str, Any] = {
    "apiVersion": "mlwright.dev/v1alpha1",
    "kind": "TrainingRun",
    "metadata": {"name": "coins-run"},
    "spec": {
        "seed": 3,
        "tasks": [{"name": "coins"}],
        "model": {
            "source": {
                "scratch": {
                    "vocabularySize": 420,
                    "config": {
                        "model_type": "qwen2",
                        "hidden_size": 64,
                        "intermediate_size": 128,
                        "num_hidden_layers": 2,
                        "num_attention_heads": 4,
                        "num_key_value_heads": 2,
                        "max_position_embeddings": 256,
                        "tie_word_embeddings": True,
                    },
                }
            }
        },
        "fineTuning": {
            "examples": {"path": "examples.jsonl"},
            "batchSize": 16,
            "learningRate": 4e-3,
            "epochs": 3,
        },
        "prompts": {"improveFraction": 0, "templates": {"system": "", "draft": "# {metric}\n"}},
        "sampling": {"maxTokens": 120},
        "collection": {"mode": "Synchronous"},
        "algorithm": {
            "updates": 10,
            "batchSize": 8,
            "minibatchSize": 4,
            "epochs": 2,
            "learningRate": 1e-3,
            "criticLearningRate": 3e-3,
            "detachCritic": True,
            "kl": {"coefficient": 0.02},
        },
        "evaluation": {"samples": 8},
    },
}


@dataclass(frozen=True)
class Miniature:
    """A folder with a task, examples and a run file; `run` starts the command as a person would."""

    root: Path

    @property
    def run_file(self) -> Path:
        return self.root / "run.yaml"

    def write(self, changes: dict[str, Any] | None = None, name: str = "run.yaml") -> Path:
        """A run file with some of spec's blocks changed; a value of None removes a key."""
        spec = merged(RUN["spec"], changes or {})
        path = self.root / name
        path.write_text(json.dumps({**RUN, "spec": spec}))
        return path

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """`mlwright ARGUMENTS`, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "mlwright_trainer.command.main", *map(str, arguments)],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        )

    def run(self, *arguments: str | Path, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def make_coins(folder: Path) -> None:
    """400 coins; real ones are a little heavier and wider."""
    random = np.random.default_rng(5)
    real = random.integers(0, 2, 400)
    features = pd.DataFrame(
        {
            "weight": np.round(random.normal(real * 1.5, 1), 3),
            "width": np.round(random.normal(real * 1.0, 1), 3),
        }
    )
    target = pd.DataFrame({"real": real})
    splits = assign_splits(400, SplitSizes(160, 80, 80, 80), seed=5, stratify=real.tolist())
    tables = TaskTables(features=features, train_targets=target, answers=target, constant={"real": 0.5})
    write_tables(folder, tables, ids=shuffled_ids(400, seed=5), splits=splits)
    (folder / "task.yaml").write_text(TASK)


def make_miniature(root: Path) -> Miniature:
    (root / "coins").mkdir(parents=True)
    make_coins(root / "coins")
    lines = [json.dumps({"prompt": PROMPT, "completion": script}) for script in SCRIPTS]
    (root / "examples.jsonl").write_text("\n".join(lines * 400) + "\n")
    miniature = Miniature(root)
    miniature.write()
    return miniature


@pytest.fixture(scope="session")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> Miniature:
    return make_miniature(tmp_path_factory.mktemp("miniature"))


@pytest.fixture(scope="session")
def undisturbed(miniature: Miniature) -> Path:
    """The folder of a Synchronous run that nobody disturbed."""
    folder = miniature.root / "undisturbed"
    done = miniature.run("run", miniature.run_file, "--dir", folder)
    assert done.returncode == 0, done.stderr
    return folder
