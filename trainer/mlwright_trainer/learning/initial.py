"""Version 0: the weights that a run starts from, made once and whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from mlwright_api.trainingrun import TrainingRunSpec

from mlwright_trainer.learning.digest import weights_digest
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
    rename when everything in it is on disk; if it is there already it is left as it is. The result depends on
    `spec` and its seed alone, for one machine and thread count. Raises UserError for what the user can mend.
    """
    if out.exists():
        return weights_digest(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_over(out)
    loaded = _make(spec, base=base, progress=progress, device=device)
    unfinished = Path(tempfile.mkdtemp(prefix=_prefix(out), dir=out.parent))
    try:
        _save(loaded, unfinished)
        digest = weights_digest(unfinished)
        unfinished.rename(out)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    _sync(out.parent)
    return digest


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
    loaded = load_source(wanted.model_copy(update={"dtype": "float32"}), base=base, texts=texts, seed=spec.seed)
    loaded.model.to(device)
    fine_tune(loaded.model, loaded.tokenizer, examples, tuning, seed=spec.seed, progress=progress)
    return LoadedModel(loaded.model.to(device="cpu", dtype=DTYPES[wanted.dtype]), loaded.tokenizer)


def _save(loaded: LoadedModel, folder: Path) -> None:
    loaded.model.save_pretrained(folder, safe_serialization=True)
    loaded.tokenizer.save_pretrained(folder)
    # mkdtemp makes folders for their owner alone; weights are read like any other file.
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _prefix(out: Path) -> str:
    return f".{out.name}.unfinished-"


def _remove_left_over(out: Path) -> None:
    for folder in out.parent.glob(f"{_prefix(out)}*"):
        shutil.rmtree(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
