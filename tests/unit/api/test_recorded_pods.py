"""Statuses of pods as real kubelets wrote them, and what each is classified as: the golden table of outcomes."""

from __future__ import annotations

import json
import re

import pytest
from mlwright_api.podstatus import AGENT, PodStatus
from mlwright_api.rollout import Outcome
from recorded_pods import Recorded, recorded

RECORDED = recorded()
NEEDED = {
    "success",
    "error",
    "timeout",
    "script at its memory limit",
    "script killed by the kernel for its memory",
    "runner killed by the kernel for its memory",
    "runner killed",
    "deadline of the pod",
    "eviction for a work folder that is too full",
    "eviction for the pod's storage",
    "eviction for a container's log",
    "image that cannot be pulled",
    "image that is not there",
    "program that is not there",
    "deletion",
    "drain",
    "grader killed",
    "grader killed by the kernel for its memory",
    "node gone",
}
NOISE = re.compile(r"\b(?!192\.0\.2\.1\b)\d{1,3}(\.\d{1,3}){3}\b|containerd://|\b(?!0{64})[0-9a-f]{64}\b")


@pytest.mark.parametrize("each", RECORDED, ids=lambda each: each.name)
def test_a_recorded_pod_is_classified_as_it_was(each: Recorded) -> None:
    assert (each.verdict.outcome, each.verdict.reason) == (each.outcome, each.reason)


def test_every_way_to_end_has_been_seen_on_a_real_node() -> None:
    assert {each.name for each in RECORDED if each.source == "recorded"} >= NEEDED


def test_what_was_derived_says_from_what_and_how() -> None:
    names = {each.name for each in RECORDED if each.source == "recorded"}
    derived = [each for each in RECORDED if each.source != "recorded"]
    assert derived, "control groups of version 2 are derived"
    for each in derived:
        assert each.source == "derived"
        assert [name for name in names if f"`{name}`" in each.note], each.note


@pytest.mark.parametrize("each", RECORDED, ids=lambda each: each.name)
def test_a_record_says_nothing_of_the_machine_that_it_was_made_on(each: Recorded) -> None:
    assert NOISE.search(json.dumps(each.status).replace("\\", " ")) is None
    assert set(each.status) <= {"phase", "reason", "message", "conditions", "containerStatuses"}


def test_only_failures_that_are_not_the_scripts_own_are_run_again() -> None:
    again = {each.name for each in RECORDED if each.verdict.rerun}
    for each in RECORDED:
        own = each.verdict.outcome not in (Outcome.INFRASTRUCTURE_FAILED, Outcome.INVALID_SUBMISSION)
        assert own == (each.name not in again)


def test_an_agent_that_ended_lived_for_as_long_as_it_says() -> None:
    for each in RECORDED:
        ended = PodStatus.model_validate(each.status).state(AGENT).terminated
        if ended is not None and ended.seconds is not None:
            assert ended.seconds >= 0, each.name
