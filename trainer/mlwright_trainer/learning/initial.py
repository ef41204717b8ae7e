"""Version 0: the weights that a run starts from, made once and whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from mlwright_api.trainingrun import TrainingRunSpec

from mlwright_trainer.learning.digest import weights_digest
from mlwright_trainer.learning.disk import Disk, commit_folder, sweep
from mlwright_trainer.learning.examples import load_examples
from mlwright_trainer.learning.fine_tuning import fine_tune
from mlwright_trainer.learning.sources import DTYPES, LoadedModel, load_source


def make_initial_weights(
    spec: TrainingRunSpec,
    out: Path,
    *,
    base: Path,
    progress: Callable[[str, float], None],
    device: str = "cpu",
) -> str:
    """Write `out`, an ordinary Hugging Face folder with its tokenizer, fine-tuned where asked; return its digest.

    Relative paths in `spec` start at `base`. `progress` gets a line and the share done. `out` appears by a
    rename when everything in it is on disk, with a marker of checksums; if it is there already it is left as
    it is. The result depends on `spec` and its seed alone, for one machine and thread count. Raises UserError
    for what the user can mend.
    """
    if not out.exists():
        sweep(out.parent, disk=Disk())
        loaded = _make(spec, base=base, progress=progress, device=device)
        facts = {"version": 0, "seed": spec.seed, "threads": torch.get_num_threads()}
        commit_folder(out, lambda folder: _save(loaded, folder), facts=facts, disk=Disk())
    return weights_digest(out)


def _make(
    spec: TrainingRunSpec, *, base: Path, progress: Callable[[str, float], None], device: str
) -> LoadedModel:
    tuning = spec.fine_tuning
    progress("loading the model", 0.0)
    examples = load_examples(tuning, base=base, seed=spec.seed) if tuning else []
    texts = [text for example in examples for text in (example.prompt, example.completion)]
    wanted = spec.model
    if tuning is None:
        return load_source(wanted, base=base, texts=texts, seed=spec.seed)
    # Fine-tuning runs in float32 whatever the weights are kept in: half-precision AdamW loses small steps.
    loaded = load_source(
        wanted.model_copy(update={"dtype": "float32"}), base=base, texts=texts, seed=spec.seed
    )
    loaded.model.to(device)
    fine_tune(loaded.model, loaded.tokenizer, examples, tuning, seed=spec.seed, progress=progress)
    return LoadedModel(loaded.model.to(device="cpu", dtype=DTYPES[wanted.dtype]), loaded.tokenizer)


def _save(loaded: LoadedModel, folder: Path) -> None:
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    # safetensors makes files for their owner alone; weights are read like any other file.
    for path in folder.iterdir():
        path.chmod(0o644)
