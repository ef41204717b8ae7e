"""What a run's collector may write, with more rights than it needs: the policies narrow what RBAC cannot."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from api_mutations import ROLLOUT, RUN, TASK, changed
from api_server import API, CRDS, Answer, ApiServer, with_crds
from mlwright_api.runstatus import COLLECTOR_STATUS, TrainingRunStatus
from mlwright_cluster.cluster import Cluster

pytestmark = pytest.mark.control_plane

NAMESPACE = "policies"
ROLLOUTS = f"{API}/namespaces/{NAMESPACE}/rollouts"
GENEROUS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "generous"},
    "rules": [
        {"apiGroups": ["mlwright.dev"], "resources": ["rollouts"], "verbs": ["*"]},
        {
            "apiGroups": ["mlwright.dev"],
            "resources": ["trainingruns/status", "mltasks/status", "rollouts/status"],
            "verbs": ["update", "patch"],
        },
        {"apiGroups": ["mlwright.dev"], "resources": ["trainingruns", "mltasks"], "verbs": ["get"]},
    ],
}
OWNER = {
    **GENEROUS,
    "metadata": {"name": "owner"},
    "rules": [{"apiGroups": ["mlwright.dev"], "resources": ["trainingruns"], "verbs": ["update"]}],
}
SUBJECTS = {
    "generous": [
        {"kind": "Group", "name": f"system:serviceaccounts:{NAMESPACE}"},
        {"kind": "Group", "name": "system:serviceaccounts:elsewhere"},
        {"kind": "User", "name": "alice"},
        {"kind": "User", "name": "bob"},
        {"kind": "User", "name": "system:serviceaccount:kube-system:generic-garbage-collector"},
    ],
    "owner": [{"kind": "User", "name": "alice"}],
}


def binding(role: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": SUBJECTS[role],
    }


@pytest.fixture(scope="module")
def server(control_plane: Cluster) -> Iterator[ApiServer]:
    """With the CRDs, the policies, and accounts that may do more than they should."""
    server = with_crds(control_plane)
    control_plane.kubectl("apply", "-f", str(CRDS / "policies"))
    server.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
    for role in (GENEROUS, OWNER):
        server.send("POST", f"{rbac}/roles", role)
        server.send("POST", f"{rbac}/rolebindings", binding(role["metadata"]["name"]))
    server.send("POST", f"{API}/namespaces/{NAMESPACE}/trainingruns", RUN)
    server.send("POST", f"{API}/namespaces/{NAMESPACE}/mltasks", TASK)
    until_the_policies_hold(server)
    yield server
    control_plane.kubectl("delete", "-f", str(CRDS / "policies"))


def until_the_policies_hold(server: ApiServer) -> None:
    """Policies, and the roles of those who are refused, are read by watches."""
    for _ in range(500):
        rollout = create(server, "run-collector", rollout_of("other"))
        status = write_status(server, "run-collector", conditions=[])
        if all("a collector may only" in refusal(answer) for answer in (rollout, status)):
            return
    pytest.fail(f"never refused: {rollout} {status}")


def account(name: str, namespace: str = NAMESPACE) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def rollout_of(run: str | None, name: str = "probe") -> dict[str, Any]:
    document = copy.deepcopy(ROLLOUT)
    document["metadata"]["name"] = name
    if run is None:
        del document["spec"]["runRef"]
    else:
        document["spec"]["runRef"] = {"name": run, "uid": "u"}
    return document


def create(server: ApiServer, who: str, document: dict[str, Any], **query: str) -> Answer:
    """As a ServiceAccount of the namespace, or as whom a name with a colon or of a person means."""
    user = who if ":" in who or who in ("alice", "bob") else account(who)
    return server.impersonating(user).send("POST", ROLLOUTS, document, **({"dryRun": "All"} | query))


def refusal(answer: Answer) -> str:
    return str(answer.body.get("message", ""))


OWN_ONLY = "a collector may only create, change and delete rollouts whose spec.runRef names its own run"
LEAVE_OUT = "spec.runRef may only be given by the run's collector, or by who may update that TrainingRun"


@pytest.mark.parametrize(
    ("who", "run"),
    [
        ("run-collector", "run"),
        ("run.two-collector", "run.two"),
        ("a-collector-collector", "a-collector"),
        ("somebody", None),
        ("bob", None),
        ("alice", "run"),
        ("alice", "other"),
    ],
)
def test_a_rollout_is_taken_from_its_runs_collector_and_from_who_may_change_the_run(
    server: ApiServer, who: str, run: str | None
) -> None:
    answer = create(server, who, rollout_of(run))
    assert answer.code == 201, refusal(answer)


@pytest.mark.parametrize(
    ("who", "run", "reason"),
    [
        ("run-collector", "other", OWN_ONLY),
        ("run-collector", "ru", OWN_ONLY),
        ("run-collector", "run-collector", OWN_ONLY),
        ("run-collector", None, OWN_ONLY),
        ("collector", "run", LEAVE_OUT),
        ("run", "run", LEAVE_OUT),
        ("bob", "run", LEAVE_OUT),
        (account("run-collector", "elsewhere"), "run", LEAVE_OUT),
    ],
)
def test_a_rollout_of_another_run_is_refused(
    server: ApiServer, who: str, run: str | None, reason: str
) -> None:
    answer = create(server, who, rollout_of(run))
    assert answer.code == 403
    assert reason in refusal(answer)


def test_a_collector_deletes_rollouts_of_its_own_run_only(server: ApiServer) -> None:
    for run in ("run", "other"):
        assert server.send("POST", ROLLOUTS, rollout_of(run, f"of-{run}")).code == 201
    collector = server.impersonating(account("run-collector"))
    refused = collector.send("DELETE", f"{ROLLOUTS}/of-other")
    assert (refused.code, OWN_ONLY in refusal(refused)) == (403, True)
    assert collector.send("DELETE", f"{ROLLOUTS}/of-run").code == 200


def test_a_collector_labels_rollouts_of_its_own_run_only(server: ApiServer) -> None:
    for run in ("run", "other"):
        server.send("POST", ROLLOUTS, rollout_of(run, f"labelled-{run}"))
    collector = server.impersonating(account("run-collector"))
    patch = {"metadata": {"labels": {"a": "b"}}}
    codes = [
        collector.send(
            "PATCH", f"{ROLLOUTS}/labelled-{run}", patch, content="application/merge-patch+json"
        ).code
        for run in ("run", "other")
    ]
    assert codes == [200, 403]


def test_the_garbage_collector_is_no_runs_collector(server: ApiServer) -> None:
    """Though its name ends as theirs do."""
    server.send("POST", ROLLOUTS, rollout_of("other", "garbage"))
    garbage = server.impersonating(account("generic-garbage-collector", "kube-system"))
    assert garbage.send("DELETE", f"{ROLLOUTS}/garbage").code == 200


def write_status(server: ApiServer, who: str, *, run: str = "run", **status: object) -> Answer:
    return server.impersonating(account(who)).send(
        "PATCH",
        f"{API}/namespaces/{NAMESPACE}/trainingruns/{run}/status",
        {"status": status},
        content="application/merge-patch+json",
        dryRun="All",
    )


STATUS: dict[str, object] = {
    "conditions": [{"type": "Succeeded", "status": "True", "reason": "Mine"}],
    "rollouts": {"running": 9},
    "inference": [{"pod": "p", "address": "a:1", "ready": True}],
    "progress": {"update": 1, "updates": 9, "policyVersion": 1},
    "reward": {"mean": 0.5, "validFraction": 1},
    "best": {"score": 0.5, "path": "best/script.py", "digest": "sha256:0"},
    "policyVersions": [0, 1],
}


def test_every_field_of_a_runs_status_is_tried_below() -> None:
    assert set(STATUS) == {field.alias or name for name, field in TrainingRunStatus.model_fields.items()}


@pytest.mark.parametrize("field", COLLECTOR_STATUS)
def test_a_collector_writes_its_part_of_its_runs_status(server: ApiServer, field: str) -> None:
    answer = write_status(server, "run-collector", **{field: STATUS[field]})
    assert answer.code == 200, refusal(answer)


@pytest.mark.parametrize("field", sorted(set(STATUS) - set(COLLECTOR_STATUS)))
def test_a_collector_does_not_write_the_operators_part(server: ApiServer, field: str) -> None:
    for status in ({field: STATUS[field]}, {field: STATUS[field], "progress": STATUS["progress"]}):
        answer = write_status(server, "run-collector", **status)
        assert answer.code == 403
        assert "a collector may only write progress, reward, best, policyVersions" in refusal(answer)


def test_a_collector_does_not_take_away_the_operators_part(server: ApiServer) -> None:
    path = f"{API}/namespaces/{NAMESPACE}/trainingruns/run/status"
    current = server.send("GET", path).body
    assert server.send("PUT", path, {**current, "status": {"conditions": STATUS["conditions"]}}).code == 200
    try:
        for status in ({"conditions": None}, {"conditions": []}):
            assert write_status(server, "run-collector", **status).code == 403
        assert write_status(server, "run-collector", progress=STATUS["progress"]).code == 200
    finally:
        server.send("PUT", path, {**server.send("GET", path).body, "status": {}})


def test_a_collector_does_not_write_another_runs_status(server: ApiServer) -> None:
    answer = write_status(server, "other-collector", progress=STATUS["progress"])
    assert answer.code == 403
    assert "a collector may only write the status of its own TrainingRun" in refusal(answer)


def test_who_is_no_collector_writes_what_its_role_lets_it(server: ApiServer) -> None:
    """The operator, say: its rights are RBAC's matter."""
    assert write_status(server, "operator", **STATUS).code == 200


@pytest.mark.parametrize(("plural", "good"), [("rollouts", ROLLOUT), ("mltasks", TASK)])
def test_a_collector_writes_no_other_kinds_status(
    server: ApiServer, plural: str, good: dict[str, Any]
) -> None:
    server.send("POST", f"{API}/namespaces/{NAMESPACE}/{plural}", changed(good, "metadata/name", "judged"))
    path = f"{API}/namespaces/{NAMESPACE}/{plural}/judged/status"
    answers = [
        server.impersonating(account(who)).send(
            "PATCH", path, {"status": {"conditions": []}}, content="application/merge-patch+json"
        )
        for who in ("run-collector", "operator")
    ]
    assert [answer.code for answer in answers] == [403, 200]
    assert "a collector may only write the status of its own TrainingRun" in refusal(answers[0])
