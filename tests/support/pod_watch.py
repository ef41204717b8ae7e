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
from mlwright_cluster.programs import CONTROL_PLANE, require

Json = dict[str, Any]


class PodWatch:
    """What is known of pods, by the name of their Job."""

    def __init__(self) -> None:
        self._seen: defaultdict[str, list[Json]] = defaultdict(list)

    def states(self, job: str) -> list[Json]:
        """Of a Job's pod, oldest first."""
        return list(self._seen[job])

    def last(self, job: str) -> Json:
        """The newest state; empty where there is none as yet."""
        states = self._seen[job]
        return states[-1] if states else {}

    def hear(self, stream: IO[str]) -> None:
        """Read events until the stream ends."""
        decoder, text = json.JSONDecoder(), ""
        for line in stream:
            text += line
            if line != "}\n":  # kubectl indents: an event ends with a brace in the first column.
                continue
            event, _ = decoder.raw_decode(text)
            text = ""
            pod = event["object"]
            self._seen[pod["metadata"].get("labels", {}).get("job-name", "")].append(pod)


@contextmanager
def watched(cluster: Cluster, namespace: str) -> Iterator[PodWatch]:
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
