"""Metrics of cells that hold words or a ranking of labels, separated by blanks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlwright_api.metric_catalog import DEFAULT_K
from mlwright_api.mltask import MetricSpec

from mlwright_sandbox.errors import AnswersError
from mlwright_sandbox.metrics.columns import Column, Metric, single


def word_jaccard(answers: Column, predictions: Column) -> float:
    """Mean over rows of |A and P| / |A or P| of the sets of lower-case words; two empty sets count as 1."""
    pairs = zip(answers, predictions, strict=True)
    return float(np.mean([_jaccard(set(a.lower().split()), set(p.lower().split())) for a, p in pairs]))


def _jaccard(answer: set[str], guess: set[str]) -> float:
    together = answer | guess
    return len(answer & guess) / len(together) if together else 1.0


def map_at_k(answers: Sequence[Column], predictions: Sequence[Column], spec: MetricSpec) -> float:
    """Mean average precision at k: later labels and repeated ones do not count."""
    length = spec.k or DEFAULT_K
    pairs = zip(_relevant(answers[0]), predictions[0], strict=True)
    return float(np.mean([_average_precision(true, ranked(cell, length), length) for true, cell in pairs]))


def recall_at_k(answers: Sequence[Column], predictions: Sequence[Column], spec: MetricSpec) -> float:
    """Mean share of a row's true labels (at most k of them) that are among its first k."""
    length = spec.k or DEFAULT_K
    pairs = zip(_relevant(answers[0]), predictions[0], strict=True)
    shares = [len(true & set(ranked(cell, length))) / min(len(true), length) for true, cell in pairs]
    return float(np.mean(shares))


def ranked(cell: str, length: int) -> list[str]:
    """The first `length` labels of a cell, a repeated one only at its first place."""
    return list(dict.fromkeys(cell.split()[:length]))


def _relevant(answers: Column) -> list[set[str]]:
    found = [set(cell.split()) for cell in answers]
    if not all(found):
        raise AnswersError("the answers have a row without a label")
    return found


def _average_precision(true: set[str], guesses: Sequence[str], length: int) -> float:
    hits = 0
    total = 0.0
    for place, guess in enumerate(guesses, start=1):
        if guess in true:
            hits += 1
            total += hits / place
    return total / min(len(true), length)


TEXT: dict[str, Metric] = {
    "word_jaccard": single(word_jaccard),
    "map_at_k": map_at_k,
    "recall_at_k": recall_at_k,
}
