"""From `kubectl apply` to a score on a real node: the same as on this machine, and nothing is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.mltask import Split
from mlwright_api.rollout import Outcome
from node_lab import Lab
from operator_process import ROOT, OperatorProcess, get, until

pytestmark = pytest.mark.node

MAIN = [sys.executable, "-m", "mlwright_trainer.command.main", "task", "run"]
OPTIONS = ("--seed", "7", "--json")
SOLUTION = ROOT / "examples/tasks/churn/solution.py"


def task_run(*arguments: str, lab: Lab | None = None) -> subprocess.CompletedProcess[str]:
    """`mlwright task run`, on this machine or in the lab."""
    environment = dict(os.environ)
    if lab is not None:
        environment["KUBECONFIG"] = str(lab.cluster.kubeconfig)
        arguments = (*arguments, "--cluster", "--namespace", lab.namespace)
    done = subprocess.run(
        [*MAIN, *arguments], capture_output=True, text=True, check=False, env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def here(churn: Path) -> dict[str, Any]:
    """What the solution comes to on this machine."""
    document: dict[str, Any] = json.loads(task_run(str(churn), str(SOLUTION), *OPTIONS).stdout)
    assert document["outcome"] == "Scored", document
    return document


@pytest.mark.parametrize("task", ["churn", "small"], ids=["data in a claim", "data in ConfigMaps"])
def test_a_task_is_ready_once_its_sample_has_been_graded_in_a_pod(lab: Lab, task: str) -> None:
    status = lab.ready(task)
    assert status["sampleScores"] == {"Reward": 0.5, "Selection": 0.5}
    assert lab.condition("mltask", task, "Ready")["reason"] == "Checked"


def test_a_solution_scores_as_on_this_machine_and_its_pod_is_gone(lab: Lab, here: dict[str, Any]) -> None:
    lab.start("solution", "churn", SOLUTION.read_text())
    status = lab.ended("solution")
    assert status.outcome is Outcome.SCORED, status
    assert set(status.scores) == {Split.REWARD, Split.SELECTION}
    assert status.scores[Split.REWARD] == pytest.approx(here["scores"]["Reward"])
    assert list(status.milestones) == here["milestones"]
    assert status.attempt == 1
    assert 0 < status.seconds.cpu <= status.seconds.execution + 1
    assert status.seconds.starting > 0
    until(lambda: lab.left() == [], what="the end of the Job and its pod")


def test_its_receipt_says_what_the_pod_could_not_do(lab: Lab) -> None:
    lab.start("receipt", "small", "print('done')\n")
    status = lab.ended("receipt")
    assert status.outcome is Outcome.NO_SUBMISSION
    assert status.output_tail == "done\n"
    assert status.isolation is not None
    assert (status.isolation.backend, status.isolation.user_namespace, status.isolation.seccomp) == (
        "Pod",
        True,
        True,
    )
    assert status.isolation.isolated, status.isolation
    assert lab.condition("rollout", "receipt", "Isolated")["status"] == "True"


def test_the_command_says_the_same_of_a_script_in_the_cluster(
    lab: Lab, here: dict[str, Any], churn: Path
) -> None:
    ran = json.loads(task_run("churn", str(SOLUTION), *OPTIONS, lab=lab).stdout)
    assert ran["outcome"] == "Scored", ran
    assert ran["scores"] == pytest.approx(here["scores"])
    assert ran["milestones"] == here["milestones"]
    assert ran["namespace"] == lab.namespace
    until(lambda: lab.left() == [], what="the end of the Job and its pod")
    assert ran["rollout"] not in [
        each["metadata"]["name"] for each in get(lab.cluster, "rollouts", lab.namespace)
    ]


def test_the_operator_has_nothing_more_to_do(lab: Lab, operator: OperatorProcess) -> None:
    until(lambda: lab.left() == [], what="the end of every Job and pod")
    writes = operator.writes()
    lists = operator.requests()["list", "200"]
    until(lambda: operator.requests()["list", "200"] > lists, what="another list")
    assert operator.writes() == writes
