"""The real API server behind the port: plain requests through the kubernetes package's asynchronous client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio import client
from mlwright_api.base import GROUP

from mlwright_trainer.cluster.errors import ApiFailure, ClusterRefused
from mlwright_trainer.cluster.kubeconfig import Login, Place, log_in
from mlwright_trainer.cluster.port import Event, Listed, Object

REQUEST_SECONDS = 30.0
"""One request, from connecting to the last byte."""
WATCH_GRACE_SECONDS = 30.0
"""Beyond the time that the server was asked to end a watch at: the connection is dead."""
PAGE = 200
"""Objects in one answer of a list."""
VERSION = "v1alpha1"
Query = Mapping[str, str]


class KubeRollouts:
    """`RolloutApi` of one namespace of the cluster that a kubeconfig names. Made, and used, in one event loop."""

    def __init__(self, place: Place, login: Login) -> None:
        self._place = place
        self._login = login
        self._client = client.ApiClient(login.configuration)

    @classmethod
    async def open(cls, place: Place) -> KubeRollouts:
        """Read the kubeconfig; sends no request. Errors: ClusterRefused."""
        return cls(place, await log_in(place))

    @property
    def namespace(self) -> str:
        return self._login.namespace

    @property
    def place(self) -> str:
        return f"namespace {self.namespace} at {self._login.described}"

    async def create(self, body: Object) -> Object:
        return await self._json("POST", self._path("rollouts"), body=body)

    async def get(self, name: str) -> Object:
        return await self._json("GET", self._path("rollouts", name))

    async def delete(self, name: str, *, uid: str, version: str | None = None) -> None:
        preconditions = {"uid": uid} | ({} if version is None else {"resourceVersion": version})
        options = {"propagationPolicy": "Background", "preconditions": preconditions}
        await self._json("DELETE", self._path("rollouts", name), body=options)

    async def list(self, selector: str) -> Listed:
        query = {"labelSelector": selector, "limit": str(PAGE)}
        objects: list[Object] = []
        while True:
            page = await self._json("GET", self._path("rollouts"), query=query)
            objects += page.get("items") or []
            metadata = page["metadata"]
            if not metadata.get("continue"):
                return Listed(objects, metadata["resourceVersion"])
            query = query | {"continue": metadata["continue"]}

    async def watch(self, selector: str, *, version: str, seconds: float) -> AsyncIterator[Event]:
        query = {
            "labelSelector": selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(seconds)),
        }
        try:
            response = await self._send(
                "GET", self._path("rollouts"), query=query, seconds=seconds + WATCH_GRACE_SECONDS
            )
            try:
                while line := await response.content.readline():
                    yield _event(line)
            finally:
                response.close()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise _unanswered(error) from error

    async def task(self, name: str) -> Object:
        """An MLTask. Errors: ApiFailure."""
        return await self._json("GET", self._path("mltasks", name))

    async def has_namespace(self) -> bool:
        """False where the server says that there is none; who may not ask gets True."""
        try:
            await self._json("GET", f"/api/v1/namespaces/{quote(self.namespace)}")
        except ApiFailure as failure:
            return not failure.gone
        return True

    async def close(self) -> None:
        await self._client.close()

    def _path(self, plural: str, name: str | None = None) -> str:
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{quote(self.namespace, safe='')}/{plural}"
        return path if name is None else f"{path}/{quote(name, safe='')}"

    async def _json(
        self, method: str, path: str, *, query: Query | None = None, body: Object | None = None
    ) -> dict[str, Any]:
        try:
            response = await self._send(method, path, query=query, body=body)
            said: dict[str, Any] = json.loads(await response.read())
            return said
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise _unanswered(error) from error

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Object | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> aiohttp.ClientResponse:
        """A response with a good status; logs in once more where the credentials have run out."""
        url = path + (f"?{urlencode(query)}" if query else "")
        response = await self._send_once(method, url, body, seconds)
        if response.status == HTTPStatus.UNAUTHORIZED:
            response.release()
            await self._log_in_again()
            response = await self._send_once(method, url, body, seconds)
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _failure(response.status, response.headers, await response.read())
        return response

    async def _send_once(
        self, method: str, url: str, body: Object | None, seconds: float
    ) -> aiohttp.ClientResponse:
        prepared = await self._client.param_serialize(
            method,
            url,
            body=body,
            header_params={"Accept": "application/json", "Content-Type": "application/json"},
            auth_settings=["BearerToken"],
        )
        answer = await self._client.call_api(*prepared, _request_timeout=aiohttp.ClientTimeout(total=seconds))
        response: aiohttp.ClientResponse = answer.response
        return response

    async def _log_in_again(self) -> None:
        try:
            self._login = await log_in(self._place)
        except ClusterRefused as error:
            raise ApiFailure(str(error), status=HTTPStatus.UNAUTHORIZED) from error
        before, self._client = self._client, client.ApiClient(self._login.configuration)
        asyncio.get_running_loop().call_later(REQUEST_SECONDS, lambda: _close_later(before))


def _close_later(before: Any) -> None:
    task = asyncio.ensure_future(before.close())
    task.add_done_callback(lambda done: done.exception())


def _event(line: bytes) -> Event:
    """One line of a watch. Errors: ApiFailure for ERROR, ValueError for what is no event."""
    raw = json.loads(line)
    if raw["type"] == "ERROR":
        raise _status_failure(raw["object"])
    return Event(raw["type"], raw["object"])


def _unanswered(error: BaseException) -> ApiFailure:
    said = " ".join(str(error).split()) or type(error).__name__
    return ApiFailure(said, status=0)


def _failure(status: int, headers: Mapping[str, str], content: bytes) -> ApiFailure:
    try:
        said = json.loads(content)
    except ValueError:
        said = None
    if not isinstance(said, dict) or said.get("kind") != "Status":
        said = {"message": content.decode("utf-8", "replace").strip()[:500]}
    after = headers.get("Retry-After", "")
    return _status_failure({"code": status, **said}, retry_after=float(after) if after.isdigit() else None)


def _status_failure(status: Mapping[str, Any], *, retry_after: float | None = None) -> ApiFailure:
    code = int(status.get("code") or 0)
    message = str(status.get("message") or f"HTTP status {code}")
    return ApiFailure(message, status=code, reason=str(status.get("reason") or ""), retry_after=retry_after)
