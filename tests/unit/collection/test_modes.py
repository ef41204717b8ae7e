"""What a batch consists of in each mode, also when the process was killed in the middle."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from mlwright_api.rollout import Outcome
from mlwright_trainer.collection.modes import Continuous, Synchronous, Window
from mlwright_trainer.errors import InternalError, UserError
from mlwright_trainer.ledger import Ledger
from mlwright_trainer.progress import Silence

World = Any  # the conftest's World; importlib mode gives its module no importable name
Killed = KeyboardInterrupt


def synchronous(world: World, size: int = 6) -> Synchronous:
    return Synchronous(
        ledger=world.ledger, rounds=world.rounds, executor=world.executor, size=size, progress=Silence()
    )


def continuous(world: World, size: int = 6, ahead: int = 8) -> Continuous:
    return Continuous(
        ledger=world.ledger,
        rounds=world.rounds,
        executor=world.executor,
        size=size,
        ahead=ahead,
        progress=Silence(),
    )


def window(world: World, seconds: float = 10.0, ahead: int = 8) -> Window:
    return Window(
        ledger=world.ledger,
        rounds=world.rounds,
        executor=world.executor,
        seconds=seconds,
        ahead=ahead,
        progress=Silence(),
        now=world.clock,
    )


def kill_after(world: World, count: int) -> None:
    """Let the backend deliver `count` results, then kill whoever asks for more."""
    collect = world.backend.collect
    left = [count]

    def dying(timeout: float | None = None) -> Any:
        if left[0] <= 0:
            raise Killed
        finished = collect(timeout)
        left[0] -= len(finished)
        return finished

    world.backend.collect = dying


class TestSynchronous:
    def test_a_batch_is_its_round_in_sampling_order(self, world: World) -> None:
        world.rounds.seconds = lambda _round, position: 9.0 - position
        assert synchronous(world).collect(0) == [f"train-00000-{i:04d}" for i in range(6)]

    def test_never_more_scripts_run_than_there_are_slots(self, world: World) -> None:
        synchronous(world).collect(0)
        assert world.backend.most_at_once == 2

    def test_every_slot_is_used_while_scripts_wait(self, world: World) -> None:
        synchronous(world).collect(0)
        assert world.clock.time == 3  # six scripts of a second on two slots

    def test_rows_that_are_never_trained_are_left_out(self, world: World) -> None:
        world.backend.outcome = lambda name: (
            Outcome.INFRASTRUCTURE_FAILED if name.endswith("3") else Outcome.SCORED
        )
        ids = synchronous(world).collect(0)
        assert len(ids) == 5
        assert "train-00000-0003" not in ids

    @pytest.mark.parametrize("results", range(7))
    def test_after_a_kill_nothing_closed_runs_again_and_nothing_is_lost(
        self, world: World, results: int
    ) -> None:
        kill_after(world, results)
        with suppress(Killed):
            synchronous(world).collect(0)
        closed = {row.id for row in world.ledger.rollouts("Train") if row.outcome is not None}
        again = world.restarted()
        ids = synchronous(again).collect(0)
        assert ids == [f"train-00000-{i:04d}" for i in range(6)]
        assert closed.isdisjoint(again.backend.started)
        assert again.rounds.made == []

    def test_asking_twice_for_a_collected_batch_runs_nothing(self, world: World) -> None:
        synchronous(world).collect(0)
        started = list(world.backend.started)
        synchronous(world).collect(0)
        assert world.backend.started == started


class TestContinuous:
    def test_a_batch_is_the_next_rows_to_finish(self, world: World) -> None:
        world.rounds.seconds = lambda number, position: 50.0 if (number, position) == (0, 0) else 1.0
        ids = continuous(world).collect(0)
        assert len(ids) == 6
        assert "train-00000-0000" not in ids

    def test_what_ran_too_long_for_one_batch_is_in_the_next(self, world: World) -> None:
        world.rounds.seconds = lambda number, position: 50.0 if (number, position) == (0, 0) else 1.0
        mode = continuous(world)
        world.ledger.assign_batch(0, mode.collect(0))
        assert "train-00000-0000" in mode.collect(1)

    def test_no_row_is_ever_lost_or_trained_twice(self, world: World) -> None:
        world.rounds.seconds = lambda number, position: 1.0 + (7 * number + 3 * position) % 5
        mode = continuous(world)
        seen: list[str] = []
        for number in range(5):
            ids = mode.collect(number)
            world.ledger.assign_batch(number, ids)
            seen += ids
        assert len(seen) == len(set(seen)) == 30
        left = {row.id for row in world.ledger.rollouts("Train")} - set(seen)
        assert len(left) < 8 + 2  # what was sampled ahead, or ran

    def test_nothing_runs_when_the_batch_is_handed_over(self, world: World) -> None:
        continuous(world).collect(0)
        assert world.executor.running == 0

    def test_a_slow_and_a_fast_kind_are_trained_in_the_share_in_which_they_are_sampled(
        self, world: World
    ) -> None:
        """Carry-over is unbiased (algorithms.md A): the slow half must not fall behind the fast one."""
        world.rounds.seconds = lambda _round, position: 9.0 if position % 2 else 1.0
        mode = continuous(world, size=8)
        slow = 0
        for number in range(20):
            ids = mode.collect(number)
            world.ledger.assign_batch(number, ids)
            slow += sum(int(id[-4:]) % 2 for id in ids)
        assert abs(slow / 160 - 0.5) < 0.02

    @pytest.mark.parametrize("results", range(8))
    def test_after_a_kill_interrupted_scripts_run_first_and_finished_ones_not_again(
        self, world: World, results: int
    ) -> None:
        kill_after(world, results)
        with suppress(Killed):
            continuous(world).collect(0)
        closed = {row.id for row in world.ledger.rollouts("Train") if row.outcome is not None}
        interrupted = {
            row.id
            for row in world.ledger.rollouts("Train")
            if row.outcome is None and row.launched_at is not None
        }
        again = world.restarted()
        assert len(continuous(again).collect(0)) == 6
        assert closed.isdisjoint(again.backend.started)
        assert set(again.backend.started[: len(interrupted)]) == interrupted


class TestWindow:
    def test_what_still_runs_when_the_clock_closes_is_cancelled_without_a_reward(self, world: World) -> None:
        world.rounds.seconds = lambda _round, position: 7.0 if position % 8 == 0 else 1.5
        ids = window(world, seconds=10.0).collect(0)
        cancelled = [row for row in world.ledger.rollouts("Train") if row.outcome is Outcome.CANCELLED]
        assert cancelled
        assert all(row.reward is None for row in cancelled)
        assert {row.id for row in cancelled}.isdisjoint(ids)

    def test_every_launch_is_written_down_with_its_offset(self, world: World) -> None:
        window(world, seconds=4.0).collect(0)
        launches = world.ledger.launches(0)
        assert [launch.offset for launch in launches] == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
        assert all(launch.finished for launch in launches)

    def test_a_cancelled_launch_counts_with_the_time_that_it_was_watched(self, world: World) -> None:
        world.rounds.seconds = lambda _round, position: 3.0 if position == 25 else 0.375
        window(world, seconds=5.25, ahead=40).collect(0)
        watched = [launch for launch in world.ledger.launches(0) if not launch.finished]
        assert len(watched) in (1, 2)
        assert all(launch.offset + launch.seconds == pytest.approx(5.25) for launch in watched)

    def test_a_window_that_misses_too_much_stops_the_run_before_the_update(self, world: World) -> None:
        world.rounds.seconds = lambda _round, position: 100.0 if position % 2 else 1.0
        with pytest.raises(UserError, match="windowSeconds"):
            window(world, seconds=10.0).collect(0)
        assert world.ledger.batches() == 0

    def test_a_window_in_which_nothing_finished_says_so(self, world: World) -> None:
        world.rounds.seconds = lambda _round, _position: 100.0
        with pytest.raises(InternalError, match="no rollout finished"):
            window(world, seconds=2.0).collect(0)

    def test_samples_that_were_not_launched_serve_the_next_window(self, world: World) -> None:
        world.rounds.seconds = lambda _round, _position: 1.0
        mode = window(world, seconds=2.0, ahead=12)
        world.ledger.assign_batch(0, mode.collect(0))
        assert mode.collect(1)[0] == "train-00000-0004"
        assert world.rounds.made[1] == ("Train", 1, 4)  # topped up, no more

    def test_a_window_that_runs_out_of_samples_gets_more(self, world: World) -> None:
        ids = window(world, seconds=6.0, ahead=4).collect(0)
        assert len(ids) == 12
        assert len(world.rounds.made) >= 3

    def test_an_interrupted_window_goes_on_with_the_time_that_it_had_left(self, world: World) -> None:
        kill_after(world, 6)  # three seconds on two slots
        with pytest.raises(Killed):
            window(world, seconds=10.0, ahead=30).collect(0)
        again = world.restarted()
        window(again, seconds=10.0, ahead=30).collect(0)
        assert again.clock.time == pytest.approx(7)

    def test_a_closed_window_is_not_run_again(self, world: World) -> None:
        first = window(world).collect(0)
        again = world.restarted()
        assert window(again).collect(0) == first
        assert again.backend.started == []

    def test_an_end_after_the_clock_is_a_cancellation_whoever_was_faster(
        self, make: Callable[..., World], ledger: Ledger
    ) -> None:
        world = make()
        world.rounds.seconds = lambda _round, position: 2.5 if position == 20 else 0.5
        mode = window(world, seconds=6.0, ahead=40)
        cancel = world.backend.cancel

        def too_late(id: str) -> None:
            start, _ = world.backend.running[id]
            world.backend.running[id] = (start, 6.0625 - start)
            world.clock.time = 6.0625

        world.backend.cancel = too_late
        mode.collect(0)
        world.backend.cancel = cancel
        late = [row for row in ledger.rollouts("Train") if row.outcome is Outcome.CANCELLED]
        assert late
        assert all(row.status.scores == {} for row in late)
