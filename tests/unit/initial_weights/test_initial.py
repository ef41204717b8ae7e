"""weights/0: made once, whole, and the same for the same run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mlwright_api.trainingrun import TrainingRunSpec
from mlwright_trainer.errors import UserError
from mlwright_trainer.inference.codec import TransformersCodec
from mlwright_trainer.inference.engine import GenerationRequest
from mlwright_trainer.inference.model_folder import load_model
from mlwright_trainer.inference.transformers_engine import TransformersEngine
from mlwright_trainer.learning import initial
from mlwright_trainer.learning.digest import weights_digest
from mlwright_trainer.learning.disk import torn
from mlwright_trainer.learning.initial import make_initial_weights
from mlwright_trainer.learning.sources import LoadedModel

pytestmark = pytest.mark.torch

SpecMaker = Callable[..., TrainingRunSpec]
Listener = Callable[[str, float], None]


def test_a_folder_with_model_and_tokenizer_comes_out_and_its_digest(
    tmp_path: Path, spec: SpecMaker, progress: Listener
) -> None:
    out = tmp_path / "weights" / "0"
    digest = make_initial_weights(spec(), out, base=tmp_path, progress=progress)
    assert digest == weights_digest(out)
    assert torn(out) == ""
    names = {path.name for path in out.iterdir()}
    assert {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"} <= names


def test_what_comes_out_writes_what_it_was_taught(
    tmp_path: Path, spec: SpecMaker, progress: Listener
) -> None:
    out = tmp_path / "0"
    make_initial_weights(spec(tuning={"epochs": 8}), out, base=tmp_path, progress=progress)
    codec = TransformersCodec(out)
    prompt = codec.encode([{"role": "user", "content": "# task 0"}])
    request = GenerationRequest("a", prompt, seed=0, temperature=0.05, max_tokens=60)
    generation = TransformersEngine(out, 0).generate([request])[0]
    assert generation.finish == "stop"
    assert codec.decode(generation.tokens).startswith("import pandas as pd\n")


def test_the_same_run_gives_the_same_digest_and_another_seed_another(
    tmp_path: Path, spec: SpecMaker, progress: Listener
) -> None:
    digests = [
        make_initial_weights(spec(seed=seed), tmp_path / name, base=tmp_path, progress=progress)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert digests[0] == digests[1] != digests[2]


def test_weights_that_are_there_are_kept(tmp_path: Path, spec: SpecMaker, progress: Listener) -> None:
    out = tmp_path / "0"
    digest = make_initial_weights(spec(), out, base=tmp_path, progress=progress)
    (tmp_path / "examples.jsonl").unlink()
    assert make_initial_weights(spec(seed=9), out, base=tmp_path, progress=progress) == digest


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_weights_have_the_asked_dtype_after_fine_tuning(
    tmp_path: Path, spec: SpecMaker, progress: Listener, dtype: str
) -> None:
    make_initial_weights(spec(model={"dtype": dtype}), tmp_path / "0", base=tmp_path, progress=progress)
    assert load_model(tmp_path / "0").dtype == getattr(torch, dtype)


def test_without_fine_tuning_the_source_is_copied(
    tmp_path: Path, spec: SpecMaker, progress: Listener
) -> None:
    first = make_initial_weights(spec(), tmp_path / "0", base=tmp_path, progress=progress)
    plain = TrainingRunSpec.model_validate({"tasks": [{"name": "t"}], "model": {"source": {"path": "0"}}})
    assert make_initial_weights(plain, tmp_path / "1", base=tmp_path, progress=progress) == first


def test_fine_tuning_starts_from_the_source(
    tmp_path: Path, spec: SpecMaker, progress: Listener, heard: list[tuple[str, float]]
) -> None:
    make_initial_weights(spec(tuning={"epochs": 4}), tmp_path / "0", base=tmp_path, progress=progress)
    again = spec(model={"source": {"path": "0"}})
    heard.clear()
    make_initial_weights(again, tmp_path / "1", base=tmp_path, progress=progress)
    first_loss = float(next(note for note, _ in heard if "loss" in note).split("loss ")[1].split(",")[0])
    assert first_loss < 1.5


class _Killed(BaseException):
    """Stands for the process's end: nothing may catch it."""


def test_a_process_that_dies_while_saving_leaves_nothing_that_is_used(
    tmp_path: Path, spec: SpecMaker, progress: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "weights" / "0"
    original = initial._save

    def dying(loaded: LoadedModel, folder: Path) -> None:
        original(loaded, folder)
        raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr(initial, "_save", dying)
        with pytest.raises(_Killed):
            make_initial_weights(spec(), out, base=tmp_path, progress=progress)
    assert not out.exists()
    digest = make_initial_weights(spec(), out, base=tmp_path, progress=progress)
    assert [path.name for path in out.parent.iterdir()] == ["0"]
    assert digest == make_initial_weights(spec(), tmp_path / "undisturbed", base=tmp_path, progress=progress)


def test_a_mistake_of_the_user_leaves_no_folder(tmp_path: Path, spec: SpecMaker, progress: Listener) -> None:
    (tmp_path / "examples.jsonl").write_text("{")
    with pytest.raises(UserError, match="line 1"):
        make_initial_weights(spec(), tmp_path / "weights" / "0", base=tmp_path, progress=progress)
    assert not (tmp_path / "weights" / "0").exists()


def test_progress_begins_at_nothing_and_ends_at_all(
    tmp_path: Path, spec: SpecMaker, progress: Listener, heard: list[tuple[str, float]]
) -> None:
    make_initial_weights(spec(), tmp_path / "0", base=tmp_path, progress=progress)
    shares = [share for _, share in heard]
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert shares == sorted(shares)


def test_everybody_who_may_read_the_folder_may_read_the_weights(
    tmp_path: Path, spec: SpecMaker, progress: Listener
) -> None:
    make_initial_weights(spec(), tmp_path / "0", base=tmp_path, progress=progress)
    modes = {path.name: path.stat().st_mode & 0o444 for path in (tmp_path / "0").iterdir()}
    assert set(modes.values()) == {0o444}
