"""The table of what users can write into a Rollout or an MLTask, hostile values first, and what that may change.

Every field has a row; tests/security runs the rows through our own code, tests/api through a real API server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mlwright_api.base import API_VERSION
from mlwright_api.rollout import FILES_BYTES
from mlwright_operator.actions import Kind
from mlwright_operator.observed import SeenRollout, SeenTask
from mlwright_operator.observing import see
from mlwright_operator.sandbox import sandbox_job, task_check_job
from sandbox_pods import NAMESPACE, PROFILE, ROLLOUT, ROLLOUT_UID, TASK, TASK_UID, changed

Json = dict[str, Any]


def raw(kind: Kind, spec: Json, metadata: Json | None = None) -> Json:
    """An object as an API server holds it."""
    uid = TASK_UID if kind is Kind.TASK else ROLLOUT_UID
    own = {"name": "wine" if kind is Kind.TASK else "first-000017", "namespace": NAMESPACE, "uid": uid}
    return {"apiVersion": API_VERSION, "kind": kind.value, "metadata": own | (metadata or {}), "spec": spec}


GOOD = {Kind.ROLLOUT: raw(Kind.ROLLOUT, ROLLOUT), Kind.TASK: raw(Kind.TASK, TASK)}


def seen(rollout: Json, task: Json) -> tuple[SeenRollout, SeenTask]:
    """Both as the operator sees them."""
    one, other = see(Kind.ROLLOUT, rollout), see(Kind.TASK, task)
    assert isinstance(one, SeenRollout)
    assert isinstance(other, SeenTask)
    return one, other


def jobs(rollout: Json = GOOD[Kind.ROLLOUT], task: Json = GOOD[Kind.TASK]) -> list[Json]:
    """The Job of the rollout and that of the task's check. Errors: NotBuildable where nothing is run."""
    one, other = seen(rollout, task)
    return [
        sandbox_job(rollout=one, task=other, profile=PROFILE, attempt=1),
        task_check_job(task=other, profile=PROFILE, attempt=1),
    ]


TOUCHES = {
    "nothing": "(?!)",
    "request": r"/spec/template/metadata/annotations/mlwright\.dev/(job|files|task)",
    "splits": r"/spec/template/spec/containers/1/command/13",
    "run": r"(/spec/template)?/metadata/labels/mlwright\.dev/run-uid",
    "amounts": r"/spec/template/(metadata/annotations/mlwright\.dev/(job|task)|spec/(activeDeadlineSeconds|"
    r"containers/0/resources/(requests|limits)/(cpu|memory|nvidia\.com/gpu)|"
    r"containers/1/command/19|volumes/[012]/emptyDir/sizeLimit))",
    "data": r"/spec/template/spec/(volumes/\d+/(image|configMap|persistentVolumeClaim)(/\w+)?|"
    r"containers/\d/volumeMounts/\d/subPath|containers/0/command/11)",
    "job name": r"/metadata/(name|ownerReferences/0/name)",
}
"""What a row may change: patterns of paths in the Job. Where data is, is the task's; where it is mounted, is not."""


@dataclass(frozen=True)
class Row:
    """One field of a user's, with a hostile value, and what of the Job may change by it."""

    kind: Kind
    field: str
    value: Any
    touches: str
    """A key of TOUCHES; or `refused` by the schema, so that nothing runs; or `told NAME`, before there is a Job."""

    def __str__(self) -> str:
        value = re.sub(r"\W+", " ", repr(self.value))[:30]
        return f"{self.kind}.{self.field}={value}"

    def objects(self) -> tuple[Json, Json]:
        """Rollout and task with the field set."""
        good = dict(GOOD)
        good[self.kind] = changed(good[self.kind], self.field, self.value)
        return good[Kind.ROLLOUT], good[Kind.TASK]


def ro(field: str, value: Any, touches: str) -> Row:
    return Row(Kind.ROLLOUT, field if field.startswith("metadata") else f"spec.{field}", value, touches)


def mlt(field: str, value: Any, touches: str) -> Row:
    return Row(Kind.TASK, field if field.startswith("metadata") else f"spec.{field}", value, touches)


RESERVED = {
    "mlwright.dev/part": "collector",
    "mlwright.dev/rollout-uid": "another",
    "mlwright.dev/attempt": "0",
    "app": "trusted",
}
ORDERS = {
    "k8s.v1.cni.cncf.io/networks": "host",
    "container.apparmor.security.beta.kubernetes.io/agent": "unconfined",
    "mlwright.dev/job": "{}",
    "mlwright.dev/files": "[]",
}
BREAKOUT = '"}]}, "securityContext": {"privileged": true}, "x": [{"a": "'
DATA = {
    "image": {"image": "public:1"},
    "claim": {"claim": {"name": "wine", "path": "other"}},
    "config map": {"configMap": "tiny"},
}

ROWS = [
    # Metadata of both kinds.
    *(
        row
        for add in (ro, mlt)
        for row in (
            add("metadata.labels", RESERVED, "nothing"),
            add("metadata.annotations", ORDERS, "nothing"),
            add("metadata.finalizers", ["example.com/never"], "nothing"),
            add("metadata.ownerReferences", [{"kind": "Node", "name": "n", "uid": "u"}], "nothing"),
            add("metadata.generateName", "x" * 100, "nothing"),
            add("metadata.managedFields", [{"manager": "mlwright-operator"}], "nothing"),
            add("metadata.name", "a." * 126 + "b", "job name"),
            add("metadata.name", "kube-system", "job name"),
        )
    ),
    # Rollout.
    ro("runRef", None, "run"),
    ro("runRef.name", "kube-system", "nothing"),
    ro("runRef.name", "../other", "refused"),
    ro("runRef.uid", "a b\n", "run"),
    ro("runRef.uid", "é" * 64, "run"),
    ro("runRef.uid", "x" * 65, "refused"),
    ro("taskRef.name", "another", "nothing"),
    ro("taskRef.digest", "sha256:" + "0" * 64, "nothing"),
    ro("taskRef.digest", "none", "refused"),
    ro("sandbox", "privileged", "nothing"),
    ro("sandbox", "../default", "refused"),
    ro("policyVersion", 2**62, "nothing"),
    ro("files.0.path", "../../etc/passwd", "refused"),
    ro("files.0.path", "/control/lock", "refused"),
    ro("files.0.path", "a/b.py", "refused"),
    ro("files.0.path", ".hidden.py", "refused"),
    ro("files.0.path", "script.py\0", "refused"),
    ro("files.0.path", "script.py\n", "refused"),
    ro(
        "files",
        [{"path": "script.py", "content": ""}, {"path": "sitecustomize.py", "content": "x"}],
        "request",
    ),
    ro("files", [{"path": "script.py", "content": ""}] * 17, "refused"),
    ro("files.0.content", BREAKOUT, "request"),
    ro("files.0.content", "$(HOME) $(KUBERNETES_SERVICE_HOST) {{ .Values }}", "request"),
    ro("files.0.content", "\0\x1b[2J\u202e\u2028\U0010ffff", "request"),
    ro("files.0.content", "x" * FILES_BYTES, "request"),
    ro("files.0.content", "x" * (FILES_BYTES + 1), "refused"),
    ro("files.0.content", "\x01" * FILES_BYTES, "told spec.files"),
    ro("entrypoint", "../script.py", "refused"),
    ro("entrypoint", "-c", "refused"),
    ro("limits", {"timeoutSeconds": 60, "memory": "1Gi", "workSize": "256Mi", "cpu": "1"}, "amounts"),
    ro("limits.timeoutSeconds", 86_400, "told timeoutSeconds"),
    ro("limits.timeoutSeconds", 86_401, "refused"),
    ro("limits.timeoutSeconds", float("inf"), "refused"),
    ro("limits.timeoutSeconds", 0, "refused"),
    ro("limits.cpu", "2001m", "told cpu"),
    ro("limits.cpu", "-1", "refused"),
    ro("limits", {"timeoutSeconds": 1, "memory": "1", "workSize": "1", "cpu": "1n"}, "amounts"),
    ro("limits.memory", "999999999999999E", "told memory"),
    ro("limits.memory", "1Gi; rm", "refused"),
    ro("limits.workSize", "257Mi", "told workSize"),
    ro("limits.gpus", 16, "told gpus"),
    ro("limits.gpus", 17, "refused"),
    ro("seed", 2**53, "request"),
    ro("seed", "$(RANDOM)", "refused"),
    ro("instrumentation", "None", "request"),
    ro("instrumentation", "Off", "refused"),
    ro("gradePartial", True, "nothing"),
    ro("infrastructureRetries", 100, "nothing"),
    ro("infrastructureRetries", 101, "refused"),
    ro("splits", ["Selection"], "splits"),
    ro("splits", ["Final"], "refused"),
    ro("splits", ["Reward", "Final"], "refused"),
    ro("splits", ["Reward,Final"], "refused"),
    ro("securityContext", {"privileged": True}, "refused"),
    ro("env", [{"name": "PYTHONPATH", "value": "/work"}], "refused"),
    ro("serviceAccountName", "admin", "refused"),
    # MLTask.
    mlt("title", BREAKOUT, "request"),
    mlt("description", BREAKOUT * 100, "nothing"),
    mlt("metric.name", "x", "request"),
    mlt("metric.name", "__import__('os')", "refused"),
    mlt("metric.direction", "Maximize", "request"),
    mlt("metric.averaging", "Macro", "request"),
    mlt("metric.k", 3, "request"),
    mlt("submission.fileName", "../answers.csv", "refused"),
    mlt("submission.fileName", "/private/answers.csv", "refused"),
    mlt("submission.fileName", "--result.csv", "refused"),
    mlt("submission.fileName", "other.csv", "request"),
    mlt("submission.idColumn", BREAKOUT, "request"),
    mlt("submission.targetColumns", [BREAKOUT, "../x", "\0"], "request"),
    mlt("submission.targetColumns", [f"{n:04}" + "é" * 124 for n in range(1024)], "told spec of the task"),
    mlt("submission.kind", "Probabilities", "request"),
    mlt("splits.strategy", "Random", "request"),
    mlt("splits", {"strategy": "Group", "column": BREAKOUT[:100]}, "request"),
    mlt("splits.column", "$(HOME)", "refused"),
    mlt("data.public", DATA["image"], "data"),
    mlt("data.public", DATA["claim"], "data"),
    mlt("data.public", DATA["config map"], "data"),
    mlt("data.public.image", "both:1", "refused"),
    mlt("data.public", {}, "refused"),
    mlt("data.public", {"hostPath": {"path": "/"}}, "refused"),
    mlt("data.public", {"secret": {"secretName": "s"}}, "refused"),
    mlt("data.public.claim.name", "../other", "refused"),
    mlt("data.public.claim.name", "others", "data"),
    mlt("data.public.claim.path", "../private", "refused"),
    mlt("data.public.claim.path", "wine/../../etc", "refused"),
    mlt("data.public.claim.path", "/etc", "refused"),
    mlt("data.public.claim.path", "wine/./private", "refused"),
    mlt("data.public.claim.path", "wine//private", "refused"),
    mlt("data.public.claim.path", "wine/private", "refused"),
    mlt("data.public.claim.path", "wine/private/inner", "refused"),
    mlt("data.public.claim.path", "wine", "refused"),
    mlt("data.public.claim.path", "", "refused"),
    mlt("data.public.claim.path", "$(HOME)", "data"),
    mlt("data.public.claim.path", "x" * 513, "refused"),
    mlt("data.public.configMap", "both", "refused"),
    mlt("data.private", {"image": "private:1"}, "data"),
    mlt("data.private.image", "both:1", "refused"),
    mlt("data.private.claim.name", "elsewhere", "data"),
    mlt("data.private.claim.path", "wine/hidden", "data"),
    mlt("data.private", {"configMap": "answers"}, "data"),
    mlt("data.private.configMap", "both", "refused"),
    mlt("data.sealed", {"image": "SEALED:1"}, "nothing"),
    mlt("data.sealed.image", "both:1", "refused"),
    mlt("data.sealed.claim.name", "SEALED".lower(), "nothing"),
    mlt("data.sealed.claim.path", "SEALED", "nothing"),
    mlt("data.sealed", {"configMap": "sealed"}, "nothing"),
    mlt("data.sealed.configMap", "both", "refused"),
    mlt("data.sealed", {"claim": {"name": "wine", "path": "wine/public/final"}}, "refused"),
    mlt("data", None, "refused"),
    mlt("limits.timeoutSeconds", 3600, "amounts"),
    mlt("limits.timeoutSeconds", 0.001, "amounts"),
    mlt("limits.cpu", "64", "amounts"),
    mlt("limits.cpu", "64001m", "told cpu"),
    mlt("limits.cpu", "1n", "amounts"),
    mlt("limits.memory", "256Gi", "amounts"),
    mlt("limits.memory", "257Gi", "told memory"),
    mlt("limits.memory", "0", "refused"),
    mlt("limits.workSize", "64Gi", "amounts"),
    mlt("limits.workSize", "65Gi", "told workSize"),
    mlt("limits.gpus", 16, "amounts"),
    mlt("limits.gpus", -1, "refused"),
    *(
        mlt(f"reference.{name}", 0.5, "request")
        for name in ("baseline", "best", "median", "bronze", "silver", "gold")
    ),
    mlt("image", "mine:1", "refused"),
    mlt("podTemplate", {}, "refused"),
]
BUILT = [row for row in ROWS if row.touches in TOUCHES]
REFUSED = [row for row in ROWS if row.touches == "refused"]
TOLD = [row for row in ROWS if row not in BUILT and row not in REFUSED]
