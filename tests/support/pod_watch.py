"""Every state that pods of a namespace pass through, as an API server tells it: also the last one before they go."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from mlwright_cluster.cluster import Cluster
from mlwright_cluster.given import GivenCluster
from mlwright_cluster.programs import CONTROL_PLANE, require

Json = dict[str, Any]


class PodWatch:
    """What is known of pods, by the name of their Job."""

    def __init__(self) -> None:
        self._seen: defaultdict[str, list[Json]] = defaultdict(list)

    def states(self, job: str) -> list[Json]:
        """Of a Job's pod, oldest first."""
        return list(self._seen[job])

    def jobs(self) -> list[str]:
        """Whose pods have been seen."""
        return [job for job, states in list(self._seen.items()) if states]

    def running(self) -> list[str]:
        """Jobs whose pod runs, with all of its containers ready."""
        return [job for job in self.jobs() if _runs(self.last(job))]

    def last(self, job: str) -> Json:
        """The newest state; empty where there is none as yet."""
        states = self._seen[job]
        return states[-1] if states else {}

    def hear(self, stream: IO[str]) -> None:
        """Read events, one a line, until the stream ends."""
        for line in stream:
            pod = json.loads(line)["object"]
            self._seen[pod["metadata"].get("labels", {}).get("job-name", "")].append(pod)


def _runs(pod: Json) -> bool:
    statuses = pod["status"].get("containerStatuses", [])
    return bool(statuses) and all(each["ready"] for each in statuses)


@contextmanager
def watched(cluster: Cluster | GivenCluster, namespace: str) -> Iterator[PodWatch]:
    """Watch the pods of a namespace."""
    command = [str(require(CONTROL_PLANE)["kubectl"]), f"--kubeconfig={cluster.kubeconfig}", "get", "pods"]
    command += ["-n", namespace, "--watch", "--output-watch-events", "--output=json"]
    watch = PodWatch()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=watch.hear, args=[process.stdout], daemon=True)
        reader.start()
        try:
            yield watch
        finally:
            process.terminate()
            reader.join()
