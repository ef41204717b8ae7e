"""Our numbers against verl's and TRL's; `make parity`, not part of `make test` (it installs the anchors).

What differs by definition is undone here, in the open, and nowhere else: see DIFFERENCES.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))
import cases
import environments
import ours

HERE = Path(__file__).parent
TOLERANCE = {"float64": 1e-10, "float32": 1e-4}
"""Relative to the largest absolute value of the tensor."""

DIFFERENCES = {
    ("verl", "whitened"): "Bessel's correction and an epsilon of 1e-8 inside the root",
    ("trl_ppo", "whitened"): "Bessel's correction and an epsilon of 1e-8 inside the root",
    ("verl", "policy/SequenceMean"): "1e-8 is added to every row's token count",
}
LOOSE = 1e-7
"""For the three above, in float64, after Bessel's correction is undone."""

EXPECTED = {
    "verl": {"float64": 6 * 2 + 3 * 2 + 2 + 2 + 6, "float32": 6 * 2 + 3 * 2 + 2 + 2},
    "trl_grpo": {"float64": 6 * 2 + 2, "float32": 6 * 2 + 2},
    "trl_ppo": {"float64": 5 + 6, "float32": 5},
}
"""How many numbers each anchor gives: a comparison that silently vanished would otherwise pass."""


@pytest.fixture(scope="session")
def anchors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, dict[str, Tensor]]]:
    """Every anchor's numbers, each computed by its own interpreter."""
    folder = tmp_path_factory.mktemp("anchors")
    found = {}
    for name in environments.PINS:
        environments.make(name)
        out = folder / f"{name}.pt"
        subprocess.run(
            [environments.python(name), HERE / f"anchor_{name}.py", out], check=True, cwd=HERE, timeout=300
        )
        found[name] = torch.load(out, weights_only=True)
    return found


def difference(anchor: str, name: str, mine: Tensor, theirs: Tensor, mask: Tensor) -> float:
    """Largest absolute difference over the largest absolute value, definitions that differ undone."""
    if name.endswith("whitened"):
        tokens = float(mask.sum())
        mine = mine * ((tokens - 1) / tokens) ** 0.5
    assert mine.shape == theirs.shape
    return float((mine - theirs).abs().max() / theirs.abs().max())


def tolerance(anchor: str, name: str, precision: str) -> float:
    loose = any(a == anchor and part in name for a, part in DIFFERENCES)
    return max(TOLERANCE[precision], LOOSE) if loose else TOLERANCE[precision]


def compared(anchor: str, precision: str, theirs: dict[str, Tensor]) -> dict[str, float]:
    """The relative difference of every number that the anchor gives."""
    dtype = getattr(torch, precision)
    short, long = cases.inputs(dtype), cases.inputs(torch.float64, tokens=cases.LONG)
    mine = ours.numbers(short)
    return {
        name: difference(
            anchor, name, mine[name], tensor, (long if name.startswith("gae2048") else short)["mask"]
        )
        for name, tensor in theirs.items()
    }


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("anchor", list(environments.PINS))
def test_numbers_equal_the_anchors(anchors, anchor, precision):
    differences = compared(anchor, precision, anchors[anchor][precision])
    assert len(differences) == EXPECTED[anchor][precision]
    report(anchor, precision, differences)
    wrong = {n: d for n, d in differences.items() if not d <= tolerance(anchor, n, precision)}
    assert wrong == {}


def test_the_cases_reach_every_branch():
    """A parity of losses that never clip would show nothing."""
    x = cases.inputs(torch.float64)
    ratio, mask = (x["logprobs"] - x["prox"]).exp(), x["mask"] > 0
    assert ((ratio > 1 + cases.CLIP_HIGH) & (x["advantages"] > 0) & mask).sum() > 5
    assert ((ratio > 1 + cases.CLIP) & (ratio < 1 + cases.CLIP_HIGH) & (x["advantages"] > 0) & mask).sum() > 0
    assert ((ratio < 1 - cases.CLIP) & (x["advantages"] < 0) & mask).sum() > 5
    assert ((ratio > cases.DUAL) & (x["advantages"] < 0) & mask).sum() > 0
    assert (((x["prox"] - x["behaviour"]).exp() > cases.CAP) & mask).sum() > 5
    moved = (x["values"] - x["old_values"]).abs()
    assert 5 < ((moved > cases.VALUE_CLIP) & mask).sum() < mask.sum() - 5


def test_a_wrong_sign_or_a_forgotten_clip_would_be_seen(anchors):
    x = cases.inputs(torch.float64)
    theirs = anchors["verl"]["float64"]
    unclipped = ours.policy(x, "TokenMean", clip_high=10.0)(x["logprobs"])
    assert abs(float(unclipped / theirs["policy/TokenMean"]) - 1) > 1e-3
    shifted = ours.gae_numbers(x, "gae")["gae/advantages"].roll(1, dims=1)
    assert difference("verl", "gae/advantages", shifted, theirs["gae/advantages"], x["mask"]) > 1e-3


def report(anchor: str, precision: str, differences: dict[str, float]) -> None:
    """One JSON line an anchor and precision into $MLWRIGHT_PARITY_REPORT."""
    target = os.environ.get("MLWRIGHT_PARITY_REPORT")
    if target:
        line = {"anchor": environments.PINS[anchor][0], "precision": precision, "relative": differences}
        with Path(target).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
