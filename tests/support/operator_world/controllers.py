"""What surrounds an operator: garbage collection, the Job controller, the kubelet; one move at a time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mlwright_operator import labels
from mlwright_operator.actions import Kind

from operator_world.api import ApiServer, Raw, copied, stamp
from operator_world.objects import grader_message, runner_message


@dataclass(frozen=True)
class Fate:
    """What becomes of one pod."""

    phase: str = "Succeeded"
    agent: str | None = None
    """Its termination message; None: it died without."""
    grader: str | None = None
    agent_exit: int = 0
    agent_reason: str = "Completed"
    pod_reason: str = ""
    disrupted: bool = False
    stuck: Raw | None = None
    """It never starts: what its containers' `waiting` says."""
    unschedulable: str = ""
    changes: Raw = field(default_factory=dict)
    """What somebody has done to its spec on the way in."""
    seconds: int = 2


SCORED = Fate(agent=runner_message(), grader=grader_message())
CHECKED = Fate(grader=grader_message("Trivial"))
DRAINED = Fate("Failed", agent_exit=143, agent_reason="Error", disrupted=True)
FAILING = Fate(agent=runner_message(exitCode=1, error="ValueError: no"), grader=grader_message("Missing"))
DEADLINE = Fate("Failed", agent_exit=137, agent_reason="Error", pod_reason="DeadlineExceeded")


@dataclass
class Controllers:
    """Everything but the operator; `move` does what is due and says whether that was anything."""

    api: ApiServer
    fates: dict[str, list[Fate]] = field(default_factory=lambda: defaultdict(list))
    """By name of the Rollout or MLTask, an attempt each; beyond them, everything goes well."""
    started: dict[str, datetime] = field(default_factory=dict)
    """By uid of the pod."""
    had_pod: set[str] = field(default_factory=set)
    """Uids of Jobs."""
    begun: list[tuple[str, int]] = field(default_factory=list)
    """Every pod that was made: uid of the owner, attempt."""

    def move(self) -> bool:
        before = self.api.version
        self._collect_garbage()
        self._finish_namespaces()
        for job in self.api.live(Kind.JOB):
            self._job(job)
        for pod in self.api.live(Kind.POD):
            self._pod(pod)
        return self.api.version != before

    # The garbage collector and the namespace controller.

    def _collect_garbage(self) -> None:
        there = self.api.uids()
        for kind in (Kind.JOB, Kind.POD):
            for raw in self.api.live(kind):
                owners = raw["metadata"].get("ownerReferences", ())
                if owners and not any(each["uid"] in there for each in owners):
                    self._drop(raw)

    def _drop(self, raw: Raw) -> None:
        if raw["kind"] == "Pod":
            self.api.terminate(raw)
        else:
            self.api.remove(raw)

    def _finish_namespaces(self) -> None:
        for namespace in self.api.live(Kind.NAMESPACE):
            if not namespace["metadata"].get("deletionTimestamp"):
                continue
            name = namespace["metadata"]["name"]
            within = [raw for (_, ns, _), raw in self.api.objects.items() if ns == name]
            for raw in within:
                self._drop(raw)
            if not within:
                self.api.remove(namespace)

    # The Job controller.

    def _job(self, job: Raw) -> None:
        uid = job["metadata"]["uid"]
        pods = list(self.api.owned(uid, Kind.POD))
        ended = [pod for pod in pods if pod["status"].get("phase") in ("Succeeded", "Failed")]
        if job.get("status", {}).get("conditions"):
            return
        if ended:
            self._finish(job, "Complete" if ended[0]["status"]["phase"] == "Succeeded" else "Failed")
        elif not pods and uid in self.had_pod:
            self._finish(job, "Failed")
        elif not pods:
            self.had_pod.add(uid)
            self._make_pod(job)

    def _finish(self, job: Raw, type: str) -> None:
        condition = {"type": type, "status": "True", "lastTransitionTime": stamp(self.api.now)}
        job["status"] = {
            "conditions": [condition | {"reason": "BackoffLimitExceeded", "message": "it is over"}]
        }
        self.api.update(job)

    def _make_pod(self, job: Raw) -> None:
        template = copied(job["spec"]["template"])
        metadata, name = template["metadata"], job["metadata"]["name"]
        owner, attempt = self._owner(job), int(metadata["labels"][labels.ATTEMPT])
        spec = template["spec"] | self._fate(owner, attempt).changes
        for key in [key for key, value in spec.items() if value is None]:
            del spec[key]
        self.begun.append((owner["metadata"]["uid"] if owner else "", attempt))
        self.api.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-pod",
                    "namespace": job["metadata"]["namespace"],
                    "labels": metadata["labels"] | {"batch.kubernetes.io/job-name": name},
                    "annotations": metadata.get("annotations", {}),
                    "ownerReferences": [
                        {"kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": True}
                    ],
                },
                "spec": spec | {"schedulerName": "default-scheduler", "serviceAccount": "default"},
                "status": {"phase": "Pending"},
            }
        )

    def _owner(self, child: Raw) -> Raw | None:
        uid = child["metadata"]["labels"].get(labels.ROLLOUT_UID) or child["metadata"]["labels"].get(
            labels.TASK_UID
        )
        return next((raw for raw in self.api.objects.values() if raw["metadata"]["uid"] == uid), None)

    def _fate(self, owner: Raw | None, attempt: int) -> Fate:
        kind, name = (owner["kind"], owner["metadata"]["name"]) if owner else ("Rollout", "")
        planned = self.fates[name]
        usual = CHECKED if kind == "MLTask" else SCORED
        return planned[attempt - 1] if attempt <= len(planned) else usual

    # The kubelet and the scheduler.

    def _pod(self, pod: Raw) -> None:
        uid, status = pod["metadata"]["uid"], pod["status"]
        fate = self._fate(self._owner(pod), int(pod["metadata"]["labels"][labels.ATTEMPT]))
        ending = bool(pod["metadata"].get("deletionTimestamp"))
        if status["phase"] in ("Succeeded", "Failed"):
            self._forget(pod, ending)
        elif ending:
            self._end(pod, Fate("Failed", agent_exit=143, agent_reason="Error"))
        elif status["phase"] == "Pending":
            self._start(pod, fate)
        elif self.api.now >= self.started[uid] + timedelta(seconds=fate.seconds):
            self._end(pod, fate)

    def _forget(self, pod: Raw, ending: bool) -> None:
        """A pod that is being deleted is kept until its Job has counted it."""
        jobs = {job["metadata"]["uid"]: job for job in self.api.live(Kind.JOB)}
        job = jobs.get(pod["metadata"]["ownerReferences"][0]["uid"])
        if ending and (job is None or job.get("status", {}).get("conditions")):
            self.api.remove(pod)

    def _start(self, pod: Raw, fate: Fate) -> None:
        if fate.unschedulable:
            said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            self._become(pod, {"phase": "Pending", "conditions": [said | {"message": fate.unschedulable}]})
        elif fate.stuck is not None:
            waiting = [{"name": name, "state": {"waiting": fate.stuck}} for name in _containers(pod)]
            self._become(pod, {"phase": "Pending", "containerStatuses": waiting})
        else:
            self.started[pod["metadata"]["uid"]] = self.api.now
            running = {"running": {"startedAt": stamp(self.api.now)}}
            states = [{"name": name, "state": running} for name in _containers(pod)]
            self._become(pod, {"phase": "Running", "containerStatuses": states})

    def _end(self, pod: Raw, fate: Fate) -> None:
        started = self.started.get(pod["metadata"]["uid"], self.api.now)
        times = {"startedAt": stamp(started), "finishedAt": stamp(self.api.now)}
        ends: dict[str, Raw] = {
            "agent": {"exitCode": fate.agent_exit, "reason": fate.agent_reason, "message": fate.agent},
            "grader": {"exitCode": 0, "reason": "Completed", "message": fate.grader},
        }
        states = [{"name": name, "state": {"terminated": ends[name] | times}} for name in _containers(pod)]
        status: Raw = {"phase": fate.phase, "containerStatuses": states}
        if fate.pod_reason:
            status["reason"] = fate.pod_reason
        if fate.disrupted:
            status["conditions"] = [
                {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
            ]
        self._become(pod, status)

    def _become(self, pod: Raw, status: dict[str, Any]) -> None:
        if pod["status"] != status:
            pod["status"] = status
            self.api.update(pod)


def _containers(pod: Raw) -> list[str]:
    return [each["name"] for each in pod["spec"]["containers"] if each["name"] in ("agent", "grader")]
