"""One API server: JSON requests through kubernetes.aio, with a time limit each, counted, failures as ApiFailure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from mlwright_operator.errors import ApiFailure, ConfigError

REQUEST_SECONDS = 20.0
APPLY = "application/apply-patch+yaml"
_METHODS = {
    "get": "GET",
    "list": "GET",
    "create": "POST",
    "update": "PUT",
    "apply": "PATCH",
    "delete": "DELETE",
}


async def configured(kubeconfig: str | None) -> Configuration:
    """How to reach the API server: from the file, else the pod's service account, else the usual kubeconfig.

    Raises ConfigError where none of them is there.
    """
    configuration = Configuration()
    try:
        if kubeconfig is None:
            try:
                load_incluster_config(client_configuration=configuration)
            except ConfigException:
                await load_kube_config(client_configuration=configuration)
        else:
            await load_kube_config(config_file=kubeconfig, client_configuration=configuration)
    except (ConfigException, OSError) as error:
        where = kubeconfig or "neither a service account nor $KUBECONFIG or ~/.kube/config"
        raise ConfigError(f"no way to an API server ({where}): {error}; see --kubeconfig") from error
    return configuration


class Api:
    """Sends requests and counts them by Kubernetes' verb and HTTP code (0: no answer)."""

    def __init__(self, client: ApiClient, *, count: Callable[[str, int], None]) -> None:
        self._client = client
        self._count = count

    async def request(
        self,
        verb: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> dict[str, Any]:
        """The answer's JSON object. Raises ApiFailure, also where the server does not answer within `seconds`."""
        url = self._client.configuration.host + path + (f"?{urlencode(query)}" if query else "")
        try:
            status, headers, raw = await self._send(verb, url, body, seconds)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._count(verb, 0)
            raise ApiFailure(f"{verb} {path}: {_no_answer(error)}", status=0) from error
        self._count(verb, status)
        if status >= 300:
            raise failure(f"{verb} {path}", status, raw, headers.get("Retry-After"))
        return _object(f"{verb} {path}", status, raw)

    async def _send(
        self, verb: str, url: str, body: Mapping[str, Any] | None, seconds: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers: dict[str, str] = {"Accept": "application/json", **self._client.default_headers}
        headers["Content-Type"] = APPLY if verb == "apply" else "application/json"
        await self._client.update_params_for_auth(headers, None, ["BearerToken"], url, _METHODS[verb], body)
        timeout = aiohttp.ClientTimeout(total=min(seconds, REQUEST_SECONDS))
        response = await self._client.rest_client.request(
            _METHODS[verb], url, headers=headers, body=body, _request_timeout=timeout
        )
        return response.status, response.headers, await response.read()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _no_answer(error: Exception) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__


def _object(what: str, status: int, raw: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(raw)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        # A proxy's page, or an answer cut short: we cannot know what was done.
        raise ApiFailure(f"{what}: code {status} with something else than a JSON object", status=0)
    return parsed


def failure(what: str, status: int, raw: bytes, retry_after: str | None) -> ApiFailure:
    """An ApiFailure from an answer: the Status object's words where there is one, else the first of the body."""
    try:
        parsed = json.loads(raw)
    except ValueError:
        parsed = None
    said: Mapping[str, Any] = parsed if isinstance(parsed, dict) else {}
    message = str(said.get("message") or raw[:200].decode(errors="replace") or "no explanation")
    return ApiFailure(
        f"{what}: {status} {message}",
        status=status,
        reason=_reason(said),
        retry_after=_seconds(retry_after),
    )


def _reason(said: Mapping[str, Any]) -> str:
    details = said.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == "NamespaceTerminating":
            return "NamespaceTerminating"
    return str(said.get("reason") or "")


def _seconds(text: str | None) -> float | None:
    """Of a Retry-After header; API servers send whole seconds."""
    return float(text) if text is not None and text.isdigit() else None
