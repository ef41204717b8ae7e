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
from pathlib import Path
from typing import Any

import pytest
from mlwright_trainer.ledger import LedgerReader

pytestmark = [pytest.mark.sandbox, pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(1200)]
Miniature = Any

KILLS = 20
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


def kill_group(process: subprocess.Popen[str]) -> None:
    """SIGKILL the command alone: what it started has to notice by itself."""
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def test_twenty_kills_change_nothing_and_lose_nothing(miniature: Miniature, undisturbed: Path) -> None:
    folder = miniature.root / "killed"
    moments = random.Random(11)
    kills = 0
    while kills < KILLS:
        resume = ["--resume"] if folder.exists() else []
        process = miniature.start("run", miniature.run_file, "--dir", folder, *resume)
        try:
            process.communicate(timeout=moments.uniform(0.5, 9.0))
        except subprocess.TimeoutExpired:
            kill_group(process)
            kills += 1
        else:
            break  # finished before the next kill: the rest of the kills would hit nothing
    done = miniature.run("run", miniature.run_file, "--dir", folder, "--resume", timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, done.stderr
    assert kills >= 5
    assert digests(folder) == digests(undisturbed)
    assert facts(folder) == facts(undisturbed)


def test_no_row_is_trained_twice_and_none_is_left_open(undisturbed: Path) -> None:
    with LedgerReader(undisturbed / "ledger.sqlite") as ledger:
        rows = ledger.rollouts("Train")
        batches = [ledger.batch(number) for number in range(ledger.batches())]
    trained = [row.id for batch in batches if batch for row in batch.rows]
    assert len(trained) == len(set(trained)) == len(rows) == 32
    assert all(row.outcome is not None for row in rows)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("synchronous", {}),
        ("continuous", {"collection": {"mode": "Continuous"}, "prompts": {"improveFraction": 0.5}}),
        (
            "window",
            {
                "collection": {"mode": "Window", "windowSeconds": 3},
                "algorithm": {"batchSize": None, "durationWeighting": {"mode": "InverseInclusion"}},
            },
        ),
    ],
)
def test_replay_gives_the_runs_digest_in_every_mode(
    miniature: Miniature, name: str, changes: dict[str, Any]
) -> None:
    folder = miniature.root / f"mode-{name}"
    file = miniature.write({**changes, "evaluation": {"samples": 0}}, name=f"{name}.yaml")
    done = miniature.run("run", file, "--dir", folder)
    assert done.returncode == 0, done.stderr
    replayed = miniature.run("replay", folder, "--json")
    assert replayed.returncode == 0, replayed.stderr
    answer = json.loads(replayed.stdout)
    assert answer["equal"] is True
    assert answer["weightsDigest"] == digests(folder)[-1]
    assert answer["updates"] == 4


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
    assert [update["equal"] for update in json.loads(replayed.stdout)["perUpdate"]] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(miniature: Miniature, undisturbed: Path) -> None:
    folder = miniature.root / "interrupted"
    process = miniature.start("run", miniature.run_file, "--dir", folder)
    wait_for_rows(folder, process)
    process.send_signal(signal.SIGINT)
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
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        if (folder / "ledger.sqlite").exists():
            with LedgerReader(folder / "ledger.sqlite") as ledger:
                if any(row.outcome is not None for row in ledger.rollouts()):
                    return
        with_patience(process)
    raise AssertionError("no rollout ended in time")


def with_patience(process: subprocess.Popen[str]) -> None:
    """Wait a moment, or less if the process ends."""
    try:
        process.wait(timeout=0.1)
    except subprocess.TimeoutExpired:
        return
