"""What an answer that is no success means, and how the API server is found."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from mlwright_operator.edge.connection import configured, failure
from mlwright_operator.errors import ApiFailure, ConfigError


def said(code: int, **fields: object) -> ApiFailure:
    return failure("apply /x", code, json.dumps({"kind": "Status", **fields}).encode(), None)


def test_a_failure_has_the_status_words() -> None:
    found = said(422, reason="Invalid", message="spec.template: field is immutable")
    assert (found.status, found.reason) == (422, "Invalid")
    assert "field is immutable" in str(found)
    assert "apply /x" in str(found)


def test_a_terminating_namespace_is_told_from_other_refusals() -> None:
    causes = [{"reason": "NamespaceTerminating", "message": "namespace lab is being terminated"}]
    assert said(403, reason="Forbidden", details={"causes": causes}).reason == "NamespaceTerminating"
    assert said(403, reason="Forbidden", details={"causes": [{"reason": "Other"}]}).reason == "Forbidden"


@pytest.mark.parametrize(
    "raw", [b"", b"<html>bad gateway</html>", b"[1]", b'{"details": 3}', b'{"details": {"causes": [1]}}']
)
def test_an_answer_that_is_no_status_is_a_failure_all_the_same(raw: bytes) -> None:
    found = failure("list /x", 502, raw, None)
    assert found.status == 502
    assert found.unavailable


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), (None, None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
)
def test_how_long_the_server_asks_us_to_wait_is_kept(header: str | None, seconds: float | None) -> None:
    assert failure("list /x", 429, b"{}", header).retry_after == seconds


@pytest.mark.parametrize(
    ("status", "gone", "conflict", "refused", "unavailable"),
    [
        (0, False, False, False, True),
        (400, False, False, True, False),
        (403, False, False, True, False),
        (404, True, False, False, False),
        (409, False, True, False, False),
        (422, False, False, True, False),
        (429, False, False, False, True),
        (500, False, False, False, True),
        (504, False, False, False, True),
    ],
)
def test_every_code_is_of_one_class(
    status: int, gone: bool, conflict: bool, refused: bool, unavailable: bool
) -> None:
    found = ApiFailure("x", status=status)
    assert (found.gone, found.conflict, found.refused, found.unavailable) == (
        gone,
        conflict,
        refused,
        unavailable,
    )


def test_a_kubeconfig_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--kubeconfig"):
        asyncio.run(configured(str(tmp_path / "missing")))


def test_a_kubeconfig_says_where_the_server_is(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: one, user: me}}]
clusters: [{name: one, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: me, user: {token: abc}}]
"""
    )
    configuration = asyncio.run(configured(str(path)))
    assert configuration.host == "https://192.0.2.1:6443"
