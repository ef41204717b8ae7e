"""How long a cold sandbox pod takes, beside a plain two-container Job of the same image that does the same imports.

    python benchmarks/sandbox_pod.py [--rounds 5]

On a node of its own (hack/cluster; root), in turn, so that whatever else the machine does hits both. Both Jobs have the
same image, the same cores and memory, and the same script, which submits predictions for 60 rows. The plain one has no
lock, no receipt, no user namespace and no memory-backed folders; its second container imports the grader, and grades
nothing. Measured from the Job's creation to the last phase of its pod, as a watch tells it; medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "hack/cluster"), str(ROOT / "tests/support")]
# Not this file's folder, in case a script there has a module's name.
sys.path[:] = [path for path in sys.path if Path(path) != ROOT / "benchmarks"]

from local_pod import SUBMIT, small_task  # noqa: E402
from mlwright_cluster import sandbox_image  # noqa: E402
from mlwright_cluster.cluster import Cluster, found, running  # noqa: E402
from mlwright_cluster.needs import given_cluster  # noqa: E402
from mlwright_cluster.plan import Level  # noqa: E402
from mlwright_operator.actions import Kind, Ref  # noqa: E402
from mlwright_operator.config import SandboxProfile  # noqa: E402
from mlwright_operator.sandbox import sandbox_job, template  # noqa: E402
from node_lab import mltask, open_lab, with_config_maps  # noqa: E402
from operator_process import until  # noqa: E402
from pod_watch import PodWatch, watched  # noqa: E402
from sandbox_pods import ROLLOUT, changed, seen_rollout, seen_task  # noqa: E402

Json = dict[str, Any]
NAMESPACE = "bench"
LIMITS = {"timeoutSeconds": 300, "cpu": "1", "memory": "512Mi", "workSize": "64Mi"}
GOAL = {"overhead_at_most": 0.10}
PLAIN_AGENT = f"""
import os
from mlwright_sandbox import libraries
libraries.preload()
os.chdir("/tmp")
os.symlink("/public", "data")
{SUBMIT}
"""
PLAIN_GRADER = "import mlwright_sandbox.grader, mlwright_sandbox.grading\n"


def sandboxed(name: str, spec: Json, image: str) -> Json:
    """The Job as the operator makes it."""
    profile = SandboxProfile(image=image, image_pull_policy="Never", user_namespaces="Required")
    rollout = changed(ROLLOUT, "files.0.content", SUBMIT)
    ref = Ref(Kind.ROLLOUT, NAMESPACE, name, name)
    job = sandbox_job(
        rollout=replace(seen_rollout(rollout), ref=ref), task=seen_task(spec), profile=profile, attempt=1
    )
    del job["metadata"]["ownerReferences"]
    return job


def plain(name: str, spec: Json, image: str) -> Json:
    """The Job that anybody would write."""
    like = sandboxed(name, spec, image)
    agent, grader = (
        {
            "name": container["name"],
            "image": image,
            "imagePullPolicy": "Never",
            "command": ["python3", "-I", "-c", code],
            "resources": container["resources"],
            "volumeMounts": [
                each for each in container["volumeMounts"] if each["name"] in ("public", "private")
            ],
        }
        for container, code in zip(
            template(like)["spec"]["containers"], (PLAIN_AGENT, PLAIN_GRADER), strict=True
        )
    )
    data = [each for each in template(like)["spec"]["volumes"] if each["name"] in ("public", "private")]
    pod = {"restartPolicy": "Never", "containers": [agent, grader], "volumes": data}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": like["metadata"],
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


def seconds(cluster: Cluster, watch: PodWatch, job: Json) -> float:
    """From a Job's creation to its pod's success; the Job is deleted afterwards."""
    name = job["metadata"]["name"]
    begun = time.monotonic()
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))
    until(lambda: phase(watch.last(name)) in ("Succeeded", "Failed"), what=f"the end of {name}", seconds=300)
    taken = time.monotonic() - begun
    pod = watch.last(name)
    assert phase(pod) == "Succeeded", pod["status"]
    cluster.kubectl("delete", "job", name, "-n", NAMESPACE, "--cascade=foreground", "--timeout=60s")
    return taken


def phase(pod: Json) -> str:
    """Of a pod; empty where there is none."""
    return str(pod.get("status", {}).get("phase", ""))


def measure(cluster: Cluster, image: str, rounds: int) -> Json:
    """Both ways in turn; the first of each is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        task = small_task(Path(folder))
        lab = open_lab(cluster, NAMESPACE)
        cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce-")
        *maps, _ = with_config_maps(NAMESPACE, "small", task)
        lab.apply(*maps)
        data = {part: {"configMap": f"small-{part}"} for part in ("public", "private")}
        spec = mltask(NAMESPACE, "small", task.spec, data, limits=LIMITS)["spec"]
    taken: dict[str, list[float]] = {"sandboxed": [], "plain": []}
    with watched(cluster, NAMESPACE) as watch:
        for number in range(rounds + 1):
            for kind, make in (("plain", plain), ("sandboxed", sandboxed)):
                taken[kind].append(seconds(cluster, watch, make(f"{kind}-{number}", spec, image)))
    cluster.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")
    return report({kind: each[1:] for kind, each in taken.items()})


def report(taken: dict[str, list[float]]) -> Json:
    """Medians, and what they come to."""
    medians = {kind: statistics.median(each) for kind, each in taken.items()}
    overhead = medians["sandboxed"] / medians["plain"] - 1
    return {
        "seconds": {kind: [round(each, 2) for each in several] for kind, several in taken.items()},
        "medians": {kind: round(each, 2) for kind, each in medians.items()},
        "overhead": round(overhead, 3),
        "goal": GOAL,
        "met": overhead <= GOAL["overhead_at_most"],
        "load_average": os.getloadavg()[0],
        "cores": len(os.sched_getaffinity(0)),
    }


@contextmanager
def node() -> Iterator[Cluster]:
    """That of MLWRIGHT_USE_CLUSTER (one of `make cluster-up`), or one of its own."""
    kubeconfig = given_cluster()
    if kubeconfig is not None:
        yield found(kubeconfig.resolve().parent)
        return
    with tempfile.TemporaryDirectory() as folder, running(Level.NODE, Path(folder)) as cluster:
        yield cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    image = sandbox_image.build(ROOT)
    with node() as cluster:
        cluster.load_image(image.archive)
        print(json.dumps(measure(cluster, image.name, arguments.rounds), indent=2))


if __name__ == "__main__":
    main()
