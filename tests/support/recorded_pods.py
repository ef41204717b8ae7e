"""Pod statuses recorded on real nodes, each with what it has to be classified as: read, and written anew."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlwright_api.classify import Classification, classify
from mlwright_api.mltask import TaskLimits
from mlwright_api.podstatus import AGENT, GRADER, PodStatus
from mlwright_api.results import read_grader_result, read_runner_result

Json = dict[str, Any]
FOLDER = Path(__file__).parents[1] / "unit/api/recorded"
_CONDITION = ("type", "status", "reason", "message")
_HEXADECIMAL = re.compile(r"\b[0-9a-f]{64}\b")
_ADDRESS = re.compile(r"(\b\d{1,3}(\.\d{1,3}){3}\b|\[[0-9a-f:]+\])(:\d+)?")


@dataclass(frozen=True)
class Recorded:
    """One file of the folder."""

    name: str
    source: str
    """`recorded`, or `derived` from another one; `note` says how."""
    note: str
    node: str
    """Versions that it comes from."""
    limits: TaskLimits
    outcome: str
    reason: str
    status: Json

    @property
    def verdict(self) -> Classification:
        """What it is classified as now."""
        return verdict_of(self.status, self.limits)


def verdict_of(status: Json, limits: TaskLimits) -> Classification:
    """As the operator classifies a pod."""
    pod = PodStatus.model_validate(status)
    return classify(
        pod, read_runner_result(_said(pod, AGENT)), read_grader_result(_said(pod, GRADER)), limits
    )


def _said(pod: PodStatus, container: str) -> str:
    ended = pod.state(container).terminated
    return (ended.message or "") if ended is not None else ""


def recorded() -> list[Recorded]:
    """All of them, by name."""
    return [_read(path) for path in sorted(FOLDER.glob("*.json"))]


def _read(path: Path) -> Recorded:
    raw = json.loads(path.read_text())
    return Recorded(**{**raw, "limits": TaskLimits.model_validate(raw["limits"])})


def write(made: Recorded) -> None:
    """Into the folder, under its name."""
    FOLDER.mkdir(exist_ok=True)
    raw = {**vars(made), "limits": made.limits.model_dump(mode="json", by_alias=True)}
    path = FOLDER / f"{made.name.replace(' ', '-').replace(chr(39), '')}.json"
    path.write_text(json.dumps(raw, indent=1, ensure_ascii=False) + "\n")


def without_noise(status: Json, *, node: str) -> Json:
    """A status without addresses, numbers of containers and the node's name; all that says how a pod ended is left."""
    kept = {key: status[key] for key in ("phase", "reason", "message") if key in status}
    conditions = [
        {key: each[key] for key in _CONDITION if key in each} for each in status.get("conditions", [])
    ]
    containers = [
        {"name": each["name"], "ready": each["ready"], "state": _state(each["state"])}
        for each in status.get("containerStatuses", [])
    ]
    text = json.dumps({**kept, "conditions": conditions, "containerStatuses": containers})
    text = _HEXADECIMAL.sub("0" * 64, text.replace(node, "node-1"))
    cleaned: Json = json.loads(_ADDRESS.sub("192.0.2.1", text))
    return cleaned


def _state(state: Json) -> Json:
    return {
        name: {key: value for key, value in details.items() if key != "containerID"}
        for name, details in state.items()
    }
