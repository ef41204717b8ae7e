"""The learner from batch to publication, on a tiny model in this process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from mlwright_trainer.errors import InternalError, UserError
from mlwright_trainer.learning.digest import weights_digest
from mlwright_trainer.learning.learner import Learner

pytestmark = pytest.mark.torch


def learner(tmp_path: Path, spec: Any, exchange: Any, **more: Any) -> Learner:
    return Learner(
        spec=spec,
        weights=tmp_path / "weights",
        checkpoints=tmp_path / "checkpoints",
        exchange=exchange,
        **more,
    )


def test_each_update_publishes_the_next_version_and_version_zero_comes_first(
    tmp_path, weights, spec, exchange
):
    learner(tmp_path, spec(), exchange).run(2)
    assert exchange.order == ["publish 0", "batch 0", "publish 1", "batch 1", "publish 2"]
    assert len(set(exchange.digests)) == 3


def test_version_zero_is_published_with_its_own_digest_and_no_metrics(tmp_path, weights, spec, exchange):
    learner(tmp_path, spec(), exchange).run(0)
    assert exchange.published[0].digest == weights_digest(weights / "0")
    assert exchange.published[0].metrics == {}
