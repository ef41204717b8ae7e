"""A run that is killed again and again ends as one that nobody disturbed; replay gives the same weights."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.rollout import Outcome
from mlwright_trainer.ledger import LedgerReader

pytestmark = [pytest.mark.sandbox, pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(1200)]
Miniature = Any

KILLS = 20
LATE = 60
"""Of 107 events; from here on kills come while a session starts, so that no machine is fast enough to end before."""
DEADLINE_SECONDS = 120
"""A session that is not killed and does not end in this time hangs."""


def digests(folder: Path) -> list[str]:
    with LedgerReader(folder / "ledger.sqlite") as ledger:
        return [update.digest for update in ledger.updates()]


def facts(folder: Path) -> list[tuple[Any, ...]]:
    """Everything about the rollouts that time does not enter."""
    with LedgerReader(folder / "ledger.sqlite") as ledger:
        return [
            (
                row.id,
                row.response,
                row.outcome,
                row.reward,
                row.batch,
                tuple(sorted(row.status.scores.items())),
            )
            for row in ledger.rollouts()
        ]


def events(folder: Path) -> int:
    """How far a run is: rows closed and versions published."""
    if not (folder / "ledger.sqlite").exists():
        return 0
    with LedgerReader(folder / "ledger.sqlite") as ledger:
        return sum(row.outcome is not None for row in ledger.rollouts()) + len(ledger.updates())


def kill_after(process: subprocess.Popen[str], folder: Path, *, more: int, delay: float) -> None:
    """SIGKILL the command alone, `delay` seconds after `more` further events: what it started must notice by itself."""
    goal = events(folder) + more
    deadline = time.monotonic() + DEADLINE_SECONDS
    while events(folder) < goal and time.monotonic() < deadline:
        assert process.poll() is None, f"ended before its kill: {process.communicate()[1]}"
        wait_a_moment(process, 0.02)
    wait_a_moment(process, delay)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def wait_a_moment(process: subprocess.Popen[str], seconds: float) -> None:
    """Wait, or less if the process ends."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)


def test_twenty_kills_change_nothing_and_lose_nothing(miniature: Miniature, undisturbed: Path) -> None:
    folder = miniature.root / "killed"
    moments = random.Random(11)
    for _ in range(KILLS):
        process = miniature.start("run", miniature.run_file, "--dir", folder, "--resume")
        more = moments.randrange(2) if events(folder) < LATE else 0
        kill_after(process, folder, more=more, delay=moments.uniform(0, 0.15))
    done = miniature.run("run", miniature.run_file, "--dir", folder, "--resume")
    assert done.returncode == 0, done.stderr
    with LedgerReader(folder / "ledger.sqlite") as ledger:
        assert len(ledger.sessions()) > KILLS / 2  # the others died before they could say that they had begun
    assert digests(folder) == digests(undisturbed)
    assert facts(folder) == facts(undisturbed)


def test_the_run_that_kills_are_compared_with_has_something_to_lose(undisturbed: Path) -> None:
    """Rows that all fail alike would give the same weights whatever was lost."""
    with LedgerReader(undisturbed / "ledger.sqlite") as ledger:
        rows = ledger.rollouts("Train")
    assert sum(row.outcome is Outcome.SCORED for row in rows) > len(rows) / 4
    assert len({row.reward for row in rows}) > 2
    assert len(set(digests(undisturbed))) == len(digests(undisturbed))


def test_no_row_is_trained_twice_and_none_is_left_open(undisturbed: Path) -> None:
    with LedgerReader(undisturbed / "ledger.sqlite") as ledger:
        rows = ledger.rollouts("Train")
        batches = [ledger.batch(number) for number in range(ledger.batches())]
    trained = [row.id for batch in batches if batch for row in batch.rows]
    assert len(trained) == len(set(trained)) == len(rows) == 80
    assert all(row.outcome is not None for row in rows)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("synchronous", {"algorithm": {"updates": 3}}),
        (
            "continuous",
            {
                "algorithm": {"updates": 4},
                "collection": {"mode": "Continuous"},
                "prompts": {"improveFraction": 0.5, "templates": {"improve": "# {metric}\n"}},
            },
        ),
        (
            "window",
            {
                "collection": {"mode": "Window", "windowSeconds": 5},
                "algorithm": {
                    "updates": 3,
                    "batchSize": None,
                    "durationWeighting": {"mode": "InverseInclusion"},
                },
            },
        ),
    ],
)
def test_replay_gives_the_runs_digest_in_every_mode(
    miniature: Miniature, undisturbed: Path, name: str, changes: dict[str, Any]
) -> None:
    folder = miniature.root / f"mode-{name}"
    start_from(undisturbed, folder)
    updates = changes["algorithm"]["updates"]
    file = miniature.write({**changes, "evaluation": {"samples": 0}}, name=f"{name}.yaml")
    done = miniature.run("run", file, "--dir", folder)
    assert done.returncode == 0, done.stderr
    replayed = miniature.run("replay", folder, "--json")
    assert replayed.returncode == 0, replayed.stderr
    answer = json.loads(replayed.stdout)
    assert answer["equal"] is True
    assert answer["weightsDigest"] == digests(folder)[-1]
    assert answer["updates"] == updates


def start_from(source: Path, folder: Path) -> None:
    """Give a run its initial weights: they are the same as `source`'s, and fine-tuning takes its time."""
    shutil.copytree(source / "weights" / "0", folder / "weights" / "0")


def test_replay_with_other_weights_says_what_would_have_been(undisturbed: Path, miniature: Miniature) -> None:
    replayed = miniature.run("replay", undisturbed, "--weighting", "DurationAware", "--json")
    assert replayed.returncode == 0, replayed.stderr
    answer = json.loads(replayed.stdout)
    assert answer["weighting"] == "DurationAware"
    assert answer["equal"] is False


def test_a_changed_reward_in_the_ledger_is_found_by_replay(undisturbed: Path, miniature: Miniature) -> None:
    folder = miniature.root / "forged"
    shutil.copytree(undisturbed, folder)
    with sqlite3.connect(folder / "ledger.sqlite") as database:
        database.execute("UPDATE rollouts SET reward = 2.0 WHERE batch = 1 AND batch_position = 0")
    replayed = miniature.run("replay", folder, "--json")
    assert replayed.returncode == 1
    equal = [update["equal"] for update in json.loads(replayed.stdout)["perUpdate"]]
    assert equal == [True, True] + [False] * 9


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_a_polite_kill_stop_cleanly_and_say_how_to_go_on(
    miniature: Miniature, undisturbed: Path, stop: signal.Signals
) -> None:
    folder = miniature.root / f"interrupted-{stop.name}"
    start_from(undisturbed, folder)
    process = miniature.start("run", miniature.run_file, "--dir", folder)
    wait_for_rows(folder, process)
    process.send_signal(stop)
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 130
    assert f"mlwright run --resume --dir {folder}" in err
    assert "Traceback" not in err
    done = miniature.run("run", "--resume", "--dir", folder)
    assert done.returncode == 0, done.stderr
    assert digests(folder) == digests(undisturbed)


def wait_for_rows(folder: Path, process: subprocess.Popen[str]) -> None:
    """Until the first rollout has ended; polls the ledger, which is what anybody else would do."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while events(folder) < 2:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "no rollout ended in time"
        wait_a_moment(process, 0.05)
