"""A clock that tests turn by hand, and an API server that is a list of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from mlwright_operator.errors import ApiFailure

Answer = dict[str, Any] | ApiFailure


class Clock:
    """Seconds that only a test (or a sleep) moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@dataclass
class Request:
    verb: str
    path: str
    query: Mapping[str, str] | None
    body: Mapping[str, Any] | None
    seconds: float


@dataclass
class FakeApi:
    """Answers requests in turn, or by a function; remembers them."""

    answers: list[Answer] = field(default_factory=list)
    respond: Callable[[Request], Answer] | None = None
    requests: list[Request] = field(default_factory=list)

    async def request(
        self,
        verb: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        seconds: float = 20,
    ) -> dict[str, Any]:
        request = Request(verb, path, dict(query) if query else None, body, seconds)
        self.requests.append(request)
        await asyncio.sleep(0)
        answer = self.respond(request) if self.respond is not None else self.answers.pop(0)
        if isinstance(answer, ApiFailure):
            raise answer
        return answer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def failing() -> Callable[..., ApiFailure]:
    """An ApiFailure with a code."""

    def make(status: int, reason: str = "") -> ApiFailure:
        return ApiFailure(f"failed with {status}", status=status, reason=reason)

    return make
