"""The fork servers in use: one for every task, started when first needed, ended when broken or long unused."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from mlwright_sandbox.servers import ForkServer, Site

KEPT_SERVERS = 4
"""Each holds its libraries in memory; those at work are never ended."""


class Servers:
    """Shared by the threads of all slots, which are the ones that start servers (see ForkServer)."""

    def __init__(self, *, kept: int = KEPT_SERVERS) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._servers: dict[Site, ForkServer] = {}
        self._users: Counter[ForkServer] = Counter()

    @contextmanager
    def use(self, site: Site) -> Iterator[ForkServer]:
        """The server of a site, which is not ended meanwhile unless it broke."""
        server = self._acquire(site)
        try:
            yield server
        finally:
            with self._lock:
                self._users[server] -= 1

    def _acquire(self, site: Site) -> ForkServer:
        with self._lock:
            server = self._servers.pop(site, None)
            if server is not None and not server.alive:
                server.close()
                server = None
            if server is None:
                self._make_room()
                server = ForkServer(site)
            self._servers[site] = server  # the newest is last
            self._users[server] += 1
            return server

    def _make_room(self) -> None:
        unused = [site for site, server in self._servers.items() if not self._users[server]]
        for site in unused[: max(len(self._servers) - self._kept + 1, 0)]:
            self._servers.pop(site).close()

    def discard(self, server: ForkServer) -> None:
        """End a server that broke; the next use starts another."""
        with self._lock:
            if self._servers.get(server.site) is server:
                del self._servers[server.site]
        server.close()

    def close(self) -> None:
        """End all."""
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            server.close()
