"""Ways in which a sandbox pod ends, made on a real node: script, change of the Job, fault, and outcome."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_pod import SUBMIT
from mlwright_api.podstatus import AGENT, GRADER
from mlwright_api.rollout import Outcome
from mlwright_cluster import machine
from mlwright_cluster.cluster import Cluster
from mlwright_operator.sandbox import template
from operator_process import until

Json = dict[str, Any]
Change = Callable[[Json], None]
Fault = Callable[[Cluster, Json], None]

STARTED = "started"
"""A file in the work folder by which a script says that it runs."""
WAIT = f"import time\nopen('{STARTED}', 'w').close()\nprint('waiting', flush=True)\ntime.sleep(600)\n"


@dataclass(frozen=True)
class PodEnding:
    """One way to end; `over`: whether the pod gets to a last phase."""

    name: str
    outcome: Outcome
    reason: str
    """What the reason begins with."""
    script: str = WAIT
    change: Change = lambda job: None
    fault: Fault | None = None
    """Done once the script runs."""
    over: bool = True
    slow: bool = False
    """Takes a minute or more: made when statuses are recorded."""
    limits: tuple[tuple[str, Any], ...] = ()
    note: str = ""
    """What of it a node does not do by itself."""


# What is different about the Job.


def container(job: Json, name: str) -> Json:
    """Of a Job's pod."""
    (found,) = (each for each in template(job)["spec"]["containers"] if each["name"] == name)
    assert isinstance(found, dict)
    return found


def limited(name: str, **amounts: str) -> Change:
    """A container with other limits."""

    def change(job: Json) -> None:
        resources = container(job, name)["resources"]
        for amount in (resources["requests"], resources["limits"]):
            amount.update({key.replace("_", "-"): value for key, value in amounts.items()})

    return change


def asked(**fields: Any) -> Change:
    """A runner that is told something else than the Job's limits say."""

    def change(job: Json) -> None:
        annotations = template(job)["metadata"]["annotations"]
        request = json.loads(annotations["mlwright.dev/job"])
        annotations["mlwright.dev/job"] = json.dumps(request | fields)

    return change


def commanded(*command: str) -> Change:
    """An agent that is another program."""

    def change(job: Json) -> None:
        container(job, AGENT)["command"] = list(command)

    return change


def pulled(policy: str) -> Change:
    """An image that is nowhere."""

    def change(job: Json) -> None:
        container(job, AGENT).update(image="localhost/mlwright-missing:1", imagePullPolicy=policy)
        for name in (AGENT, GRADER):  # It stays, and is not to keep the others from the node's two cores.
            limited(name, cpu="10m")(job)

    return change


def with_deadline(seconds: int) -> Change:
    """A pod with less time than its runner has."""

    def change(job: Json) -> None:
        template(job)["spec"]["activeDeadlineSeconds"] = seconds

    return change


def on_disk(size: str | None) -> Change:
    """A work folder on a disk, of which only the kubelet counts the use, now and then."""

    def change(job: Json) -> None:
        (volume,) = (each for each in template(job)["spec"]["volumes"] if each["name"] == "work")
        volume["emptyDir"] = {"sizeLimit": size} if size else {}

    return change


def both(*changes: Change) -> Change:
    """One after the other."""

    def change(job: Json) -> None:
        for each in changes:
            each(job)

    return change


# What is done to a pod whose script runs.


def container_id(pod: Json, name: str) -> str:
    """As the runtime has it."""
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return next((each.get("containerID", "") for each in statuses if each["name"] == name), "").partition(
        "//"
    )[2]


def processes(cluster: Cluster, container: str) -> list[int]:
    """Of a container, as this machine counts them."""
    mounts = Path("/proc/self/mountinfo").read_text()
    for folder in machine.cgroup_folders(machine.short_name(cluster.folder), mounts):
        for found in folder.rglob(container):
            return [int(line) for line in (found / "cgroup.procs").read_text().split()]
    return []


def script_runs(cluster: Cluster, pod: Json) -> bool:
    """Whether the script has said so in its work folder."""
    agent = container_id(pod, AGENT)
    return bool(agent) and any(
        Path(f"/proc/{pid}/root/work/{STARTED}").exists() for pid in processes(cluster, agent)
    )


def killed(name: str) -> Fault:
    """A container's first process is ended by the kernel."""

    def fault(cluster: Cluster, pod: Json) -> None:
        cluster.ctr("tasks", "kill", "--signal", "SIGKILL", container_id(pod, name))

    return fault


def deleted(cluster: Cluster, pod: Json) -> None:
    """As a person does."""
    metadata = pod["metadata"]
    cluster.kubectl("delete", "pod", metadata["name"], "-n", metadata["namespace"], "--wait=false")


def evicted(cluster: Cluster, pod: Json) -> None:
    """As `kubectl drain` does."""
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body))


def without_node(cluster: Cluster, pod: Json) -> None:
    """The kubelet is gone until the control plane has noticed, and has given the pod up.

    Where every node is gone, the node controller does not set the taint that drives pods away: so it is set by hand.
    """
    metadata, taint = pod["metadata"], "node.kubernetes.io/unreachable:NoExecute"
    with cluster.without("kubelet"):
        unknown = "--for=jsonpath={.status.conditions[?(@.type=='Ready')].status}=Unknown"
        cluster.kubectl("wait", f"node/{cluster.node_name}", unknown, "--timeout=120s")
        cluster.kubectl("taint", "node", cluster.node_name, taint)

        def given_up() -> bool:
            found = cluster.kubectl(
                *("get", "pod", metadata["name"], "-n", metadata["namespace"]),
                "--output=jsonpath={.metadata.deletionTimestamp}",
            )
            return bool(found)

        until(given_up, what="the end of the pod", seconds=180)
    cluster.kubectl("taint", "node", cluster.node_name, f"{taint}-")


def tolerating(seconds: int) -> Change:
    """A pod that waits for its node for so long, in place of five minutes."""

    def change(job: Json) -> None:
        template(job)["spec"]["tolerations"] = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key in ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
        ]

    return change


FILL = (
    f"import time\nopen('{STARTED}', 'w').close()\nwith open('big', 'wb') as file:\n"
    "    for _ in range(64):\n        file.write(bytes(1 << 20))\ntime.sleep(600)\n"
)
TAKE = "taken = []\nwhile True:\n    taken.append(b'x' * (1 << 24))\n"
SUBMIT_AND_WAIT = f"{SUBMIT}\n{WAIT}"
GIBIBYTE = 1 << 30

ENDINGS = (
    PodEnding("success", Outcome.SCORED, "", SUBMIT),
    PodEnding("error", Outcome.ERROR, "ValueError: wrong", "raise ValueError('wrong')\n"),
    PodEnding("script at its memory limit", Outcome.OUT_OF_MEMORY, "Memory", TAKE),
    PodEnding(
        "script killed by the kernel for its memory",
        Outcome.OUT_OF_MEMORY,
        "",
        TAKE,
        change=asked(memoryBytes=64 * GIBIBYTE),
    ),
    PodEnding(
        "runner killed by the kernel for its memory",
        Outcome.OUT_OF_MEMORY,
        "killed at",
        change=limited(AGENT, memory="40Mi"),
    ),
    PodEnding(
        "runner killed", Outcome.INFRASTRUCTURE_FAILED, "RunnerDied: exit code 137", fault=killed(AGENT)
    ),
    PodEnding("timeout", Outcome.TIMEOUT, "ran into the limit of 3 s", limits=(("timeoutSeconds", 3),)),
    PodEnding(
        "deadline of the pod",
        Outcome.INFRASTRUCTURE_FAILED,
        "DeadlineExceeded",
        change=with_deadline(60),
        slow=True,
    ),
    PodEnding(
        "eviction for a work folder that is too full",
        Outcome.OVER_LIMIT,
        "Disk: Usage of EmptyDir volume",
        FILL,
        change=both(on_disk("8Mi"), asked(workBytes=GIBIBYTE)),
        slow=True,
    ),
    PodEnding(
        "eviction for the pod's storage",
        Outcome.OVER_LIMIT,
        "Disk: Pod ephemeral local storage usage exceeds",
        FILL,
        change=both(
            on_disk(None),
            asked(workBytes=GIBIBYTE),
            limited(AGENT, ephemeral_storage="4Mi"),
            limited(GRADER, ephemeral_storage="4Mi"),
        ),
        slow=True,
    ),
    PodEnding(
        "eviction for a container's log",
        Outcome.OVER_LIMIT,
        "Disk: Container agent exceeded its local ephemeral storage limit",
        change=both(
            commanded("sh", "-c", "yes | head -c 20000000; sleep 600"),
            limited(AGENT, ephemeral_storage="4Mi"),
        ),
        slow=True,
    ),
    PodEnding(
        "image that cannot be pulled",
        Outcome.INFRASTRUCTURE_FAILED,
        "",
        change=pulled("Always"),
        over=False,
    ),
    PodEnding(
        "image that is not there",
        Outcome.INFRASTRUCTURE_FAILED,
        "ErrImageNeverPull",
        change=pulled("Never"),
        over=False,
    ),
    PodEnding(
        "program that is not there",
        Outcome.INFRASTRUCTURE_FAILED,
        "StartError: agent",
        change=commanded("no-such-program"),
        over=False,
    ),
    PodEnding("deletion", Outcome.INFRASTRUCTURE_FAILED, "RunnerDied: exit code 143", fault=deleted),
    PodEnding("drain", Outcome.INFRASTRUCTURE_FAILED, "Disrupted: EvictionByEvictionAPI", fault=evicted),
    PodEnding(
        "grader killed",
        Outcome.INVALID_SUBMISSION,
        "GraderDied",
        f"{SUBMIT}\nimport time\nopen('{STARTED}', 'w').close()\ntime.sleep(5)\n",
        fault=killed(GRADER),
    ),
    PodEnding(
        "grader killed by the kernel for its memory",
        Outcome.INVALID_SUBMISSION,
        "GraderDied",
        SUBMIT,
        change=limited(GRADER, memory="16Mi"),
    ),
)
NODE_GONE = PodEnding(
    "node gone",
    Outcome.INFRASTRUCTURE_FAILED,
    "",
    change=tolerating(1),
    fault=without_node,
    over=False,
    slow=True,
    note="The only node: its taint node.kubernetes.io/unreachable:NoExecute was set by hand, as the node controller "
    "does where other nodes are left; the pod tolerated it for 1 s.",
)
