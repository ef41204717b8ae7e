"""For every test: what a suite needs from the machine, and that nothing is skipped where that is forbidden."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator

import pytest
from hypothesis import settings
from mlwright_cluster.needs import lacks_control_plane, lacks_node_suite, lacks_own_node

# Two threads of numerics under a shared CPU are slower than one, and no longer reproducible.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What a shell starts in the background ignores Ctrl-C, and so would every command that is tested with it.
signal.signal(signal.SIGINT, signal.default_int_handler)
# No deadline: machines that run tests are shared, and a slow example is no wrong one.
settings.register_profile("mlwright", deadline=None, print_blob=True)
settings.load_profile("mlwright")

pytest_plugins = ["mlwright_cluster.fixtures"]

FORBID_SKIPS = os.environ.get("MLWRIGHT_FORBID_SKIPS", "") not in ("", "0")


def _lacks_torch() -> str | None:
    return None if importlib.util.find_spec("torch") else "torch is missing (make setup)"


def _lacks_linux() -> str | None:
    return None if sys.platform == "linux" else "sandboxes need Linux"


def _lacks_browser() -> str | None:
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(missing)} missing (apt-get install chromium chromium-driver)" if missing else None


NEEDS: dict[str, Callable[[], str | None]] = {
    "torch": _lacks_torch,
    "sandbox": _lacks_linux,
    "browser": _lacks_browser,
    "control_plane": lacks_control_plane,
    "node": lacks_node_suite,
    "own_node": lacks_own_node,
}
"""By marker: why this machine cannot run such tests, if it cannot."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked = {mark.name for item in items for mark in item.iter_markers()}
    lacking = {
        marker: why for marker, need in NEEDS.items() if marker in asked and (why := need()) is not None
    }
    for item in items:
        for marker, why in lacking.items():
            if item.get_closest_marker(marker) is not None:
                item.add_marker(pytest.mark.skip(reason=f"suite {marker}: {why}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if FORBID_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        _fail(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if FORBID_SKIPS and report.skipped:
        _fail(report)
    return report


def _fail(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"skipped, which MLWRIGHT_FORBID_SKIPS forbids: {reason}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason to skip, with the number of tests."""
    counts: dict[str, int] = {}
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        counts[reason] = counts.get(reason, 0) + 1
    for reason, count in sorted(counts.items()):
        terminalreporter.write_line(f"not run: {count} tests, {reason.removeprefix('Skipped: ')}")
