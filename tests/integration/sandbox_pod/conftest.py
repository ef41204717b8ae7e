"""A small task, and pods on this machine that run scripts against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from local_pod import LocalPod, small_task
from mlwright_sandbox.backend import TaskMounts


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> TaskMounts:
    return small_task(tmp_path_factory.mktemp("task"))


@pytest.fixture
def make_pod(task: TaskMounts, tmp_path: Path) -> Iterator[Callable[..., LocalPod]]:
    """Makes pods, and ends them."""
    pods: list[LocalPod] = []

    def make(**options: Any) -> LocalPod:
        folder = tmp_path / f"pod-{len(pods)}"
        folder.mkdir()
        pods.append(LocalPod(folder, task, **options))
        return pods[-1]

    yield make
    for pod in pods:
        pod.close()


@pytest.fixture
def pod(make_pod: Callable[..., LocalPod]) -> LocalPod:
    return make_pod()
