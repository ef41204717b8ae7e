"""95 % intervals: Wilson for fractions, seeded bootstrap for fresh samples, Student's t over updates and seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlwright_trainer.report.model import Range

Z = 1.959963984540054
"""The standard normal quantile at 97.5 %."""
RESAMPLES = 2_000
_SEED = 20_250_901
_BLOCK = 4_000_000
"""Random draws held in memory at a time."""


def wilson(successes: int, n: int) -> Range | None:
    """Wilson's score interval for a fraction (Wilson 1927); None without trials."""
    if n == 0:
        return None
    p, z2 = successes / n, Z * Z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def newcombe(before: tuple[int, int], after: tuple[int, int]) -> Range | None:
    """Interval for the difference of two fractions, after - before (Newcombe 1998, method 10).

    Each argument is (successes, trials); None where either has no trials.
    """
    first, second = wilson(*before), wilson(*after)
    if first is None or second is None:
        return None
    p, q = before[0] / before[1], after[0] / after[1]
    low = math.hypot(q - second[0], first[1] - p)
    high = math.hypot(second[1] - q, p - first[0])
    return q - p - low, q - p + high


def bootstrap_mean(values: Sequence[float]) -> Range | None:
    """Percentile bootstrap of a mean, 2,000 resamples, the same at every call; None under two values."""
    if len(values) < 2:
        return None
    return _percentiles(_resampled_means(np.asarray(values, dtype=np.float64), stream=0))


def bootstrap_difference(before: Sequence[float], after: Sequence[float]) -> Range | None:
    """Percentile bootstrap of mean(after) - mean(before), the two resampled apart; None under two values."""
    if len(before) < 2 or len(after) < 2:
        return None
    first = _resampled_means(np.asarray(before, dtype=np.float64), stream=1)
    second = _resampled_means(np.asarray(after, dtype=np.float64), stream=2)
    return _percentiles(second - first)


def t_interval(values: Sequence[float]) -> Range | None:
    """Student's interval of a mean; None under two values."""
    if len(values) < 2:
        return None
    from scipy.special import stdtrit  # a quarter of a second that `mlwright --help` need not wait for

    n, mean = len(values), math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = float(stdtrit(n - 1, 0.975)) * math.sqrt(variance / n)
    return mean - half, mean + half


def _resampled_means(values: np.ndarray, *, stream: int) -> np.ndarray:
    generator = np.random.default_rng((_SEED, stream))
    rows = max(1, _BLOCK // len(values))
    blocks = [
        values[generator.integers(0, len(values), size=(min(rows, RESAMPLES - start), len(values)))].mean(
            axis=1
        )
        for start in range(0, RESAMPLES, rows)
    ]
    return np.concatenate(blocks)


def _percentiles(means: np.ndarray) -> Range:
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
