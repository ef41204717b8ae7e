"""`mlwright task run --cluster`, as a user has it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.manifests import dump_manifest
from mlwright_api.mltask import MLTask, MLTaskSpec
from mlwright_trainer.command.main import main

Server = Any


@dataclass(frozen=True)
class Ran:
    """What a call of the command came to."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Ran]
MAIN = [sys.executable, "-m", "mlwright_trainer.command.main", "task", "run"]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text("print('hello')\n")
    return path


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ran]]:
    """Calls `mlwright` in this process, from its arguments to its exit code."""

    def call(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["mlwright", *arguments])
        with pytest.raises(SystemExit) as exit:
            main()
        said = capsys.readouterr()
        return Ran(int(exit.value.code or 0), said.out, said.err)

    before = signal.getsignal(signal.SIGTERM)
    yield call
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def task_run(kubeconfig: Path, script: Path, call: Callable[..., Ran]) -> Command:
    """Calls `mlwright task run --cluster`."""

    def run(*arguments: str, task: str = "churn") -> Ran:
        return call("task", "run", task, str(script), "--cluster", *arguments)

    return run


def test_it_says_how_the_script_ended_and_leaves_nothing(api_server: Server, task_run: Command) -> None:
    ran = task_run()
    assert ran.returncode == 0, ran.stderr
    assert "outcome     Scored\n" in ran.stdout
    assert "Reward      0.8 (baseline 0.5, best 0.9)" in ran.stdout
    assert "in namespace lab" in ran.stderr
    assert api_server.objects == {}


def test_json_is_one_document_and_nothing_else(api_server: Server, task_run: Command) -> None:
    ran = task_run("--json", "--keep")
    document = json.loads(ran.stdout)
    assert (document["task"], document["namespace"], document["outcome"]) == ("churn", "lab", "Scored")
    assert list(api_server.objects) == [document["rollout"]]
    assert ran.stderr == ""


def test_what_it_waits_for_is_shown(api_server: Server, task_run: Command) -> None:
    waiting = {
        "type": "Started",
        "status": "False",
        "reason": "ImagePullFailed",
        "message": "no such image: x",
    }
    api_server.statuses.insert(0, {"attempt": 1, "conditions": [waiting]})
    assert "ImagePullFailed: no such image: x" in task_run().stderr


def test_a_kept_rollout_says_how_to_look_at_it(api_server: Server, task_run: Command) -> None:
    (_, _, line) = task_run("--keep").stderr.partition("kept: kubectl get rollout ")
    (name,) = api_server.objects
    assert line.strip() == f"{name} -n lab -o yaml"


def test_a_sandbox_that_failed_is_exit_code_1(api_server: Server, task_run: Command) -> None:
    api_server.statuses = [{"outcome": "InfrastructureFailed", "attempt": 4, "reason": "NodeLost"}]
    ran = task_run()
    assert (ran.returncode, ran.stderr.strip().splitlines()[-1]) == (
        1,
        "mlwright: the sandbox failed: NodeLost",
    )


@pytest.mark.parametrize(
    ("arguments", "task", "said"),
    [
        ([], "nothing", "there is no MLTask 'nothing'; see what there is: kubectl get mltasks -n lab"),
        (["--namespace", "other"], "churn", "there is no such namespace; choose one with --namespace"),
        (["--context", "none"], "churn", "--context none: cannot be used from"),
        (["--submission", "x.csv"], "churn", "--submission is for this machine, and not with --cluster"),
        (["--backend", "lock"], "churn", "--backend is for this machine, and not with --cluster"),
        (["--split", "Final"], "churn", "scripts are never run against Final"),
    ],
)
def test_the_users_mistakes_are_exit_code_2_and_one_line(
    api_server: Server, task_run: Command, arguments: list[str], task: str, said: str
) -> None:
    ran = task_run(*arguments, task=task)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert api_server.objects == {}


def test_a_cluster_that_is_away_is_exit_code_1(task_run: Command) -> None:
    ran = task_run("--context", "away")
    assert ran.returncode == 1
    assert "no answer when asked to read MLTask churn" in ran.stderr
    assert "context away" in ran.stderr


def test_a_cluster_without_mlwright_is_what_is_said(api_server: Server, task_run: Command) -> None:
    api_server.installed = False
    ran = task_run()
    assert ran.returncode == 2
    assert "mlwright is not installed there: apply its crds/" in ran.stderr


def test_a_task_that_is_not_ready_says_why(api_server: Server, task_run: Command) -> None:
    not_bound = {
        "type": "Ready",
        "status": "False",
        "reason": "ClaimNotBound",
        "message": "claim d is Pending",
    }
    api_server.tasks["churn"]["status"] = {"conditions": [not_bound]}
    ran = task_run()
    assert ran.returncode == 2
    assert "MLTask churn is not ready: ClaimNotBound: claim d is Pending" in ran.stderr


def test_no_kubeconfig_at_all_says_what_to_do(
    task_run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    ran = task_run()
    assert ran.returncode == 2
    assert "there is no kubeconfig at" in ran.stderr


def test_a_folder_stands_for_the_task_of_its_name(
    api_server: Server, task_run: Command, tmp_path: Path, spec: MLTaskSpec
) -> None:
    folder = tmp_path / "my-churn"
    folder.mkdir()
    task = {"apiVersion": "mlwright.dev/v1alpha1", "kind": "MLTask", "metadata": {"name": "churn"}}
    manifest = MLTask.model_validate({**task, "spec": spec})
    (folder / "task.yaml").write_text(dump_manifest(manifest))
    assert task_run(task=str(folder)).returncode == 0
    changed = MLTask.model_validate({**task, "spec": spec.model_copy(update={"title": "Another"})})
    (folder / "task.yaml").write_text(dump_manifest(changed))
    ran = task_run(task=str(folder))
    assert ran.returncode == 2
    assert (
        f"{folder} and MLTask churn in namespace lab are not the same task: spec.title differ" in ran.stderr
    )


def test_options_of_the_cluster_need_a_cluster(
    script: Path, tmp_path: Path, call: Callable[..., Ran]
) -> None:
    ran = call("task", "run", str(tmp_path), str(script), "--keep")
    assert (ran.returncode, ran.stderr.strip()) == (2, "mlwright: --keep is only with --cluster")


@pytest.mark.parametrize("keep", [False, True])
def test_ctrl_c_deletes_the_rollout_unless_it_is_to_be_kept(
    api_server: Server, kubeconfig: Path, script: Path, keep: bool
) -> None:
    api_server.statuses = []
    command = [*MAIN, "churn", str(script), "--cluster", *(["--keep"] if keep else [])]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        api_server.wait_for(lambda: len(api_server.objects) == 1 and api_server.watchers == 1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert len(api_server.objects) == (1 if keep else 0)
    assert ("the Rollout was kept" if keep else "the Rollout was deleted") in said
    assert "Traceback" not in said
