"""Properties of `classify`: total, deterministic, and what no input can buy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mlwright_api.classify import AGENT, GRADER, ContainerStateTerminated, PodStatus, classify
from mlwright_api.mltask import Split, TaskLimits
from mlwright_api.results import (
    MILESTONES,
    GraderResult,
    Limit,
    Receipt,
    RunnerReport,
    RunnerResult,
    Unfinished,
    Unreadable,
    Verdict,
    read_runner_result,
)
from mlwright_api.rollout import Outcome

TEXTS = st.none() | st.text(max_size=20)
REASONS = TEXTS | st.sampled_from(
    [
        "OOMKilled",
        "Completed",
        "Error",
        "Evicted",
        "DeadlineExceeded",
        "ImagePullBackOff",
        "StartError",
        "Cancelled",
    ]
)
TIMES = st.none() | st.integers(0, 200).map(lambda s: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=s))
TERMINATED = st.builds(
    lambda **fields: ContainerStateTerminated(**fields),
    exit_code=st.sampled_from([0, 1, 137]),
    signal=st.none() | st.integers(0, 64),
    reason=REASONS,
    message=TEXTS,
    started_at=TIMES,
    finished_at=TIMES,
)
STATES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    TERMINATED.map(lambda ended: {"terminated": ended}),
    REASONS.map(lambda reason: {"waiting": {"reason": reason}}),
    st.just({"running": {}}),
    st.just({}),
)
CONTAINERS = st.builds(
    lambda name, state: {"name": name, "state": state}, st.sampled_from([AGENT, GRADER, "other"]), STATES
)
CONDITIONS = st.builds(
    lambda kind, status: {"type": kind, "status": status},
    st.sampled_from(["DisruptionTarget", "Ready"]),
    st.sampled_from(["True", "False"]),
)
PODS = st.builds(
    lambda **fields: PodStatus.model_validate(fields),
    phase=st.none() | st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
    reason=REASONS,
    message=TEXTS,
    conditions=st.lists(CONDITIONS, max_size=2),
    containerStatuses=st.lists(CONTAINERS, max_size=3),
)
RECEIPTS = st.builds(
    lambda backend, checks: Receipt(
        backend=backend,
        user_namespace=True,
        seccomp=True,
        landlock_abi=7,
        checks=[{"name": "network", "locked": True}] if checks else [],
    ),
    st.sampled_from(["Namespaces", "Lock", "Plain", "Pod"]),
    st.booleans(),
)
RUNNERS = st.builds(
    lambda **fields: RunnerResult(**fields),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    timed_out=st.booleans(),
    limit=st.none() | st.sampled_from(list(Limit)),
    error=st.text(max_size=20),
    milestones=st.lists(st.sampled_from(MILESTONES), max_size=7),
    output_tail=st.text(max_size=20),
    execution_seconds=st.floats(0, 200),
    isolation=RECEIPTS,
)
GRADERS = st.builds(
    lambda **fields: GraderResult(**fields),
    verdict=st.sampled_from(list(Verdict)),
    reason=st.text(max_size=20),
    scores=st.dictionaries(st.sampled_from(list(Split)), st.floats(-1, 1), max_size=3),
)
UNFINISHED = st.builds(
    lambda **fields: Unfinished(unfinished=True, **fields),
    failure=st.text(max_size=20),
    milestones=st.lists(st.sampled_from(MILESTONES), max_size=7),
    output_tail=st.text(max_size=20),
)
RUNNER_RESULTS = st.none() | RUNNERS | UNFINISHED | st.builds(Unreadable, st.text(max_size=20))
GRADER_RESULTS = st.none() | GRADERS
LIMITS = st.floats(1, 200).map(lambda seconds: TaskLimits(timeout_seconds=seconds))


@given(PODS, RUNNER_RESULTS, GRADER_RESULTS, LIMITS, st.booleans())
def test_every_ending_has_one_outcome_and_a_bounded_line(
    pod: PodStatus,
    runner: RunnerReport,
    grader: GraderResult | None,
    limits: TaskLimits,
    partial: bool,
) -> None:
    found = classify(pod, runner, grader, limits, grade_partial=partial)
    assert found == classify(pod, runner, grader, limits, grade_partial=partial)
    assert len(found.reason) <= 512
    assert len(found.reason.splitlines()) <= 1


@given(PODS, RUNNER_RESULTS, GRADER_RESULTS, LIMITS, st.booleans())
def test_a_valid_outcome_needs_a_runner_a_receipt_and_a_graders_score(
    pod: PodStatus,
    runner: RunnerReport,
    grader: GraderResult | None,
    limits: TaskLimits,
    partial: bool,
) -> None:
    found = classify(pod, runner, grader, limits, grade_partial=partial)
    if found.outcome.valid:
        assert isinstance(runner, RunnerResult)
        assert runner.isolation.backend == "Plain" or runner.isolation.checks
        assert grader is not None
        assert grader.verdict in (Verdict.VALID, Verdict.TRIVIAL)
        assert grader.scores
        assert partial or runner.exit_code == 0


@given(PODS, RUNNER_RESULTS, GRADER_RESULTS, LIMITS)
def test_an_outcome_is_one_that_an_attempt_can_have(
    pod: PodStatus, runner: RunnerReport, grader: GraderResult | None, limits: TaskLimits
) -> None:
    """The others are decided before anything runs."""
    before = {Outcome.UNCHANGED, Outcome.UNPARSED, Outcome.REFUSED, Outcome.TRUNCATED}
    assert classify(pod, runner, grader, limits).outcome not in before


@given(PODS, RUNNER_RESULTS, GRADER_RESULTS, LIMITS)
def test_grading_partial_work_changes_only_errors_and_timeouts(
    pod: PodStatus, runner: RunnerReport, grader: GraderResult | None, limits: TaskLimits
) -> None:
    without = classify(pod, runner, grader, limits)
    partial = classify(pod, runner, grader, limits, grade_partial=True)
    if without.outcome not in (Outcome.ERROR, Outcome.TIMEOUT):
        assert partial == without
    elif partial != without:
        assert partial.outcome in (Outcome.SCORED, Outcome.TRIVIAL)


@given(PODS, UNFINISHED, GRADER_RESULTS, LIMITS, st.booleans())
def test_what_a_runner_said_before_its_result_buys_nothing(
    pod: PodStatus, unfinished: Unfinished, grader: GraderResult | None, limits: TaskLimits, partial: bool
) -> None:
    """The outcome is the one of a runner that said nothing."""
    found = classify(pod, unfinished, grader, limits, grade_partial=partial)
    assert found.outcome == classify(pod, None, grader, limits, grade_partial=partial).outcome
    assert not found.outcome.valid


@given(RUNNERS | UNFINISHED)
def test_a_message_is_read_as_what_was_written(said: RunnerResult | Unfinished) -> None:
    assert read_runner_result(said.model_dump_json(by_alias=True)) == said
