"""What there is to do, and in which order."""

from __future__ import annotations

from pathlib import Path

from benchmarks.quickstart.settings import Arm, Job, Settings, Sizes


def test_a_seed_is_finished_on_both_tasks_before_the_next_one_begins() -> None:
    jobs = Settings().jobs()
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    assert [str(job) for job in jobs[:6]] == [
        "seed 1, churn, rl",
        "seed 1, churn, best-of-n",
        "seed 1, churn, rejection-sampling",
        "seed 1, churn, shuffled",
        "seed 1, credit, rl",
        "seed 1, credit, best-of-n",
    ]


def test_there_are_five_seeds_of_four_arms_and_three_of_two_on_the_second_task() -> None:
    jobs = Settings().jobs()
    assert len(jobs) == len(set(jobs)) == 5 * 4 + 3 * 2
    assert {job.seed for job in jobs if job.task == "churn"} == {1, 2, 3, 4, 5}
    assert {job.seed for job in jobs if job.task == "credit"} == {1, 2, 3}


def test_on_every_task_the_arm_that_sets_the_budget_comes_first() -> None:
    jobs = Settings().jobs()
    for place, job in enumerate(jobs):
        assert Job(job.seed, job.task, Arm.RL) in jobs[: place + 1]


def test_a_part_can_be_asked_for() -> None:
    jobs = Settings(seeds=(9,), arms=(Arm.RL, Arm.SHUFFLED)).jobs()
    assert [str(job) for job in jobs] == [
        "seed 9, churn, rl",
        "seed 9, churn, shuffled",
        "seed 9, credit, rl",
    ]


def test_every_arm_has_a_folder_of_its_own_and_a_seed_one_model(tmp_path: Path) -> None:
    settings = Settings(state=tmp_path)
    folders = [settings.folder(job) for job in settings.jobs()]
    assert len(set(folders)) == len(folders)
    assert all(folder.is_relative_to(tmp_path) for folder in folders)
    assert len({settings.initial_weights(job.seed) for job in settings.jobs()}) == 5


def test_only_the_quickstart_s_own_sizes_make_a_whole_benchmark() -> None:
    assert Sizes().whole
    assert not Sizes(samples=8).whole
