"""Prometheus metrics; every label has few values. docs/reference/operator-metrics.md lists them: a test compares."""

from __future__ import annotations

from collections.abc import Mapping
from time import time

from mlwright_api.rollout import RolloutStatus
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from mlwright_operator.actions import Kind

_PASS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROLLOUT_SECONDS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600, 14_400, 86_400)
STAGES = ("queued", "starting", "execution", "grading")


class Metrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._operator()
        self._rollouts()

    def _operator(self) -> None:
        registry = self.registry
        self.reconcile_seconds = Histogram(
            "mlwright_operator_reconcile_seconds",
            "Duration of a pass: planning, writes and their answers.",
            buckets=_PASS_SECONDS,
            registry=registry,
        )
        self.errors = Counter(
            "mlwright_operator_errors_total",
            "Failures, by what failed: list, pass, write, watch, bug.",
            ["what"],
            registry=registry,
        )
        self.requests = Counter(
            "mlwright_operator_api_requests_total",
            "Requests to the API server, by Kubernetes' verb and HTTP code (0: no answer); watches not included.",
            ["verb", "code"],
            registry=registry,
        )
        self.leader = Gauge("mlwright_operator_leader", "1 while this process may write.", registry=registry)
        self.last_success = Gauge(
            "mlwright_operator_last_successful_pass_timestamp_seconds",
            "When the last pass succeeded, in seconds since 1970; 0: none has.",
            registry=registry,
        )
        self.live = Gauge(
            "mlwright_live_objects", "Objects that the operator knows of.", ["kind"], registry=registry
        )

    def _rollouts(self) -> None:
        self.finished = Counter(
            "mlwright_rollouts_finished_total",
            "Rollouts that came to an outcome.",
            ["outcome"],
            registry=self.registry,
        )
        self.stages = {stage: self._stage(stage) for stage in STAGES}

    def _stage(self, stage: str) -> Histogram:
        return Histogram(
            f"mlwright_rollout_{stage}_seconds",
            f"Of finished rollouts: `status.seconds.{stage}`.",
            buckets=_ROLLOUT_SECONDS,
            registry=self.registry,
        )

    def request(self, verb: str, code: int) -> None:
        """A request to the API server was answered (code 0: was not)."""
        self.requests.labels(verb, str(code)).inc()

    def failure(self, what: str) -> None:
        """Something failed."""
        self.errors.labels(what).inc()

    def pass_succeeded(self) -> None:
        """A pass ended well, now."""
        self.last_success.set(time())

    def rollout_finished(self, status: RolloutStatus) -> None:
        """A Rollout came to an outcome; stages that it never reached (0 seconds) are not observed."""
        self.finished.labels(str(status.outcome)).inc()
        for stage, histogram in self.stages.items():
            if seconds := getattr(status.seconds, stage):
                histogram.observe(seconds)

    def objects(self, counts: Mapping[Kind, int]) -> None:
        """What there is."""
        for kind, count in counts.items():
            self.live.labels(kind.value).set(count)

    def exposition(self) -> bytes:
        """The text format that Prometheus scrapes."""
        return generate_latest(self.registry)
