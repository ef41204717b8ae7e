"""Bootstrap intervals of a score over the rows of a split."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mlwright_sandbox.errors import AnswersError, InvalidSubmissionError

Rows = npt.NDArray[np.intp]
_SEED = 0
_MOST_RESAMPLES = 1000
_FEWEST_RESAMPLES = 100
_ROWS_DRAWN = 5_000_000
"""Together over all resamples, so that a large split takes seconds, not minutes."""
_PERCENTILES = (2.5, 97.5)


def resamples(rows: int) -> int:
    """How many resamples a split of `rows` rows gets: 1,000, fewer above 5,000 rows, at least 100."""
    return max(_FEWEST_RESAMPLES, min(_MOST_RESAMPLES, _ROWS_DRAWN // rows))


def bootstrap_interval(score: Callable[[Rows], float], rows: int) -> tuple[float, float] | None:
    """The 95 % percentile interval of `score` over rows drawn with replacement; the same at every call.

    Resamples without a score (one class only) are left out; None where more than half are.
    """
    random = np.random.default_rng(_SEED)
    count = resamples(rows)
    found = [
        value for _ in range(count) if (value := _try(score, random.integers(0, rows, rows))) is not None
    ]
    if len(found) <= count / 2:
        return None
    low, high = np.percentile(found, _PERCENTILES)
    return float(low), float(high)


def _try(score: Callable[[Rows], float], rows: Rows) -> float | None:
    try:
        return score(rows)
    except (AnswersError, InvalidSubmissionError):
        return None
