"""The receipt: what a child of a sandbox tried and could not do, each attempt made for real."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from mlwright_api.results import Receipt, ReceiptCheck

from mlwright_sandbox import kernel
from mlwright_sandbox.wire import Probe

METADATA_ADDRESS = ("169.254.169.254", 80)
"""The link-local address at which clouds hand out credentials."""
_API_SERVER = "10.96.0.1"
"""The API server's usual service address, for a machine that says nothing of a cluster."""
_CONNECT_SECONDS = 0.25
_OUTSIDE = ("/", "/usr", "/etc", "/var/tmp", "/root", "/home")
_DETAIL_CHARACTERS = 256

Attempt = Callable[[], None]
"""Tries something forbidden: returns if it succeeded, raises OSError if not."""


def network_targets(environment: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """(API server, metadata address)."""
    host = environment.get("KUBERNETES_SERVICE_HOST", _API_SERVER)
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    return ((host, int(port) if port.isdigit() else 443), METADATA_ADDRESS)


def attempts(probe: Probe) -> dict[str, str | None]:
    """Try everything; by check, how it was refused, or None where it succeeded.

    Without the lock only harmless attempts are made: unlocked may mean that nothing at all holds them.
    """
    return {name: _refusal(attempt) for name, attempt in _all_attempts(probe)}


def in_user_namespace(uid_map: str) -> bool:
    """Whether /proc/self/uid_map is of a user namespace other than the machine's own, which maps everybody."""
    return uid_map.split() != ["0", "0", str(2**32 - 1)]


def _refusal(attempt: Attempt) -> str | None:
    try:
        attempt()
    except OSError as error:
        return (error.strerror or str(error))[:_DETAIL_CHARACTERS]
    return None


def _all_attempts(probe: Probe) -> Iterator[tuple[str, Attempt]]:
    api_server, metadata = probe.network
    yield "ApiServerUnreachable", lambda: _connect(api_server)
    yield "MetadataUnreachable", lambda: _connect(metadata)
    yield "AnswersAbsent", lambda: _read_any(probe.answers)
    if probe.hidden:
        yield "ControlUnreachable", lambda: _touch_any(probe.hidden)
    yield "OutsideReadOnly", _write_outside
    yield "SecretsUnreadable", lambda: _read_any(("/etc/shadow", "/proc/1/environ", "/proc/1/mem"))
    if probe.locked:
        yield "NoNetworkSockets", _make_socket
        yield "NoTracing", lambda: kernel.ptrace_attach(os.getppid())
        yield "NoMounts", _mount
        yield "NoUserNamespaces", lambda: kernel.unshare(kernel.CLONE_NEWUSER)
        yield "NoSignalsOutside", lambda: os.kill(os.getppid(), 0)


def _connect(address: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(_CONNECT_SECONDS)
        client.connect(address)


def _make_socket() -> None:
    for family, kind in (
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_INET6, socket.SOCK_STREAM),
        (getattr(socket, "AF_NETLINK", socket.AF_INET), socket.SOCK_RAW),
    ):
        with suppress(OSError):
            socket.socket(family, kind).close()
            return
    raise PermissionError(1, "Operation not permitted")


def _read_any(paths: tuple[str, ...]) -> None:
    refused: OSError = FileNotFoundError(2, "nothing to read")
    for path in paths:
        try:
            if Path(path).is_dir():
                list(Path(path).iterdir())
            else:
                with Path(path).open("rb") as file:
                    file.read(1)
        except OSError as error:
            refused = error
        else:
            return
    raise refused


def _touch_any(paths: tuple[str, ...]) -> None:
    """Read one, or open one for writing, or make a file in one; nothing is changed by that."""
    attempts: list[Attempt] = [lambda: _read_any(paths), *(partial(_open_to_write, path) for path in paths)]
    refused: OSError = PermissionError(13, "nothing to touch")
    for attempt in attempts:
        try:
            attempt()
        except OSError as error:
            refused = error
        else:
            return
    raise refused


def _open_to_write(path: str) -> None:
    if Path(path).is_dir():
        tempfile.TemporaryFile(dir=path).close()
    else:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))


def _write_outside() -> None:
    refused: OSError = PermissionError(13, "nowhere to write")
    for folder in (*_OUTSIDE, Path(__file__).parent, Path(os.__file__).parent):
        try:
            with tempfile.TemporaryFile(dir=folder):
                return
        except OSError as error:
            refused = error
    raise refused


def _mount() -> None:
    kernel.mount("tmpfs", tempfile.gettempdir(), "tmpfs", 0)


def make_receipt(
    backend: str,
    *,
    unlocked: Mapping[str, str | None],
    locked: Mapping[str, str | None],
    seccomp: bool,
    user_namespace: bool,
) -> Receipt:
    """The receipt of a backend from what its unlocked and its locked child reported."""
    checks = [
        ReceiptCheck(
            name=name,
            unlocked=unlocked[name] is not None if name in unlocked else None,
            locked=refusal is not None,
            detail=refusal or "succeeded",
        )
        for name, refusal in locked.items()
    ]
    return Receipt.model_validate(
        {
            "backend": backend,
            "userNamespace": user_namespace,
            "seccomp": seccomp,
            "landlockAbi": kernel.landlock_abi(),
            "checks": checks,
        }
    )
