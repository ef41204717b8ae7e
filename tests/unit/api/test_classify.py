"""The outcome table: how attempts end, on one machine and in pods, and what each is called."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from mlwright_api.classify import (
    RULES,
    Classification,
    ContainerStateTerminated,
    Ending,
    PodStatus,
    classify,
    local_pod_status,
)
from mlwright_api.mltask import Split, TaskLimits
from mlwright_api.results import (
    MILESTONES,
    GraderFailure,
    GraderResult,
    Limit,
    Receipt,
    ReceiptCheck,
    RunnerReport,
    RunnerResult,
    Unfinished,
    Unreadable,
    Verdict,
    read_grader_failure,
    read_grader_result,
    read_runner_result,
)
from mlwright_api.rollout import Outcome

LIMITS = TaskLimits(timeout_seconds=60)
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
RECEIPT = Receipt(
    backend="Namespaces",
    user_namespace=True,
    seccomp=True,
    landlock_abi=7,
    checks=[ReceiptCheck(name="network", unlocked=True, locked=True)],
)


def runner(**changes: Any) -> RunnerResult:
    """A script that exited with 0 after two seconds, changed."""
    good: dict[str, Any] = {"exit_code": 0, "execution_seconds": 2.0, "isolation": RECEIPT}
    return RunnerResult(**(good | changes))


def grader(verdict: Verdict = Verdict.VALID, reason: str = "") -> GraderResult:
    scored = verdict in (Verdict.VALID, Verdict.TRIVIAL)
    return GraderResult(verdict=verdict, reason=reason, scores={Split.REWARD: 0.9} if scored else {})


def outcome(
    pod: PodStatus | None = None,
    run: RunnerReport = None,
    graded: GraderResult | None = None,
    *,
    grade_partial: bool = False,
) -> Classification:
    return classify(pod or local_pod_status(), run, graded, LIMITS, grade_partial=grade_partial)


HALFWAY = Unfinished(unfinished=True, milestones=["imports"], output_tail="epoch 3")
BROKEN = Unfinished(unfinished=True, failure="the termination message cannot be written")
VALID, MISSING = grader(), grader(Verdict.MISSING)
FAILED = runner(exit_code=1, error="ValueError: x")
TIMED_OUT = runner(exit_code=None, timed_out=True, execution_seconds=60.0)

LOCAL_ENDS: list[tuple[str, RunnerResult | Unreadable | None, GraderResult | None, Outcome, str]] = [
    ("success", runner(), VALID, Outcome.SCORED, ""),
    ("constant", runner(), grader(Verdict.TRIVIAL, "constant"), Outcome.TRIVIAL, "constant"),
    ("no file", runner(), MISSING, Outcome.NO_SUBMISSION, "no submission file was written"),
    (
        "bad file",
        runner(),
        grader(Verdict.INVALID, "id 3 is missing"),
        Outcome.INVALID_SUBMISSION,
        "id 3 is missing",
    ),
    (
        "bad file, no reason",
        runner(),
        grader(Verdict.INVALID),
        Outcome.INVALID_SUBMISSION,
        "the submission is invalid",
    ),
    (
        "grader died",
        runner(),
        None,
        Outcome.INVALID_SUBMISSION,
        "GraderDied: the submission could not be graded",
    ),
    (
        "no score",
        runner(),
        GraderResult(verdict=Verdict.VALID),
        Outcome.INVALID_SUBMISSION,
        "GraderDied: a verdict",
    ),
    ("exit 1", FAILED, None, Outcome.ERROR, "ValueError: x"),
    ("exit 1, graded", FAILED, VALID, Outcome.ERROR, "ValueError: x"),
    ("exit 3, silent", runner(exit_code=3), None, Outcome.ERROR, "exit code 3"),
    ("segfault", runner(exit_code=None, signal=11), None, Outcome.ERROR, "signal 11"),
    (
        "MemoryError",
        runner(exit_code=1, limit=Limit.MEMORY, error="MemoryError"),
        None,
        Outcome.OUT_OF_MEMORY,
        "Memory: MemoryError",
    ),
    (
        "killed for memory",
        runner(exit_code=None, signal=9, limit=Limit.MEMORY),
        None,
        Outcome.OUT_OF_MEMORY,
        "Memory",
    ),
    (
        "ENOSPC",
        runner(exit_code=1, limit=Limit.DISK, error="OSError: [Errno 28] No space left on device"),
        None,
        Outcome.OVER_LIMIT,
        "Disk: OSError: [Errno 28] No space left on device",
    ),
    ("too many files", runner(exit_code=1, limit=Limit.FILES), None, Outcome.OVER_LIMIT, "Files"),
    (
        "fork bomb",
        runner(exit_code=1, limit=Limit.PROCESSES, error="BlockingIOError"),
        None,
        Outcome.OVER_LIMIT,
        "Processes: BlockingIOError",
    ),
    ("output flood", runner(exit_code=None, limit=Limit.OUTPUT), None, Outcome.OVER_LIMIT, "Output"),
    ("a limit that did not hurt", runner(limit=Limit.OUTPUT), VALID, Outcome.SCORED, ""),
    ("timeout", TIMED_OUT, None, Outcome.TIMEOUT, "ran into the limit of 60 s"),
    ("timeout, graded", TIMED_OUT, VALID, Outcome.TIMEOUT, "ran into the limit of 60 s"),
    (
        "timeout by SIGKILL",
        runner(exit_code=None, signal=9, timed_out=True, execution_seconds=60.2),
        None,
        Outcome.TIMEOUT,
        "ran into the limit of 60 s",
    ),
    (
        "hung after a limit",
        runner(exit_code=None, timed_out=True, limit=Limit.DISK, execution_seconds=60.0),
        None,
        Outcome.TIMEOUT,
        "ran into the limit of 60 s",
    ),
    ("all milestones", runner(milestones=list(MILESTONES)), VALID, Outcome.SCORED, ""),
    ("milestones skipped", runner(milestones=["imports", "predictions_made"]), VALID, Outcome.SCORED, ""),
    (
        "plain backend",
        runner(isolation=RECEIPT.model_copy(update={"backend": "Plain", "checks": []})),
        VALID,
        Outcome.SCORED,
        "",
    ),
    ("runner died", None, None, Outcome.INFRASTRUCTURE_FAILED, "RunnerDied: no result"),
    ("runner died, graded", None, VALID, Outcome.INFRASTRUCTURE_FAILED, "RunnerDied: no result"),
    (
        "unreadable",
        Unreadable("milestones.0 unknown"),
        VALID,
        Outcome.TAMPERED,
        "result: milestones.0 unknown",
    ),
    (
        "no receipt",
        runner(isolation=RECEIPT.model_copy(update={"checks": []})),
        VALID,
        Outcome.TAMPERED,
        "receipt: no checks",
    ),
    ("two ends", runner(signal=9), VALID, Outcome.TAMPERED, "result: an exit code and a signal"),
    (
        "no end",
        runner(exit_code=None),
        VALID,
        Outcome.TAMPERED,
        "result: no exit code, signal, timeout or limit",
    ),
    (
        "late success",
        runner(timed_out=True, execution_seconds=60.0),
        VALID,
        Outcome.TAMPERED,
        "result: exit 0 after the time limit",
    ),
    (
        "early timeout",
        runner(exit_code=None, timed_out=True, execution_seconds=3.0),
        None,
        Outcome.TAMPERED,
        "result: a timeout before the limit",
    ),
    (
        "milestones backwards",
        runner(milestones=["validated", "imports"]),
        VALID,
        Outcome.TAMPERED,
        "result: milestones out of order",
    ),
    (
        "milestone twice",
        runner(milestones=["imports", "imports"]),
        VALID,
        Outcome.TAMPERED,
        "result: milestones out of order",
    ),
    (
        "long tail",
        runner(output_tail="\u00e9" * 1025),
        VALID,
        Outcome.TAMPERED,
        "result: an output tail over 2048 bytes",
    ),
]


@pytest.mark.parametrize(
    ("run", "graded", "expected", "reason"),
    [row[1:] for row in LOCAL_ENDS],
    ids=[row[0] for row in LOCAL_ENDS],
)
def test_a_local_end_has_its_outcome(
    run: RunnerResult | Unreadable | None, graded: GraderResult | None, expected: Outcome, reason: str
) -> None:
    found = outcome(run=run, graded=graded)
    assert found.outcome is expected
    assert found.reason.startswith(reason)
    assert bool(found.reason) == bool(reason)


def test_a_sandbox_that_could_not_be_made_is_no_fault_of_the_script() -> None:
    found = outcome(local_pod_status(failure="bwrap: no user namespaces"), runner(), VALID)
    assert found == Classification(Outcome.INFRASTRUCTURE_FAILED, "SandboxFailed: bwrap: no user namespaces")


def test_what_we_ended_is_cancelled_whatever_it_had_done() -> None:
    for run, graded in [(None, None), (runner(exit_code=None, signal=9), None), (runner(), VALID)]:
        assert outcome(local_pod_status(cancelled=True), run, graded).outcome is Outcome.CANCELLED


def test_a_runner_killed_by_a_signal_is_a_failure_of_the_infrastructure() -> None:
    found = outcome(local_pod_status(runner_exit=-9), runner(), VALID)
    assert found == Classification(Outcome.INFRASTRUCTURE_FAILED, "RunnerDied: exit code 137")


def test_the_kernel_ending_the_whole_sandbox_for_its_memory_is_the_scripts_doing() -> None:
    found = outcome(local_pod_status(runner_exit=-9, out_of_memory=True))
    assert found == Classification(Outcome.OUT_OF_MEMORY, "killed at 2Gi of memory")


def test_a_child_killed_for_memory_does_not_undo_a_success() -> None:
    assert outcome(local_pod_status(out_of_memory=True), runner(), VALID).outcome is Outcome.SCORED


def test_execution_cannot_be_longer_than_the_container_lived() -> None:
    pod = local_pod_status(started_at=START, finished_at=START + timedelta(seconds=5))
    assert outcome(pod, runner(execution_seconds=6.9), VALID).outcome is Outcome.SCORED
    assert outcome(pod, runner(execution_seconds=7.1), VALID) == Classification(
        Outcome.TAMPERED, "result: 7.1 s of execution in 5.0 s of the container"
    )


class TestGradePartial:
    def test_an_error_that_left_a_valid_submission_is_scored(self) -> None:
        found = outcome(run=FAILED, graded=VALID, grade_partial=True)
        assert found == Classification(Outcome.SCORED, "partial: ValueError: x")

    def test_a_timeout_that_left_a_valid_submission_is_scored(self) -> None:
        found = outcome(run=TIMED_OUT, graded=VALID, grade_partial=True)
        assert found == Classification(Outcome.SCORED, "partial: ran into the limit of 60 s")

    def test_a_trivial_submission_stays_trivial(self) -> None:
        found = outcome(run=FAILED, graded=grader(Verdict.TRIVIAL, "constant"), grade_partial=True)
        assert found == Classification(Outcome.TRIVIAL, "partial: ValueError: x: constant")

    @pytest.mark.parametrize("graded", [None, MISSING, grader(Verdict.INVALID, "id 3 is missing")])
    def test_without_a_valid_submission_the_failure_counts(self, graded: GraderResult | None) -> None:
        assert outcome(run=FAILED, graded=graded, grade_partial=True).outcome is Outcome.ERROR

    @pytest.mark.parametrize("limit", list(Limit))
    def test_a_limit_is_never_forgiven(self, limit: Limit) -> None:
        run = runner(exit_code=1, limit=limit)
        assert not outcome(run=run, graded=VALID, grade_partial=True).outcome.valid


def pod(text: str, *containers: dict[str, Any], **fields: Any) -> tuple[str, PodStatus]:
    return text, PodStatus.model_validate({"containerStatuses": list(containers), **fields})


def ended(name: str, exit_code: int = 0, reason: str = "Completed", **more: Any) -> dict[str, Any]:
    return {"name": name, "state": {"terminated": {"exitCode": exit_code, "reason": reason, **more}}}


def waiting(name: str, reason: str) -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": "details"}}}


DISRUPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "drain",
}
OWN_USE = 'Usage of EmptyDir volume "work" exceeds the limit "512Mi". '
PODS: list[tuple[tuple[str, PodStatus], RunnerResult | None, GraderResult | None, Outcome, str]] = [
    (
        pod("succeeded", ended("agent"), ended("grader"), phase="Succeeded"),
        runner(),
        VALID,
        Outcome.SCORED,
        "",
    ),
    (
        pod("image pull", waiting("agent", "ImagePullBackOff"), phase="Pending"),
        None,
        None,
        Outcome.INFRASTRUCTURE_FAILED,
        "ImagePullBackOff: agent: details",
    ),
    (
        pod("grader's image pull", ended("agent"), waiting("grader", "ErrImagePull"), phase="Pending"),
        runner(),
        None,
        Outcome.INFRASTRUCTURE_FAILED,
        "ErrImagePull: grader: details",
    ),
    (
        pod("config", waiting("agent", "CreateContainerConfigError"), phase="Pending"),
        None,
        None,
        Outcome.INFRASTRUCTURE_FAILED,
        "CreateContainerConfigError",
    ),
    (
        pod("start error", ended("agent", 128, "StartError"), phase="Failed"),
        None,
        None,
        Outcome.INFRASTRUCTURE_FAILED,
        "StartError: agent",
    ),
    (
        pod("still running", {"name": "agent", "state": {"running": {}}}, phase="Running"),
        None,
        None,
        Outcome.INFRASTRUCTURE_FAILED,
        "NotFinished",
    ),
    (pod("unscheduled", phase="Pending"), None, None, Outcome.INFRASTRUCTURE_FAILED, "NotFinished"),
    (
        pod("own eviction", phase="Failed", reason="Evicted", message=OWN_USE),
        None,
        None,
        Outcome.OVER_LIMIT,
        "Disk: Usage of EmptyDir volume",
    ),
    (
        pod(
            "ephemeral eviction",
            phase="Failed",
            reason="Evicted",
            message="Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
        ),
        None,
        None,
        Outcome.OVER_LIMIT,
        "Disk: Pod ephemeral local storage",
    ),
    (
        pod("pressure", phase="Failed", reason="Evicted", message="The node was low on resource: memory."),
        None,
        None,
        Outcome.INFRASTRUCTURE_FAILED,
        "Evicted: The node was low",
    ),
    (
        pod("drain", phase="Failed", conditions=[DISRUPTED]),
        None,
        None,
        Outcome.INFRASTRUCTURE_FAILED,
        "Disrupted: EvictionByEvictionAPI: drain",
    ),
    (
        pod(
            "drain during own eviction",
            phase="Failed",
            reason="Evicted",
            message=OWN_USE,
            conditions=[DISRUPTED],
        ),
        None,
        None,
        Outcome.INFRASTRUCTURE_FAILED,
        "Disrupted",
    ),
    (
        pod(
            "drained after success",
            ended("agent"),
            ended("grader"),
            phase="Succeeded",
            conditions=[DISRUPTED],
        ),
        runner(),
        VALID,
        Outcome.SCORED,
        "",
    ),
    (
        pod("deadline", ended("agent", 137, "Error"), phase="Failed", reason="DeadlineExceeded"),
        runner(),
        None,
        Outcome.INFRASTRUCTURE_FAILED,
        "DeadlineExceeded",
    ),
    (pod("node lost", phase="Unknown"), None, None, Outcome.INFRASTRUCTURE_FAILED, "Unknown"),
    (
        pod("node lost after", ended("agent"), phase="Failed", reason="NodeLost"),
        runner(),
        VALID,
        Outcome.INFRASTRUCTURE_FAILED,
        "NodeLost",
    ),
    (
        pod("agent OOM", ended("agent", 137, "OOMKilled"), ended("grader"), phase="Failed"),
        None,
        MISSING,
        Outcome.OUT_OF_MEMORY,
        "killed at 2Gi of memory",
    ),
    (
        pod("agent OOM seen as exit 0", ended("agent", 0, "OOMKilled"), ended("grader"), phase="Succeeded"),
        None,
        MISSING,
        Outcome.OUT_OF_MEMORY,
        "killed at 2Gi of memory",
    ),
    (
        pod("grader OOM", ended("agent"), ended("grader", 137, "OOMKilled"), phase="Failed"),
        runner(),
        None,
        Outcome.INVALID_SUBMISSION,
        "GraderDied",
    ),
    (
        pod("runner crashed", ended("agent", 1, "Error"), ended("grader"), phase="Failed"),
        None,
        MISSING,
        Outcome.INFRASTRUCTURE_FAILED,
        "RunnerDied: exit code 1",
    ),
    (
        pod(
            "lying clock",
            ended("agent", startedAt="2026-01-31T12:00:00Z", finishedAt="2026-01-31T12:00:03Z"),
            ended("grader"),
            phase="Succeeded",
        ),
        runner(execution_seconds=50.0),
        VALID,
        Outcome.TAMPERED,
        "result: 50.0 s",
    ),
    (
        pod(
            "clamped clock",
            ended("agent", startedAt="2026-01-31T12:00:00Z", finishedAt="2026-01-31T12:00:03Z"),
            ended("grader"),
            phase="Succeeded",
        ),
        runner(execution_seconds=4.9),
        VALID,
        Outcome.SCORED,
        "",
    ),
]


@pytest.mark.parametrize(
    ("status", "run", "graded", "expected", "reason"),
    [(row[0][1], *row[1:]) for row in PODS],
    ids=[row[0][0] for row in PODS],
)
def test_a_pods_end_has_its_outcome(
    status: PodStatus, run: RunnerResult | None, graded: GraderResult | None, expected: Outcome, reason: str
) -> None:
    found = outcome(status, run, graded)
    assert (found.outcome, found.reason[: len(reason)]) == (expected, reason)


def test_fields_of_a_pod_that_we_do_not_read_are_ignored() -> None:
    status = {
        "phase": "Succeeded",
        "qosClass": "Guaranteed",
        "hostIP": "10.0.0.1",
        "startTime": "2026-01-31T12:00:00Z",
    }
    assert PodStatus.model_validate(status).phase == "Succeeded"


def test_every_rule_decides_at_least_one_of_the_ends_above() -> None:
    """A rule that no end reaches is dead, or untested."""
    endings = [(local_pod_status(), *row[1:3]) for row in LOCAL_ENDS]
    endings += [(row[0][1], *row[1:3]) for row in PODS]
    endings += [(local_pod_status(cancelled=True), None, None)]
    reached = {_deciding_rule(*ending) for ending in endings}
    assert reached == {rule.name for rule in RULES}


def _deciding_rule(
    status: PodStatus, run: RunnerResult | Unreadable | None, graded: GraderResult | None
) -> str:
    ending = Ending(status, run, graded, LIMITS)
    return next(rule.name for rule in RULES if rule.explain(ending) is not None)


def test_the_reason_is_one_bounded_line() -> None:
    long = runner(exit_code=1, error="x" * 512)
    assert len(outcome(run=long).reason) == 512
    assert "\n" not in outcome(local_pod_status(failure="a\nb\n" * 500)).reason
    assert len(outcome(local_pod_status(failure="a" * 5000)).reason) <= 512


@pytest.mark.parametrize(
    ("exit_code", "said", "reason"),
    [
        (0, HALFWAY, "RunnerDied: no result"),
        (0, None, "RunnerDied: no result"),
        (143, HALFWAY, "RunnerDied: exit code 143"),
        (137, None, "RunnerDied: exit code 137"),
        (70, BROKEN, "RunnerDied: exit code 70: the termination message cannot be written"),
    ],
)
def test_a_runner_that_did_not_get_to_its_result_has_died(
    exit_code: int, said: Unfinished | None, reason: str
) -> None:
    """Whatever the grader found: nobody knows how the script ended."""
    found = outcome(local_pod_status(runner_exit=exit_code), said, VALID, grade_partial=True)
    assert found == Classification(Outcome.INFRASTRUCTURE_FAILED, reason)
    assert found.rerun


def test_a_runner_that_was_killed_with_its_script_for_memory_is_out_of_memory() -> None:
    """Version 2 of control groups ends the whole container; what it had said until then is only shown."""
    pod = local_pod_status(runner_exit=-9, out_of_memory=True)
    assert outcome(pod, HALFWAY, MISSING).outcome is Outcome.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("found", "rerun"),
    [
        (Classification(Outcome.INFRASTRUCTURE_FAILED, "RunnerDied: no result"), True),
        (Classification(Outcome.INVALID_SUBMISSION, "GraderDied: late"), True),
        (Classification(Outcome.INVALID_SUBMISSION, "id 3 is missing"), False),
        (Classification(Outcome.CANCELLED, "Cancelled"), False),
        (Classification(Outcome.ERROR, "ValueError"), False),
    ],
)
def test_only_what_is_not_the_scripts_doing_is_run_again(found: Classification, rerun: bool) -> None:
    assert found.rerun is rerun


class TestTerminationMessages:
    def test_a_runners_result_survives_the_wire(self) -> None:
        result = runner(milestones=["imports"], limit=Limit.DISK, exit_code=1)
        assert read_runner_result(result.model_dump_json(by_alias=True)) == result

    def test_an_empty_message_is_no_result(self) -> None:
        assert read_runner_result(" \n") is None
        assert read_grader_result("") is None

    @pytest.mark.parametrize(
        ("message", "problem"),
        [
            ("{", "Invalid JSON"),
            ("[]", "object"),
            ('{"executionSeconds": 1}', "isolation"),
            (runner().model_dump_json(by_alias=True).replace("[]", '["won"]', 1), "milestones.0"),
            (runner().model_dump_json(by_alias=True)[:-1] + ', "score": 1}', "score"),
            (runner().model_dump_json(by_alias=True).replace("2.0", "-2.0"), "executionSeconds"),
            (runner().model_dump_json(by_alias=True).replace("2.0", "NaN"), "executionSeconds"),
        ],
    )
    def test_a_forged_message_is_unreadable_and_so_tampered(self, message: str, problem: str) -> None:
        read = read_runner_result(message)
        assert isinstance(read, Unreadable)
        assert problem in read.problem
        assert outcome(run=read, graded=VALID).outcome is Outcome.TAMPERED

    def test_what_is_not_finished_survives_the_wire_and_is_no_result(self) -> None:
        read = read_runner_result(HALFWAY.model_dump_json(by_alias=True))
        assert read == HALFWAY

    @pytest.mark.parametrize(
        "message",
        [
            '{"milestones": ["imports"]}',
            '{"unfinished": false, "milestones": []}',
            HALFWAY.model_dump_json(by_alias=True)[:-1] + ', "exitCode": 0}',
            runner().model_dump_json(by_alias=True)[:-1] + ', "unfinished": true}',
        ],
    )
    def test_nothing_is_both_a_result_and_unfinished(self, message: str) -> None:
        assert isinstance(read_runner_result(message), Unreadable)

    def test_spaces_behind_a_message_change_nothing(self) -> None:
        """A runner writes a shorter message over a longer one in one go."""
        for message in (HALFWAY, runner()):
            written = message.model_dump_json(by_alias=True) + 300 * " "
            assert read_runner_result(written) == message

    def test_a_graders_failure_is_no_result_and_has_its_own_reader(self) -> None:
        message = GraderFailure(failure="private/answers.csv has an id more than once").model_dump_json()
        assert read_grader_result(message) is None
        assert read_grader_failure(message) == "private/answers.csv has an id more than once"
        assert [read_grader_failure(each) for each in ("", "{", VALID.model_dump_json(by_alias=True))] == [
            ""
        ] * 3

    def test_a_graders_result_survives_the_wire(self) -> None:
        assert read_grader_result(VALID.model_dump_json(by_alias=True)) == VALID

    def test_a_broken_graders_message_is_as_good_as_none(self) -> None:
        assert read_grader_result('{"verdict": "Great"}') is None


def test_a_containers_seconds_need_both_ends() -> None:
    assert ContainerStateTerminated(exit_code=0, started_at=START).seconds is None
    assert ContainerStateTerminated(exit_code=0, started_at=START, finished_at=START).seconds == 0
