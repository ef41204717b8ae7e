"""The HTTP server of probes and metrics: /healthz, /readyz, /metrics."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from mlwright_operator.edge.health import Verdict
from mlwright_operator.errors import ConfigError


class Probes:
    """Serves on one address until stopped."""

    def __init__(
        self, *, alive: Callable[[], Verdict], ready: Callable[[], Verdict], metrics: Callable[[], bytes]
    ) -> None:
        async def healthz(_: web.Request) -> web.Response:
            return _answer(alive())

        async def readyz(_: web.Request) -> web.Response:
            return _answer(ready())

        async def exposition(_: web.Request) -> web.Response:
            return web.Response(body=metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})

        app = web.Application()
        app.add_routes(
            [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", exposition)]
        )
        self.port = 0
        """Where it listens, once it does."""
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.2)

    async def start(self, *, host: str, port: int) -> int:
        """Listen; the port (asked for 0, one that was free). Raises ConfigError where the address is taken."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            raise ConfigError(f"--listen {host}:{port}: {error.strerror or error}") from error
        self.port = int(self._runner.addresses[0][1])
        return self.port

    async def stop(self) -> None:
        """Close the socket and what is connected."""
        await self._runner.cleanup()


def _answer(verdict: Verdict) -> web.Response:
    return web.Response(status=200 if verdict.ok else 503, text=f"{verdict.why}\n")
