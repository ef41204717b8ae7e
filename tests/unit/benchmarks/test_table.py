"""The page of results says what it knows, and what it does not."""

from __future__ import annotations

from typing import Any

from mlwright_trainer.report.model import Estimate

from benchmarks.quickstart.comparison import PairedDifference, Summary
from benchmarks.quickstart.results import Results, Unfinished
from benchmarks.quickstart.settings import Arm
from benchmarks.quickstart.table import markdown
from benchmarks.quickstart.unseen import Unseen

SOME = Estimate(n=3, mean=0.8125, interval=(0.79, 0.835))
MEASURES = ("validFraction", "scoreMean", "scoreWithFailures", "bestFinal", "sandboxSeconds", "wallSeconds")


def results(**changes: Any) -> Results:
    values: dict[str, Any] = {
        "planned": 26,
        "finished": 26,
        "unfinished": [],
        "rejection_rate": 3e-4,
        "sizes": {},
        "cores": 2,
        "versions": {},
        "unseen": [],
        "summaries": [],
        "differences": [],
        "arms": [],
    }
    return Results(**{**values, **changes})


def test_every_arm_without_a_result_is_named_with_the_reason() -> None:
    missing = [Unfinished(job="seed 5, churn, shuffled", reason="failed: the logits are not finite")]
    page = markdown(results(finished=25, unfinished=missing))
    assert "25 of 26 arms are finished" in page
    assert "- seed 5, churn, shuffled: failed: the logits are not finite" in page


def test_means_carry_their_intervals_and_their_number_of_seeds() -> None:
    arm = Summary(task="churn", arm=Arm.RL, seeds=[1, 2, 3], measures=dict.fromkeys(MEASURES, SOME))
    assert "| `rl` | 3 | 0.812 [0.790, 0.835] |" in markdown(results(summaries=[arm]))


def test_differences_carry_their_sign() -> None:
    arm = Summary(task="churn", arm=Arm.RL, seeds=[1], measures=dict.fromkeys(MEASURES, None))
    lower = Estimate(n=3, mean=-0.02, interval=(-0.05, 0.01))
    pair = PairedDifference(
        task="churn",
        first=Arm.RL,
        second=Arm.SHUFFLED,
        seeds=[1, 2, 3],
        measures=dict.fromkeys(MEASURES[:4], lower),
    )
    page = markdown(results(summaries=[arm], differences=[pair]))
    assert "| `rl` - `shuffled` | 3 | -0.020 [-0.050, +0.010] |" in page
    assert "| `rl` | 1 | - | - | - | - | - | - |" in page


def test_a_try_is_called_a_try() -> None:
    assert "not a benchmark" in markdown(results(sizes={"samples": 8}))
    assert "not a benchmark" not in markdown(results())


def test_the_second_task_says_which_words_were_searched_for() -> None:
    arm = Summary(task="credit", arm=Arm.RL, seeds=[1], measures=dict.fromkeys(MEASURES, SOME))
    searched = [
        Unseen(task="credit", seed=seed, examples=20_000, words=["credit", "age"]) for seed in (1, 2, 3)
    ]
    page = markdown(results(summaries=[arm], unseen=searched))
    assert "(`credit`, `age`) occur in none of 60,000 training texts of 3 seeds" in page
    assert "was not looked at" in markdown(results(summaries=[arm]))
