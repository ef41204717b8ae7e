"""The termination message: whatever a script prints, at most 4,000 bytes of JSON that say what it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_api.results import (
    MILESTONES,
    OUTPUT_TAIL_BYTES,
    RUNNER_MESSAGE_BYTES,
    Limit,
    Receipt,
    ReceiptCheck,
    RunnerResult,
    Unfinished,
    read_runner_result,
)
from mlwright_sandbox import message
from mlwright_sandbox.message import MessageFile, Progress, encoded, failed
from mlwright_sandbox.runner import Lines, Tail

NAMES = [
    *(
        "ApiServerUnreachable",
        "MetadataUnreachable",
        "AnswersAbsent",
        "ControlUnreachable",
        "OutsideReadOnly",
    ),
    *(
        "SecretsUnreadable",
        "NoNetworkSockets",
        "NoTracing",
        "NoMounts",
        "NoUserNamespaces",
        "NoSignalsOutside",
    ),
]
TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from('\x00\x1b"\\\n€😀'))


def receipt(detail: str = "Operation not permitted") -> Receipt:
    checks = [ReceiptCheck(name=name, unlocked=True, locked=True, detail=detail) for name in NAMES]
    return Receipt(backend="Pod", user_namespace=True, seccomp=True, landlock_abi=7, checks=checks)


def result(**changes: Any) -> RunnerResult:
    values: dict[str, Any] = {"exit_code": 1, "execution_seconds": 1.25, "isolation": receipt(), **changes}
    return RunnerResult(**values)


def tail_of(text: str) -> str:
    tail = Tail()
    tail.add(text.encode())
    return tail.text()


def test_a_message_that_fits_is_whole() -> None:
    said = result(output_tail="x" * OUTPUT_TAIL_BYTES, milestones=list(MILESTONES), error="ValueError: no")
    assert read_runner_result(encoded(said).decode()) == said


@given(TEXT, TEXT.map(lambda text: text[:512]), st.lists(st.sampled_from(MILESTONES), max_size=7))
def test_a_message_is_bounded_and_only_its_tail_is_cut(
    output: str, error: str, milestones: list[Any]
) -> None:
    said = result(output_tail=tail_of(output * 50), error=error, milestones=milestones, limit=Limit.DISK)
    content = encoded(said)
    assert len(content) <= RUNNER_MESSAGE_BYTES
    read = read_runner_result(content.decode())
    assert isinstance(read, RunnerResult)
    assert said.output_tail.endswith(read.output_tail)
    assert (read.milestones, read.limit, read.exit_code) == (milestones, Limit.DISK, 1)
    if read.isolation == said.isolation and len(encoded(said.model_copy(update={"output_tail": ""}))) < 4000:
        assert read.error == error


@given(st.sampled_from(["\x00", '"', "😀", "a\x1b[0m"]))
def test_as_much_of_the_tail_is_kept_as_fits(unit: str) -> None:
    said = result(output_tail=tail_of(unit * 4000))
    read = read_runner_result(encoded(said).decode())
    assert isinstance(read, RunnerResult)
    one_more = said.model_copy(update={"output_tail": said.output_tail[-len(read.output_tail) - 1 :]})
    whole = len(one_more.model_dump_json(by_alias=True, exclude_defaults=True).encode())
    assert read.output_tail == said.output_tail or whole > RUNNER_MESSAGE_BYTES


def test_even_the_worst_of_everything_keeps_what_decides() -> None:
    worst = result(
        output_tail="\x00" * OUTPUT_TAIL_BYTES,
        error="\x1b😀" * 256,
        milestones=list(MILESTONES),
        isolation=receipt("\x1b" * 256),
    )
    content = encoded(worst)
    assert len(content) <= RUNNER_MESSAGE_BYTES
    read = read_runner_result(content.decode())
    assert isinstance(read, RunnerResult)
    assert read.milestones == list(MILESTONES)
    assert [check.name for check in read.isolation.checks] == NAMES
    assert read.isolation.isolated
    assert read.error


@given(TEXT, TEXT.map(lambda text: text[:512]))
def test_an_unfinished_message_is_bounded_too(output: str, failure: str) -> None:
    said = Unfinished(unfinished=True, failure=failure, output_tail=tail_of(output * 50))
    content = encoded(said)
    assert len(content) <= RUNNER_MESSAGE_BYTES
    assert isinstance(read_runner_result(content.decode()), Unfinished)


def test_a_reason_is_one_line_of_bounded_length() -> None:
    said = failed("runner: a\nb\x1b" + 2000 * "x")
    assert said.failure.startswith("runner: a b")
    assert len(said.failure) == 512


class TestMessageFile:
    def test_a_shorter_message_replaces_a_longer_one(self, tmp_path: Path) -> None:
        path = tmp_path / "message"
        file = MessageFile(path)
        file.write(Unfinished(unfinished=True, output_tail="x" * 500))
        file.write(Unfinished(unfinished=True, output_tail="y"))
        assert path.read_bytes() == encoded(Unfinished(unfinished=True, output_tail="y"))

    def test_a_reader_between_two_calls_finds_a_whole_message(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Killed after any call: what lies there says either the old or the new."""
        path = tmp_path / "message"
        file = MessageFile(path)
        long = Unfinished(unfinished=True, output_tail="x" * 500)
        short = result(output_tail="")
        file.write(long)
        seen = []
        truncate = os.ftruncate

        def looking(descriptor: int, length: int) -> None:
            seen.append(read_runner_result(path.read_text()))
            truncate(descriptor, length)

        monkeypatch.setattr(message.os, "ftruncate", looking)
        file.write(short)
        file.write(long)
        assert seen == [short, long]

    def test_a_file_that_is_there_keeps_its_mode(self, tmp_path: Path) -> None:
        """A kubelet's is mode 0666."""
        path = tmp_path / "message"
        path.touch()
        path.chmod(0o666)
        MessageFile(path).write(failed("no"))
        assert path.stat().st_mode & 0o777 == 0o666


class Watched:
    """As much of a runner's watch as progress is told from."""

    def __init__(self) -> None:
        self.lines, self.tail = Lines(b"nonce"), Tail()

    def print(self, text: str) -> None:
        self.tail.add(text.encode())

    def mark(self, index: int) -> None:
        self.lines.add(b"noncem%d\n" % index)


class TestProgress:
    @pytest.fixture
    def now(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        clock = [100.0]
        monkeypatch.setattr(message.time, "monotonic", lambda: clock[0])
        return clock

    def test_a_milestone_is_told_at_once_and_once(self, now: list[float]) -> None:
        told: list[Unfinished] = []
        progress, watch = Progress(told.append), Watched()
        progress(watch)  # type: ignore[arg-type]  # the part that is looked at
        assert told == []
        watch.mark(0)
        for _ in range(3):
            progress(watch)  # type: ignore[arg-type]  # as above
        assert [each.milestones for each in told] == [["imports"]]

    def test_what_is_printed_is_told_every_second_at_most(self, now: list[float]) -> None:
        told: list[Unfinished] = []
        progress, watch = Progress(told.append), Watched()
        for tick in range(100):
            now[0] = 100 + tick / 20
            watch.print(f"{tick}\n")
            progress(watch)  # type: ignore[arg-type]  # as above
        assert 3 <= len(told) <= 5
        assert told[-1].output_tail.startswith("0\n1\n")

    def test_silence_is_not_told_again(self, now: list[float]) -> None:
        told: list[Unfinished] = []
        progress, watch = Progress(told.append), Watched()
        watch.print("once\n")
        for tick in range(10):
            now[0] = 100 + 2.0 * tick
            progress(watch)  # type: ignore[arg-type]  # as above
        assert [each.output_tail for each in told] == ["once\n"]


def test_the_message_is_what_the_api_calls_it() -> None:
    assert json.loads(encoded(Unfinished(unfinished=True, milestones=["imports"]))) == {
        "unfinished": True,
        "milestones": ["imports"],
    }
