"""What a clock-closed window does to slow scripts, and what each duration weight makes of it.

    python benchmarks/duration_bias.py > benchmarks/duration_bias.json        # seconds

Slots start scripts one after another until the window closes; what still runs is cancelled. A script is slow (2 s)
with probability 0.11, else fast (0.2 s). The weights are computed by the code that the learner calls; the number of
interest is the weighted share of slow rows, which ought to be 0.11. Explained in docs/explanation/time.md.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlwright_api.rollout import Outcome
from mlwright_api.trainingrun import DurationWeighting, WeightingMode
from mlwright_trainer.exchange import Batch, Launch, TrainingRow, Window
from mlwright_trainer.rewards.weighting import LARGEST_MISSING_MASS, duration_weights, missing_mass

NO_CAP = 1000
POOLED_WINDOWS = 4


@dataclass(frozen=True)
class World:
    """Two classes of scripts and the slots that run them; seconds."""

    slots: int = 8
    window: float = 4.0
    slow_share: float = 0.11
    slow: float = 2.0
    fast: float = 0.2

    @property
    def mean(self) -> float:
        return self.slow_share * self.slow + (1 - self.slow_share) * self.fast

    def draw(self, generator: random.Random) -> float:
        """The duration of one script of the policy."""
        return self.slow if generator.random() < self.slow_share else self.fast

    @property
    def missing(self) -> float:
        """The true share of scripts that take longer than the window."""
        return self.slow_share if self.slow > self.window else 0.0


@dataclass(frozen=True)
class Spread:
    """Durations without classes: log-normal, as run times of real scripts look; seconds."""

    slots: int = 8
    window: float = 4.0
    median: float = 0.3
    sigma: float = 1.2

    def draw(self, generator: random.Random) -> float:
        """The duration of one script of the policy."""
        return generator.lognormvariate(math.log(self.median), self.sigma)

    @property
    def missing(self) -> float:
        """The true share of scripts that take longer than the window."""
        return 0.5 * math.erfc(math.log(self.window / self.median) / (self.sigma * math.sqrt(2)))


def window_of(world: World | Spread, generator: random.Random) -> Window:
    """Every launch of one window."""
    return Window(
        world.window, tuple(launch for _ in range(world.slots) for launch in slot(world, generator))
    )


def slot(world: World | Spread, generator: random.Random) -> Iterator[Launch]:
    """What one slot launches until the window closes."""
    now = 0.0
    while now < world.window:
        seconds = world.draw(generator)
        finished = now + seconds <= world.window
        yield Launch(now, seconds if finished else world.window - now, finished)
        now += seconds


def batch_of(window: Window) -> Batch:
    """The rows that finished in time."""
    return Batch(0, tuple(row(launch.seconds) for launch in window.launches if launch.finished), window)


def row(seconds: float) -> TrainingRow:
    return TrainingRow("", "task", "draft", (1,), (2,), (0.0,), 0, Outcome.SCORED, 0.0, seconds)


@dataclass(frozen=True)
class WeightedShare:
    """Weighted rows of one batch: slow ones, all, and the effective sample size over the rows."""

    slow: float
    total: float
    effective: float


def weighted_share(world: World, batch: Batch, mode: WeightingMode, cap: float) -> WeightedShare:
    """The weighted share of slow rows of one batch."""
    weights = duration_weights(batch, DurationWeighting(mode=mode, max_weight=cap))
    slow = [w for w, r in zip(weights.values, batch.rows, strict=True) if r.execution_seconds == world.slow]
    return WeightedShare(
        math.fsum(slow),
        math.fsum(weights.values),
        weights.effective_sample_size / len(batch.rows),
    )


def pooled(found: Sequence[WeightedShare]) -> dict[str, float]:
    """Slow rows over all rows of all windows together, and the standard error of that ratio."""
    share = math.fsum(each.slow for each in found) / math.fsum(each.total for each in found)
    total = math.fsum(each.total for each in found) / len(found)
    error = summary([(each.slow - share * each.total) / total for each in found])["standardError"]
    return {"mean": round(share, 4), "standardError": error}


def summary(values: Sequence[float]) -> dict[str, float]:
    """Mean and its standard error."""
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return {"mean": round(mean, 4), "standardError": round(math.sqrt(variance / len(values)), 4)}


def arm(world: World, batches: Sequence[Batch], mode: WeightingMode, cap: float) -> dict[str, object]:
    """One weighting over many windows: as the learner sees it (batch by batch), and pooled."""
    found = [weighted_share(world, batch, mode, cap) for batch in batches]
    return {
        "slowShare": summary([each.slow / each.total for each in found]),
        "slowSharePooled": pooled(found),
        "effectiveSampleShare": round(math.fsum(each.effective for each in found) / len(found), 3),
    }


def windows_report(world: World, repetitions: int, seed: int) -> dict[str, object]:
    """The three weightings on the same windows, with the estimated missing mass."""
    generator = random.Random(seed)
    windows = [window_of(world, generator) for _ in range(repetitions)]
    batches = [batch_of(window) for window in windows]
    return {
        "slots": world.slots,
        "windowSeconds": world.window,
        "slowSeconds": world.slow,
        "fastSeconds": world.fast,
        "trueSlowShare": world.slow_share,
        "windows": repetitions,
        "rowsPerWindow": round(sum(len(batch.rows) for batch in batches) / repetitions, 1),
        "unweighted": arm(world, batches, WeightingMode.NONE, NO_CAP),
        "inverseInclusion": arm(world, batches, WeightingMode.INVERSE_INCLUSION, NO_CAP),
        "durationAware": arm(world, batches, WeightingMode.DURATION_AWARE, NO_CAP),
        "durationAwareCapped3": arm(world, batches, WeightingMode.DURATION_AWARE, 3),
        "missingMass": missing_report(windows, world.missing),
    }


def spread_report(world: Spread, repetitions: int, seed: int) -> dict[str, object]:
    """How often windows are refused where durations are spread and few of them pass the window."""
    generator = random.Random(seed)
    windows = [window_of(world, generator) for _ in range(repetitions)]
    return {
        "medianSeconds": world.median,
        "sigma": world.sigma,
        "windowSeconds": world.window,
        "missingMass": missing_report(windows, world.missing),
    }


def missing_report(windows: Sequence[Window], true: float) -> dict[str, object]:
    """Kaplan-Meier's estimate of what takes longer than the window, alone and with the windows before."""
    alone = [missing_mass(window) for window in windows]
    groups = [
        windows[at : at + POOLED_WINDOWS]
        for at in range(0, len(windows) - POOLED_WINDOWS + 1, POOLED_WINDOWS)
    ]
    pooled = [missing_mass(*group) for group in groups]
    return {
        "true": round(true, 4),
        "estimated": summary(alone),
        "refused": refused(alone),
        f"estimatedOver{POOLED_WINDOWS}": summary(pooled),
        f"refusedOver{POOLED_WINDOWS}": refused(pooled),
    }


def refused(masses: Sequence[float]) -> float:
    """The share of estimates that would stop a run."""
    return round(sum(mass > LARGEST_MISSING_MASS for mass in masses) / len(masses), 3)


def deficit_report(world: World, rows: int, repetitions: int, seed: int) -> dict[str, object]:
    """Carry-over collection (`Continuous`): slow rows missing from the first `rows` finished, and after."""
    generator = random.Random(seed)
    runs = [slow_among_finished(world, (rows, 2 * rows), generator) for _ in range(repetitions)]
    return {
        "slots": world.slots,
        "rows": rows,
        "formula": round(world.slots * world.slow_share * (world.slow / world.mean - 1), 2),
        "missingInFirstHalf": summary([world.slow_share * rows - first for first, _ in runs]),
        "missingInSecondHalf": summary([world.slow_share * rows - (both - first) for first, both in runs]),
    }


def slow_among_finished(world: World, counts: Sequence[int], generator: random.Random) -> list[int]:
    """How many of the first `counts` scripts to finish were slow; each free slot starts the next at once."""
    running = [world.draw(generator) for _ in range(world.slots)]
    durations, slow, result = list(running), 0, []
    for finished in range(1, max(counts) + 1):
        first = running.index(min(running))
        slow += durations[first] == world.slow
        durations[first] = world.draw(generator)
        running[first] += durations[first]
        if finished in counts:
            result.append(slow)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--windows", type=int, default=4000, help="windows simulated for W = 4 s")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    report = {
        "seed": asked.seed,
        "window4": windows_report(World(), asked.windows, asked.seed),
        "window20": windows_report(World(window=20), max(asked.windows // 5, 8), asked.seed),
        "slowerThanTheWindow": windows_report(World(slow=6), asked.windows // 2, asked.seed),
        "spreadDurations": spread_report(Spread(), asked.windows // 2, asked.seed),
        "carryOver": deficit_report(World(slots=64), 4096, 40, asked.seed),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
