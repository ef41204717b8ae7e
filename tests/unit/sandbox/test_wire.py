"""Messages arrive whole, with their descriptors, or not at all."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_sandbox import wire
from mlwright_sandbox.errors import WireError
from mlwright_sandbox.wire import Job, Probe, Report

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def test_a_message_arrives_as_it_was_sent(pair: Pair) -> None:
    wire.send(pair[0], {"text": "é\ud800\0", "list": [1, None]})
    assert wire.receive(pair[1]) == ({"text": "é\ud800\0", "list": [1, None]}, [])


def test_messages_arrive_in_order(pair: Pair) -> None:
    for number in range(5):
        wire.send(pair[0], {"number": number})
    received = [wire.receive(pair[1]) for _ in range(5)]
    assert received == [({"number": number}, []) for number in range(5)]


def test_a_descriptor_arrives_open_and_is_closed_on_exec(pair: Pair) -> None:
    reading, writing = os.pipe()
    wire.send(pair[0], {}, [writing])
    os.close(writing)
    received = wire.receive(pair[1])
    assert received is not None
    (arrived,) = received[1]
    assert not os.get_inheritable(arrived)
    os.write(arrived, b"x")
    assert os.read(reading, 1) == b"x"
    wire.close_all([arrived, reading])


def test_the_end_of_the_stream_is_none(pair: Pair) -> None:
    pair[0].close()
    assert wire.receive(pair[1]) is None


def test_half_a_message_is_an_error(pair: Pair) -> None:
    pair[0].sendall((10).to_bytes(4, "big") + b"{")
    pair[0].close()
    with pytest.raises(WireError, match="middle of a message"):
        wire.receive(pair[1])


def test_a_message_of_gigabytes_is_refused_before_it_is_read(pair: Pair) -> None:
    pair[0].sendall((2**32 - 1).to_bytes(4, "big"))
    with pytest.raises(WireError, match="4294967295 bytes"):
        wire.receive(pair[1])


@given(
    script=st.text(max_size=200),
    seed=st.integers(0, 2**63),
    probe=st.none()
    | st.builds(
        Probe,
        locked=st.booleans(),
        answers=st.lists(st.text(max_size=5), max_size=2).map(tuple),
        network=st.lists(st.tuples(st.text(max_size=5), st.integers(0, 65535)), max_size=2).map(tuple),
    ),
)
def test_a_job_survives_the_way(script: str, seed: int, probe: Probe | None) -> None:
    job = Job(script, seed, 1.5, 10, 20, probe=probe)
    left, right = socket.socketpair()
    with left, right:
        wire.send(left, job.to_message())
        received = wire.receive(right)
    assert received is not None
    assert Job.from_message(received[0]) == job


def test_a_report_survives_the_way(pair: Pair) -> None:
    report = Report(exit_code=1, milestones=[0, 2], output_tail="x", probed={"a": None, "b": "refused"})
    wire.send(pair[0], report.to_message())
    received = wire.receive(pair[1])
    assert received is not None
    assert Report.from_message(received[0]) == report
