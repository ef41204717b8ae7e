"""Messages between a backend, its fork servers and their runners: length-prefixed JSON, with descriptors attached."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mlwright_sandbox.errors import WireError

_LENGTH = struct.Struct("!I")
_MOST_DESCRIPTORS = 16
MESSAGE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Probe:
    """Asks a child to try what it must not be able to do, instead of running a script."""

    locked: bool
    answers: tuple[str, ...] = ()
    network: tuple[tuple[str, int], ...] = ()
    hidden: tuple[str, ...] = ()
    """Files and folders between agent and grader: not to be read, and not to be written."""


@dataclass(frozen=True)
class Job:
    """One script (or probe) to run once: everything that the runner has to know."""

    script: str
    seed: int
    timeout_seconds: float
    memory_bytes: int
    work_bytes: int
    submission: str = "submission.csv"
    """The file whose writing is a milestone."""
    entrypoint: str = "script.py"
    """The name that the script gets in the work folder."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Further files of the work folder, by name."""
    instrument: bool = True
    poll_memory: bool = True
    """Whether no control group holds the memory limit, so that the runner has to look."""
    poll_processes: bool = True
    """Whether no control group holds the process limit."""
    probe: Probe | None = None

    def to_message(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Job:
        values = dict(message)
        if (probe := values.pop("probe")) is not None:
            network = tuple((host, port) for host, port in probe["network"])
            paths = {name: tuple(probe[name]) for name in ("answers", "hidden")}
            values["probe"] = Probe(locked=probe["locked"], network=network, **paths)
        return cls(**values)


@dataclass(frozen=True)
class Report:
    """What a runner saw, before anybody judges it; `failure` says that the sandbox, not the script, broke."""

    failure: str = ""
    cancelled: bool = False
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    limit: str | None = None
    error: str = ""
    milestones: list[int] = field(default_factory=list)
    output_tail: str = ""
    started_at: float = 0.0
    """Unix time of the script's start."""
    started_monotonic: float = 0.0
    """The same on this machine's monotonic clock."""
    execution_seconds: float = 0.0
    cpu_seconds: float = 0.0
    probed: dict[str, str | None] = field(default_factory=dict)
    """By check: how the attempt was refused; None where it succeeded."""

    def to_message(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Report:
        return cls(**message)


def send(channel: socket.socket, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one message; the descriptors stay open here. Raises OSError when the other end has gone."""
    body = json.dumps(message).encode()
    header = _LENGTH.pack(len(body))
    if descriptors:
        socket.send_fds(channel, [header], list(descriptors))
    else:
        channel.sendall(header)
    channel.sendall(body)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and its descriptors; None at the end of the stream. Raises WireError on anything else."""
    header, descriptors, _, _ = socket.recv_fds(channel, _LENGTH.size, _MOST_DESCRIPTORS)
    try:
        if not header:
            return None
        header += _exactly(channel, _LENGTH.size - len(header))
        (length,) = _LENGTH.unpack(header)
        if length > MESSAGE_BYTES:
            raise WireError(f"a message of {length} bytes")
        message = json.loads(_exactly(channel, length))
    except BaseException:
        close_all(descriptors)
        raise
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return message, descriptors


def close_all(descriptors: Sequence[int]) -> None:
    """Close descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise WireError("the other end went away in the middle of a message")
        parts += part
    return bytes(parts)
