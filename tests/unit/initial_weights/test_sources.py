"""Where a first model comes from, and what is said when it cannot be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from mlwright_api.trainingrun import ModelSpec
from mlwright_trainer.errors import UserError
from mlwright_trainer.learning.sources import LoadedModel, load_source
from mlwright_trainer.learning.tokenizer import train_tokenizer

pytestmark = pytest.mark.torch

TEXTS = ["import pandas as pd\n", "print(1)\n"]
CONFIG = {
    "model_type": "qwen2",
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}


def _load(base: Path, *, seed: int = 0, texts: list[str] | None = None, **model: Any) -> LoadedModel:
    spec = ModelSpec.model_validate(model)
    return load_source(spec, base=base, texts=TEXTS if texts is None else texts, seed=seed)


def _scratch(**config: Any) -> dict[str, Any]:
    return {"scratch": {"vocabularySize": 300, "config": {**CONFIG, **config}}}


def _weights(loaded: LoadedModel) -> list[torch.Tensor]:
    return list(loaded.model.state_dict().values())


def _save(loaded: LoadedModel, folder: Path) -> Path:
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return folder


def test_scratch_makes_the_asked_shape_with_the_tokenizers_vocabulary(tmp_path: Path) -> None:
    loaded = _load(tmp_path, source=_scratch(num_hidden_layers=3))
    assert loaded.model.config.num_hidden_layers == 3
    assert loaded.model.get_input_embeddings().weight.shape == (len(loaded.tokenizer), 16)
    assert loaded.model.generation_config.eos_token_id == loaded.tokenizer.eos_token_id


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt_neox"])
def test_scratch_makes_other_kinds_of_model(tmp_path: Path, kind: str) -> None:
    loaded = _load(tmp_path, source=_scratch(model_type=kind))
    ids = torch.tensor([[1, 5, 6]])
    assert loaded.model(input_ids=ids).logits.shape == (1, 3, len(loaded.tokenizer))


def test_scratch_depends_on_the_seed_and_leaves_the_global_one_alone(tmp_path: Path) -> None:
    torch.manual_seed(7)
    state = torch.get_rng_state()
    one, same, other = (_load(tmp_path, source=_scratch(), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, _weights(one), _weights(same)))
    assert not all(map(torch.equal, _weights(one), _weights(other)))


def test_scratch_without_examples_has_nothing_to_train_a_tokenizer_on(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"scratch: needs fineTuning\.examples"):
        _load(tmp_path, source=_scratch(), texts=[])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_type": "no_such_kind"}, "no_such_kind"),
        ({"hidden_size": "wide"}, r"config: .*expected int"),
        ({"num_attention_heads": 0}, r"config: "),
    ],
)
def test_a_scratch_configuration_that_makes_no_model_is_refused(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        _load(tmp_path, source=_scratch(**change))


def test_a_folder_is_loaded_as_it_is(tmp_path: Path) -> None:
    saved = _load(tmp_path, source=_scratch())
    _save(saved, tmp_path / "model")
    loaded = _load(tmp_path, source={"path": "model"})
    assert all(map(torch.equal, _weights(saved), _weights(loaded)))
    assert loaded.tokenizer(TEXTS[0]).input_ids == saved.tokenizer(TEXTS[0]).input_ids


def test_the_asked_dtype_is_what_comes_out(tmp_path: Path) -> None:
    _save(_load(tmp_path, source=_scratch()), tmp_path / "model")
    loaded = _load(tmp_path, source={"path": "model"}, dtype="bfloat16")
    assert {tensor.dtype for tensor in _weights(loaded)} == {torch.bfloat16}


def test_another_tokenizer_takes_the_place_of_the_models_own(tmp_path: Path) -> None:
    _save(_load(tmp_path, source=_scratch()), tmp_path / "model")
    train_tokenizer(["print(2)\n"] * 9, 290).save_pretrained(tmp_path / "other")
    loaded = _load(tmp_path, source={"path": "model"}, tokenizer="other")
    assert len(loaded.tokenizer("print(2)\n").input_ids) == 1


def test_a_tokenizer_with_more_tokens_than_the_model_knows_is_refused(tmp_path: Path) -> None:
    _save(_load(tmp_path, source=_scratch()), tmp_path / "model")
    texts = [f"word{i} = {i}\n" for i in range(200)]
    train_tokenizer(texts, 500).save_pretrained(tmp_path / "other")
    with pytest.raises(UserError, match=r"model\.tokenizer: has 500 tokens, but the model knows"):
        _load(tmp_path, source={"path": "model"}, tokenizer="other")


def test_a_tokenizer_without_an_end_of_text_token_is_refused(tmp_path: Path) -> None:
    loaded = _load(tmp_path, source=_scratch())
    loaded.tokenizer.eos_token = None
    _save(loaded, tmp_path / "model")
    with pytest.raises(UserError, match="no end-of-text token"):
        _load(tmp_path, source={"path": "model"})


def test_a_tokenizer_without_padding_pads_with_the_end_of_text(tmp_path: Path) -> None:
    loaded = _load(tmp_path, source=_scratch())
    loaded.tokenizer.pad_token = None
    _save(loaded, tmp_path / "model")
    again = _load(tmp_path, source={"path": "model"})
    assert again.tokenizer.pad_token_id == again.tokenizer.eos_token_id == again.model.config.pad_token_id


def test_end_tokens_of_the_generation_config_are_kept_beside_the_tokenizers(tmp_path: Path) -> None:
    loaded = _load(tmp_path, source=_scratch())
    loaded.model.generation_config.eos_token_id = [9, 12]
    _save(loaded, tmp_path / "model")
    again = _load(tmp_path, source={"path": "model"})
    assert again.model.generation_config.eos_token_id == [2, 9, 12]


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"model\.source\.path: .*nowhere does not exist"):
        _load(tmp_path, source={"path": "nowhere"})


def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"model\.source\.path: .*empty"):
        _load(tmp_path, source={"path": "empty"})


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"x")
    with pytest.raises(UserError, match=r"neither a Hugging Face folder nor a \.gguf file"):
        _load(tmp_path, source={"path": "model.bin"})


def test_a_broken_gguf_file_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUFnot really")
    with pytest.raises(UserError, match=r"model\.source\.path: .*model\.gguf"):
        _load(tmp_path, source={"path": "model.gguf"})


@pytest.mark.parametrize(
    ("source", "kind"), [({"claim": {"name": "models"}}, "claim"), ({"image": "registry/model:1"}, "image")]
)
def test_sources_of_a_cluster_are_refused_on_one_machine(
    tmp_path: Path, source: dict[str, Any], kind: str
) -> None:
    with pytest.raises(UserError, match=rf"model\.source\.{kind}: only in a cluster"):
        _load(tmp_path, source=source)


def test_a_hub_model_that_cannot_be_fetched_says_what_was_tried_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"'nobody/nothing' is neither in the .* cache .*model\.source\.path"):
        _load(tmp_path, source={"hub": "nobody/nothing"})
