"""Fork servers are kept while they are used, ended when there are too many, and replaced when they die."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlwright_sandbox import pool
from mlwright_sandbox.pool import Servers
from mlwright_sandbox.servers import Site


class FakeServer:
    """In the place of a ForkServer."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.alive = True

    def close(self) -> None:
        self.alive = False


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ForkServer", FakeServer)


def site(name: str) -> Site:
    return Site("Namespaces", Path("/tasks", name))


def test_the_same_site_has_the_same_server() -> None:
    servers = Servers()
    with servers.use(site("a")) as first, servers.use(site("a")) as second:
        assert first is second
    with servers.use(site("a")) as third:
        assert third is first


def test_sites_with_other_answers_are_other_sites() -> None:
    servers = Servers()
    other = Site("Namespaces", Path("/tasks/a"), (Path("/answers"),))
    with servers.use(site("a")) as first, servers.use(other) as second:
        assert first is not second


def test_the_longest_unused_server_makes_room() -> None:
    servers = Servers(kept=2)
    made = {}
    for name in ("a", "b", "a", "c"):
        with servers.use(site(name)) as server:
            made[name] = server
    assert [made[name].alive for name in ("a", "b", "c")] == [True, False, True]


def test_a_server_at_work_is_never_ended_for_room() -> None:
    servers = Servers(kept=1)
    with servers.use(site("a")) as busy, servers.use(site("b")) as other:
        assert busy.alive
        assert other.alive


def test_a_dead_server_is_replaced() -> None:
    servers = Servers()
    with servers.use(site("a")) as first:
        pass
    first.alive = False  # type: ignore[misc]  # of the fake
    with servers.use(site("a")) as second:
        assert second is not first


def test_a_discarded_server_is_closed_and_replaced() -> None:
    servers = Servers()
    with servers.use(site("a")) as first:
        servers.discard(first)
        assert not first.alive
    with servers.use(site("a")) as second:
        assert second is not first
        servers.discard(first)
    with servers.use(site("a")) as third:
        assert third is second


def test_closing_ends_all() -> None:
    servers = Servers()
    made = []
    for name in ("a", "b"):
        with servers.use(site(name)) as server:
            made.append(server)
    servers.close()
    assert not any(server.alive for server in made)
