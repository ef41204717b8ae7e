"""The learner from batch to publication, on a tiny model in this process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from mlwright_trainer.errors import InternalError, UserError
from mlwright_trainer.exchange import Batch
from mlwright_trainer.learning.digest import weights_digest
from mlwright_trainer.learning.disk import MARKER
from mlwright_trainer.learning.learner import Learner
from mlwright_trainer.learning.replay import replay

pytestmark = pytest.mark.torch
Spec = Callable[..., Any]


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


def test_a_version_is_an_ordinary_folder_with_the_tokenizer_of_version_zero(
    tmp_path, weights, spec, exchange
):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    learner(tmp_path, spec(), exchange).run(1)
    names = {path.name for path in (weights / "0").iterdir()}
    assert {path.name for path in (weights / "1").iterdir()} == names | {MARKER}
    for name in names - {"model.safetensors"}:
        assert (weights / "1" / name).read_bytes() == (weights / "0" / name).read_bytes()
    assert AutoTokenizer.from_pretrained(weights / "1").convert_ids_to_tokens(7) == "t7"
    model = AutoModelForCausalLM.from_pretrained(weights / "1")
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()


def test_untied_weights_are_saved_apart(tmp_path, make_model, spec, exchange):
    from transformers import AutoModelForCausalLM

    make_model(tmp_path / "weights" / "0", tied=False)
    learner(tmp_path, spec(), exchange).run(1)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "weights" / "1")
    assert not torch.equal(loaded.lm_head.weight, loaded.model.embed_tokens.weight)


def test_the_same_batches_give_the_same_bits_and_another_seed_does_not(
    tmp_path, weights, spec, exchange, initial
):
    learner(tmp_path, spec(), exchange).run(3)
    arguments = {"initial": initial, "batches": exchange.stored.__getitem__, "updates": 3}
    again = replay(spec=spec(), scratch=tmp_path / "again", **arguments)
    other = replay(spec=spec(seed=1), scratch=tmp_path / "other", **arguments)
    assert list(again.digests) == exchange.digests
    assert again.digests[0] == other.digests[0]
    assert again.digests[1] != other.digests[1]


def test_replay_answers_what_another_weighting_would_have_done(tmp_path, weights, spec, exchange, initial):
    from mlwright_api.trainingrun import DurationWeighting

    learner(tmp_path, spec(), exchange).run(2)
    result = replay(
        spec=spec(),
        initial=initial,
        batches=exchange.stored.__getitem__,
        updates=2,
        weighting=DurationWeighting(mode="DurationAware", force=True),
        scratch=tmp_path / "other",
    )
    assert result.digests[1] != exchange.digests[1]
    assert (
        result.metrics[1]["effectiveSampleSize"] < 8 == exchange.published[1].metrics["effectiveSampleSize"]
    )


def test_replay_leaves_the_initial_weights_alone(tmp_path, weights, spec, exchange, initial):
    learner(tmp_path, spec(), exchange).run(1)
    before = sorted((path.name, path.read_bytes()) for path in initial.iterdir())
    replay(
        spec=spec(),
        initial=initial,
        batches=exchange.stored.__getitem__,
        updates=1,
        scratch=tmp_path / "again",
    )
    assert sorted((path.name, path.read_bytes()) for path in initial.iterdir()) == before


def test_run_in_two_pieces_is_run_in_one(tmp_path, weights, spec, exchange):
    whole = learner(tmp_path, spec(), exchange)
    whole.run(3)
    digests = exchange.digests
    shutil.rmtree(tmp_path / "checkpoints")
    for version in (1, 2, 3):
        shutil.rmtree(weights / str(version), ignore_errors=True)
    pieces = learner(tmp_path, spec(), exchange)
    for updates in (1, 2, 3):
        pieces.run(updates)
    assert exchange.digests == digests
    assert pieces.version == 3


def test_a_new_process_goes_on_from_the_checkpoint(tmp_path, weights, spec, exchange):
    learner(tmp_path, spec(), exchange).run(2)
    exchange.order.clear()
    learner(tmp_path, spec(), exchange).run(3)
    assert exchange.order == ["publish 2", "batch 2", "publish 3"]


def test_a_torn_checkpoint_is_skipped_with_a_warning(tmp_path, weights, spec, exchange):
    class Notes:
        lines: list[str] = []

        def say(self, line: str) -> None:
            self.lines.append(line)

    learner(tmp_path, spec(), exchange).run(2)
    expected = exchange.digests[2]
    newest = tmp_path / "checkpoints" / "2" / "tensors.pt"
    newest.write_bytes(newest.read_bytes()[:-100])
    exchange.order.clear()
    learner(tmp_path, spec(), exchange, progress=Notes()).run(2)
    assert exchange.order == ["publish 1", "batch 1", "publish 2"]
    assert "checkpoints/2 is skipped: missing, added or changed: tensors.pt" in Notes.lines[0]
    assert weights_digest(weights / "2") == expected


def test_old_checkpoints_and_weights_go_but_never_version_zero(tmp_path, weights, spec, exchange):
    learner(tmp_path, spec(checkpoint={"keep": 2}), exchange).run(4)
    assert sorted(path.name for path in weights.iterdir()) == ["0", "3", "4"]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["3", "4", "restart.json"]


def test_checkpoints_may_be_rarer_than_updates_and_the_last_one_is_always_there(
    tmp_path, weights, spec, exchange
):
    learner(tmp_path, spec(checkpoint={"everyUpdates": 2, "keep": 5}), exchange).run(5)
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"2", "4", "5", "restart.json"}


def test_the_metrics_of_an_update_survive_a_restart(tmp_path, weights, spec, exchange):
    learner(tmp_path, spec(), exchange).run(1)
    measured = exchange.published[1].metrics
    learner(tmp_path, spec(), exchange).run(1)
    assert exchange.published[1].metrics == measured


def test_the_marker_names_restart_version_and_checksums(tmp_path, weights, spec, exchange):
    learner(tmp_path, spec(), exchange).run(1)
    learner(tmp_path, spec(), exchange).run(2)
    markers = [json.loads((weights / str(v) / MARKER).read_text()) for v in (1, 2)]
    assert [(m["version"], m["restart"], m["threads"]) for m in markers] == [(1, 1, 1), (2, 2, 1)]
    assert markers[1]["files"]["model.safetensors"].startswith("sha256:")


def test_a_learner_that_was_overtaken_writes_nothing_more(tmp_path, weights, spec, exchange):
    older = learner(tmp_path, spec(), exchange)
    older.run(1)
    learner(tmp_path, spec(), exchange)
    with pytest.raises(InternalError, match="has taken over"):
        older.run(2)
    assert not (weights / "2").exists()


def test_weights_left_by_a_process_that_died_are_kept_if_equal_and_replaced_if_not(
    tmp_path, weights, spec, exchange
):
    learner(tmp_path, spec(), exchange).run(1)
    digest = exchange.digests[1]
    shutil.rmtree(tmp_path / "checkpoints")
    stamp = (weights / "1" / MARKER).read_bytes()
    learner(tmp_path, spec(), exchange, restart=9).run(1)
    assert (weights / "1" / MARKER).read_bytes() == stamp
    shutil.rmtree(tmp_path / "checkpoints")
    (weights / "1" / "model.safetensors").write_bytes(b"half")
    learner(tmp_path, spec(), exchange, restart=10).run(1)
    assert weights_digest(weights / "1") == digest
    assert json.loads((weights / "1" / MARKER).read_text())["restart"] == 10


def test_without_initial_weights_there_is_a_plain_error(tmp_path, spec, exchange):
    with pytest.raises(UserError, match="no initial weights"):
        learner(tmp_path, spec(), exchange)
    assert list(tmp_path.iterdir()) == []


def test_weights_that_were_lost_are_written_again_from_the_checkpoint(tmp_path, weights, spec, exchange):
    learner(tmp_path, spec(), exchange).run(2)
    digest = exchange.digests[2]
    shutil.rmtree(weights / "2")
    learner(tmp_path, spec(), exchange).run(2)
    assert weights_digest(weights / "2") == digest


def test_the_wrong_batch_is_refused(tmp_path, weights, spec, exchange, batch_rows):
    exchange.stored[0] = Batch(5, batch_rows)
    with pytest.raises(InternalError, match="asked for batch 0, was given batch 5"):
        learner(tmp_path, spec(), exchange).run(1)


def test_a_window_in_which_nothing_finished_leaves_the_weights_as_they_are(tmp_path, weights, spec, exchange):
    exchange.stored[0] = Batch(0, ())
    learner(tmp_path, spec(), exchange).run(2)
    assert exchange.digests[0] == exchange.digests[1] != exchange.digests[2]


def test_the_thread_count_of_the_run_is_restored(tmp_path, weights, spec, exchange):
    learner(tmp_path, spec(), exchange).run(1)
    torch.set_num_threads(2)
    try:
        learner(tmp_path, spec(), exchange).run(1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(1)


def test_a_nan_stops_before_anything_is_saved_and_names_the_row(
    tmp_path, weights, spec, exchange, batch_rows
):
    broken = replace(batch_rows[3], reward=float("nan"))
    exchange.stored[0] = Batch(0, (*batch_rows[:3], broken, *batch_rows[4:]))
    with pytest.raises(InternalError, match=f"{broken.id}.*not finite"):
        learner(tmp_path, spec(), exchange).run(1)
    assert [path.name for path in weights.iterdir()] == ["0"]


def test_weights_that_are_not_finite_stop_with_the_ids(tmp_path, weights, spec, exchange, batch_rows):
    from safetensors.torch import load_file, save_file

    file = weights / "0" / "model.safetensors"
    tensors = load_file(file)
    tensors["model.norm.weight"][0] = float("nan")
    save_file(tensors, file, metadata={"format": "pt"})
    exchange.stored[0] = Batch(0, batch_rows)
    with pytest.raises(InternalError, match=r"log-probability of a token is not finite.*v0-0"):
        learner(tmp_path, spec(), exchange).run(1)


def test_an_exploding_step_stops_before_it_is_saved(tmp_path, weights, spec, exchange, batch_rows):
    huge = tuple(replace(row, reward=1e38) for row in batch_rows)
    exchange.stored[0] = Batch(0, huge)
    with pytest.raises(InternalError, match="not finite, nothing was saved; rows v0-"):
        learner(tmp_path, spec({"advantageNormalization": "None"}), exchange).run(1)
    assert [path.name for path in weights.iterdir()] == ["0"]


def test_a_sampler_that_disagrees_stops_the_run_with_the_numbers(
    tmp_path, weights, spec, exchange, batch_rows
):
    off = tuple(replace(row, logprobs=tuple(x - 0.001 for x in row.logprobs)) for row in batch_rows)
    exchange.stored[0] = Batch(0, off)
    with pytest.raises(InternalError, match=r"disagree about version 0: .* 0\.001 nats .* 0\.0001"):
        learner(tmp_path, spec(), exchange).run(1)
    assert exchange.version() == 0


def test_rows_of_older_versions_are_no_disagreement(tmp_path, weights, spec, exchange, batch_rows):
    stale = tuple(
        replace(row, policy_version=-1, logprobs=tuple(x - 0.001 for x in row.logprobs)) for row in batch_rows
    )
    exchange.stored[0] = Batch(0, stale)
    learner(tmp_path, spec(), exchange).run(1)
    measured = exchange.published[1].metrics
    assert "logprobDifference" not in measured
    assert measured["stalenessMean"] == measured["stalenessMax"] == 1


def test_after_an_error_the_next_run_starts_from_the_checkpoint(
    tmp_path, weights, spec, exchange, batch_rows
):
    undisturbed = learner(tmp_path, spec(), exchange)
    undisturbed.run(2)
    digests = exchange.digests
    shutil.rmtree(tmp_path / "checkpoints")
    one = learner(tmp_path, spec(), exchange)
    one.run(1)
    good = exchange.stored[1]
    exchange.stored[1] = Batch(1, (replace(good.rows[0], reward=float("inf")), *good.rows[1:]))
    with pytest.raises(InternalError):
        one.run(2)
    exchange.stored[1] = good
    one.run(2)
    assert exchange.digests == digests


def test_temperature_is_applied_before_the_probabilities(tmp_path, weights, spec, exchange, sample):
    exchange.stored[0] = Batch(0, sample(weights / "0", count=8, seed=3, temperature=0.7))
    learner(tmp_path, spec(sampling={"temperature": 0.7, "maxTokens": 12}), exchange).run(1)
    assert exchange.published[1].metrics["logprobDifference"] < 1e-6


def test_another_temperature_than_the_samplers_is_a_disagreement(
    tmp_path, weights, spec, exchange, batch_rows
):
    exchange.stored[0] = Batch(0, batch_rows)
    with pytest.raises(InternalError, match="disagree"):
        learner(tmp_path, spec(sampling={"temperature": 0.7, "maxTokens": 12}), exchange).run(1)


@pytest.mark.parametrize(
    ("algorithm", "model", "message"),
    [
        ({"kl": {"estimator": "K1"}}, {}, "K1 with placement Loss has a gradient of zero expectation"),
        ({}, {"dtype": "float16"}, "float16 is for inference only"),
    ],
)
def test_settings_that_cannot_learn_are_refused(tmp_path, weights, spec, exchange, algorithm, model, message):
    with pytest.raises(UserError, match=message):
        learner(tmp_path, spec(algorithm, model), exchange)


def test_k1_is_welcome_in_the_reward_and_without_a_coefficient(tmp_path, weights, spec, exchange):
    learner(tmp_path, spec({"kl": {"estimator": "K1", "placement": "Reward"}}), exchange)
    learner(tmp_path, spec({"kl": {"estimator": "K1", "coefficient": 0}}), exchange)
