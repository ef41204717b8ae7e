"""The operator as a process against a real API server, with the rights of operator/rbac.yaml and no others."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlwright_cluster.cluster import Cluster
from mlwright_cluster.errors import CommandFailed
from operator_objects import rollout
from operator_process import (
    SYSTEM,
    OperatorProcess,
    create,
    get,
    install,
    namespace_with_task,
    operating,
    patch_status,
    until,
)

pytestmark = pytest.mark.control_plane

LEASE_SECONDS = 15
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def cluster(control_plane: Cluster) -> Cluster:
    install(control_plane)
    return control_plane


@pytest.fixture
def lab(cluster: Cluster) -> str:
    """A namespace of this test's own, with a task that is ready."""
    namespace = f"operator-{next(NUMBERS)}"
    namespace_with_task(cluster, namespace)
    return namespace


@pytest.fixture
def operator(cluster: Cluster, lab: str, tmp_path: Path) -> Iterator[OperatorProcess]:
    """One that watches this test's namespace, without election."""
    with operating(cluster, tmp_path, "--namespace", lab, "--no-election") as running:
        yield running


def jobs(cluster: Cluster, lab: str) -> list[Any]:
    return list(get(cluster, "jobs", lab))


def attempts(cluster: Cluster, lab: str) -> list[int]:
    return [raw.get("status", {}).get("attempt", 0) for raw in get(cluster, "rollouts", lab)]


def condition(cluster: Cluster, lab: str, name: str, type: str) -> dict[str, Any]:
    found = get(cluster, "rollout", lab, name).get("status", {}).get("conditions", [])
    return next((each for each in found if each["type"] == type), {})


def started(cluster: Cluster, lab: str, count: int) -> Callable[[], bool]:
    return lambda: attempts(cluster, lab) == [1] * count


def at_attempt(cluster: Cluster, lab: str, attempt: int) -> Callable[[], bool]:
    return lambda: attempts(cluster, lab) == [attempt]


def more_jobs(cluster: Cluster, lab: str, count: int) -> Callable[[], bool]:
    return lambda: len(jobs(cluster, lab)) > count


def quiet(operator: OperatorProcess) -> float:
    """Wait until it writes no more; how many writes there were."""

    def still() -> bool:
        before = operator.writes()
        time.sleep(1)
        return operator.writes() == before

    until(still, what="a second without a write")
    return operator.writes()


def test_a_rollout_becomes_a_job_that_belongs_to_it_in_a_namespace_that_is_closed(
    cluster: Cluster, lab: str, operator: OperatorProcess
) -> None:
    create(cluster, rollout(lab, "one"))
    until(started(cluster, lab, 1), what="attempt 1")
    (job,) = jobs(cluster, lab)
    (owner,) = job["metadata"]["ownerReferences"]
    assert owner["uid"] == get(cluster, "rollout", lab, "one")["metadata"]["uid"]
    policy = get(cluster, "networkpolicy", lab, "mlwright-sandbox")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert policy["metadata"]["creationTimestamp"] <= job["metadata"]["creationTimestamp"]


def test_objects_carry_no_annotation_and_no_finalizer_of_the_operators(
    cluster: Cluster, lab: str, operator: OperatorProcess
) -> None:
    create(cluster, rollout(lab, "one"))
    until(started(cluster, lab, 1), what="attempt 1")
    quiet(operator)
    for kind in ("rollouts", "mltasks", "networkpolicies", "jobs"):
        for raw in get(cluster, kind, lab, **{"show-managed-fields": "true"}):
            assert "finalizers" not in raw["metadata"], kind
            assert not any("kopf" in name for name in raw["metadata"].get("annotations", {})), kind
            managers = {each["manager"] for each in raw["metadata"]["managedFields"]}
            assert managers <= {"mlwright-operator", "kubectl-create", "kubectl-patch"}, kind
    assert "annotations" not in get(cluster, "rollout", lab, "one")["metadata"]


def test_a_pass_with_nothing_to_do_sends_no_write(cluster: Cluster, lab: str, tmp_path: Path) -> None:
    config = "resyncSeconds: 0.5\n"
    with operating(cluster, tmp_path, "--namespace", lab, "--no-election", config=config) as operator:
        create(cluster, *(rollout(lab, f"r{number}") for number in range(10)))
        until(started(cluster, lab, 10), what="ten attempts")
        before, lists = quiet(operator), operator.requests()["list", "200"]
        until(lambda: operator.requests()["list", "200"] > lists + 20, what="some more lists")
        assert operator.writes() == before


def test_a_deleted_job_is_a_failure_of_the_infrastructure_and_the_next_attempt(
    cluster: Cluster, lab: str, operator: OperatorProcess
) -> None:
    create(cluster, rollout(lab, "one"))
    until(started(cluster, lab, 1), what="attempt 1")
    cluster.kubectl("delete", "jobs", "--all", "-n", lab)
    until(lambda: attempts(cluster, lab) == [2], what="attempt 2")
    (job,) = jobs(cluster, lab)
    assert job["metadata"]["labels"]["mlwright.dev/attempt"] == "2"


def test_a_deleted_policy_is_there_again(cluster: Cluster, lab: str, operator: OperatorProcess) -> None:
    create(cluster, rollout(lab, "one"))
    until(started(cluster, lab, 1), what="attempt 1")
    before = get(cluster, "networkpolicy", lab, "mlwright-sandbox")["metadata"]["uid"]
    cluster.kubectl("delete", "networkpolicy", "mlwright-sandbox", "-n", lab)

    def again() -> bool:
        found = get(cluster, "networkpolicies", lab)
        return bool(found) and found[0]["metadata"]["uid"] != before

    until(again, what="another policy")


def test_a_pod_that_failed_without_fault_of_the_script_is_run_again_until_there_are_no_retries(
    cluster: Cluster, lab: str, operator: OperatorProcess
) -> None:
    wanted = rollout(lab, "one")
    wanted["spec"]["infrastructureRetries"] = 1
    # The controller that would make it is not part of a mere control plane.
    account = {"metadata": {"name": "default", "namespace": lab}}
    create(cluster, wanted, {"apiVersion": "v1", "kind": "ServiceAccount", **account})
    for attempt in (1, 2):
        until(at_attempt(cluster, lab, attempt), what=f"attempt {attempt}")
        fail_pod(cluster, lab, attempt)
    until(lambda: get(cluster, "rollout", lab, "one")["status"].get("outcome"), what="an outcome")
    assert get(cluster, "rollout", lab, "one")["status"]["outcome"] == "InfrastructureFailed"
    until(lambda: not jobs(cluster, lab), what="the end of the Job")
    events = {each["reason"] for each in get(cluster, "events.events.k8s.io", lab)}
    assert events, "no Event says what happened"


def fail_pod(cluster: Cluster, lab: str, attempt: int) -> None:
    """What the Job controller and a kubelet would do: a pod of the Job, which ran into the pod's deadline."""
    selector = f"mlwright.dev/attempt={attempt}"
    (job,) = get(cluster, "jobs", lab, selector=selector)
    metadata = job["metadata"]
    template = job["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
    name = f"{metadata['name']}-pod"
    create(
        cluster,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **template["metadata"],
                "name": name,
                "namespace": lab,
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": False}],
            },
            "spec": template["spec"],
        },
    )
    patch_status(
        cluster, "pod", lab, name, {"phase": "Failed", "reason": "DeadlineExceeded", "message": "late"}
    )


def test_a_quota_is_said_in_a_condition_and_its_end_is_noticed(
    cluster: Cluster, lab: str, operator: OperatorProcess
) -> None:
    quota = {"metadata": {"name": "none", "namespace": lab}, "spec": {"hard": {"count/jobs.batch": "0"}}}
    create(cluster, {"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    # The quota controller, which would do this, is not part of a mere control plane.
    hard = {"count/jobs.batch": "0"}
    patch_status(cluster, "resourcequota", lab, "none", {"hard": hard, "used": hard})
    create(cluster, rollout(lab, "one"))
    until(
        lambda: condition(cluster, lab, "one", "Started").get("reason") == "QuotaExceeded",
        what="QuotaExceeded",
    )
    assert "none" in condition(cluster, lab, "one", "Started")["message"]
    cluster.kubectl("delete", "resourcequota", "none", "-n", lab)
    until(started(cluster, lab, 1), what="attempt 1")


def test_a_namespace_that_is_going_away_is_left_in_peace(
    cluster: Cluster, lab: str, operator: OperatorProcess
) -> None:
    create(cluster, rollout(lab, "one"))
    until(started(cluster, lab, 1), what="attempt 1")
    cluster.kubectl("delete", "namespace", lab, "--wait=false")
    cluster.kubectl("delete", "jobs", "--all", "-n", lab)
    until(
        lambda: condition(cluster, lab, "one", "Started").get("reason") == "NamespaceTerminating",
        what="a condition",
    )
    requests = operator.requests()
    time.sleep(3)
    refused = operator.requests().get(("apply", "403"), 0) - requests.get(("apply", "403"), 0)
    assert refused <= 5, "it insists"


def test_an_api_server_that_is_away_for_a_minute_is_waited_for(
    cluster: Cluster, lab: str, tmp_path: Path
) -> None:
    with operating(cluster, tmp_path, "--namespace", lab) as operator:
        create(cluster, rollout(lab, "one"))
        until(started(cluster, lab, 1), what="attempt 1")
        began = time.monotonic()
        with cluster.without("kube-apiserver"):
            until(lambda: not operator.ready(), what="not ready")
            while time.monotonic() < began + 60:
                assert not operator.ready()
                assert operator.ask("/healthz")[0] == 200
                time.sleep(1)
        until(operator.ready, what="ready again")
        create(cluster, rollout(lab, "two"))
        until(started(cluster, lab, 2), what="both attempts")
        assert len(jobs(cluster, lab)) == 2
        assert operator.stop() == 0


def test_of_two_operators_the_second_takes_over_within_seconds_of_a_clean_stop(
    cluster: Cluster, lab: str, tmp_path: Path
) -> None:
    with operating(cluster, tmp_path / "a", "--namespace", lab) as first:
        until(lambda: first.log("leading"), what="a leader")
        with operating(cluster, tmp_path / "b", "--namespace", lab) as second:
            until(second.ready, what="a ready standby")
            assert not second.log("leading")
            began = time.monotonic()
            assert first.stop() == 0
            assert time.monotonic() - began < 10
            until(lambda: second.log("leading"), what="another leader", seconds=LEASE_SECONDS - 3)
            create(cluster, rollout(lab, "one"))
            until(started(cluster, lab, 1), what="attempt 1")


def test_a_paused_leader_writes_nothing_when_it_wakes_up_in_anothers_time(
    cluster: Cluster, lab: str, tmp_path: Path
) -> None:
    with (
        operating(cluster, tmp_path / "a", "--namespace", lab) as first,
        operating(cluster, tmp_path / "b", "--namespace", lab) as second,
    ):
        until(lambda: first.log("leading") or second.log("leading"), what="a leader")
        leader, other = (first, second) if first.log("leading") else (second, first)
        until(other.ready, what="a ready standby")
        leader.signal(signal.SIGSTOP)
        until(lambda: other.log("leading"), what="another leader")
        create(cluster, *(rollout(lab, f"r{number}") for number in range(5)))
        until(started(cluster, lab, 5), what="five attempts")
        leader.signal(signal.SIGCONT)
        assert leader.wait() == 75
        assert attempts(cluster, lab) == [1] * 5
        assert len(jobs(cluster, lab)) == 5


def test_killed_again_and_again_in_a_burst_it_ends_where_it_would_have_ended(
    cluster: Cluster, lab: str, tmp_path: Path
) -> None:
    count = 30
    create(cluster, *(rollout(lab, f"r{number}") for number in range(count)))
    operator = OperatorProcess(cluster, tmp_path, "--namespace", lab, "--no-election")
    for turn in range(3):
        operator.start()
        until(more_jobs(cluster, lab, 8 * turn), what="some Jobs")
        operator.kill()
    operator.start()
    until(started(cluster, lab, count), what="all attempts")
    made = jobs(cluster, lab)
    owners = [job["metadata"]["ownerReferences"][0]["uid"] for job in made]
    assert sorted(owners) == sorted(raw["metadata"]["uid"] for raw in get(cluster, "rollouts", lab))
    quiet(operator)
    assert operator.errors() == []
    assert operator.stop() == 0


def test_all_namespaces_are_watched_where_none_is_named(cluster: Cluster, lab: str, tmp_path: Path) -> None:
    with operating(cluster, tmp_path, "--no-election") as operator:
        create(cluster, rollout(lab, "one"))
        until(started(cluster, lab, 1), what="attempt 1")
        later = f"operator-{next(NUMBERS)}"
        namespace_with_task(cluster, later)
        create(cluster, rollout(later, "one"))
        until(started(cluster, later, 1), what="attempt 1 in a namespace that came later")
        assert operator.stop() == 0


@pytest.mark.parametrize(
    "asked",
    [
        ("get", "secrets"),
        ("list", "secrets"),
        ("get", "configmaps"),
        ("get", "pods/log"),
        ("create", "pods/exec"),
        ("create", "pods"),
        ("delete", "pods"),
        ("update", "rollouts"),
        ("patch", "rollouts"),
        ("update", "rollouts/finalizers"),
        ("create", "rollouts"),
        ("delete", "mltasks"),
        ("patch", "trainingruns"),
        ("delete", "networkpolicies"),
        ("impersonate", "users"),
        ("escalate", "clusterroles"),
        ("update", "leases"),
        ("list", "customresourcedefinitions"),
    ],
)
def test_it_has_no_right_that_it_does_not_need(cluster: Cluster, asked: tuple[str, str]) -> None:
    verb, resource = asked
    identity = f"--as=system:serviceaccount:{SYSTEM}:mlwright-operator"
    with pytest.raises(CommandFailed):
        cluster.kubectl("auth", "can-i", verb, resource, "-n", "default", identity)
