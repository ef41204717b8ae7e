"""A plain HTTP client for a real API server, which shows its answers as they are."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from mlwright_cluster.cluster import Cluster

API = "/apis/mlwright.dev/v1alpha1"
CRDS = Path(__file__).parents[2] / "crds"


@dataclass(frozen=True)
class Answer:
    """What an API server said."""

    code: int
    body: Mapping[str, Any]

    @property
    def causes(self) -> tuple[tuple[str, str], ...]:
        """Field and message of each refusal; a message without a field where there is no more."""
        found = [
            (cause.get("field", ""), cause["message"])
            for cause in self.body.get("details", {}).get("causes", ())
        ]
        return tuple(found) or (("", self.body.get("message", "")),)


@dataclass(frozen=True)
class ApiServer:
    """Requests as the administrator, or in the name of a user (whose groups the server knows)."""

    url: str
    token: str
    ca: Path
    user: str | None = None

    def impersonating(self, user: str) -> ApiServer:
        """The same server, asked by somebody else."""
        return replace(self, user=user)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content: str = "application/json",
        **query: str,
    ) -> Answer:
        """One request; an error of the server is an answer like any other."""
        request = urllib.request.Request(
            f"{self.url}{path}?{urlencode(query)}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": content},
            method=method,
        )
        if self.user is not None:
            request.add_header("Impersonate-User", self.user)
        try:
            with urllib.request.urlopen(
                request, context=ssl.create_default_context(cafile=str(self.ca)), timeout=30
            ) as response:
                return Answer(response.status, json.load(response))
        except urllib.error.HTTPError as error:
            return Answer(error.code, json.load(error))


def with_crds(cluster: Cluster) -> ApiServer:
    """The cluster's API server, serving our kinds: applied as a person does, so what kubectl notes of them fits."""
    cluster.kubectl("apply", "-f", str(CRDS))
    names = [f"crd/{path.stem}.mlwright.dev" for path in CRDS.glob("*.yaml")]
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    return ApiServer(cluster.url, cluster.token, cluster.ca)
