"""The digest sees names, types, shapes and numbers, and nothing of how they are filed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from mlwright_trainer.errors import InternalError
from mlwright_trainer.learning.digest import weights_digest
from safetensors.torch import save_file
from torch import Tensor

pytestmark = pytest.mark.torch


def digest(folder: Path, files: dict[str, dict[str, Tensor]], **metadata: str) -> str:
    folder.mkdir()
    for name, tensors in files.items():
        save_file(tensors, folder / name, metadata=metadata or None)
    return weights_digest(folder)


A, B = torch.arange(6.0).reshape(2, 3), torch.tensor([1, 2, 3])


def test_shards_and_metadata_do_not_matter(tmp_path):
    whole = digest(tmp_path / "1", {"model.safetensors": {"a": A, "b": B}}, format="pt")
    shards = digest(tmp_path / "2", {"x.safetensors": {"b": B}, "y.safetensors": {"a": A}})
    assert whole == shards
    assert whole.startswith("sha256:")
    assert len(whole) == 7 + 64


@pytest.mark.parametrize(
    "other",
    [
        {"a": A + 1e-6, "b": B},
        {"a": A, "c": B},
        {"a": A.reshape(3, 2), "b": B},
        {"a": A.to(torch.float64), "b": B},
        {"a": A},
        {"a": A, "b": B.to(torch.int32)},
    ],
    ids=["number", "name", "shape", "type", "missing", "integer type"],
)
def test_everything_about_a_tensor_matters(tmp_path, other):
    assert digest(tmp_path / "1", {"m.safetensors": {"a": A, "b": B}}) != digest(
        tmp_path / "2", {"m.safetensors": other}
    )


def test_a_sign_of_zero_is_seen(tmp_path):
    plus = digest(tmp_path / "1", {"m.safetensors": {"a": torch.tensor([0.0])}})
    minus = digest(tmp_path / "2", {"m.safetensors": {"a": torch.tensor([-0.0])}})
    assert plus != minus


def test_a_known_value_never_changes(tmp_path):
    """Recomputed here from the definition, so that a digest in an old report stays checkable."""
    import hashlib

    expected = hashlib.sha256(
        b"a\0F32\x002,3\0"
        + b"".join(x.to_bytes(4, "little") for x in (0, 0x3F800000, 0x40000000))
        + b"".join(x.to_bytes(4, "little") for x in (0x40400000, 0x40800000, 0x40A00000))
    )
    assert digest(tmp_path / "1", {"m.safetensors": {"a": A}}) == f"sha256:{expected.hexdigest()}"


def test_a_folder_without_weights_is_an_error(tmp_path):
    with pytest.raises(InternalError, match="no safetensors file"):
        weights_digest(tmp_path)


def test_a_file_that_ends_early_is_an_error(tmp_path):
    save_file({"a": A}, tmp_path / "m.safetensors")
    content = (tmp_path / "m.safetensors").read_bytes()
    (tmp_path / "m.safetensors").write_bytes(content[:-4])
    with pytest.raises(InternalError, match="ends inside tensor a"):
        weights_digest(tmp_path)


def test_a_file_that_is_something_else_is_an_error(tmp_path):
    (tmp_path / "m.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(InternalError, match="not a complete safetensors file"):
        weights_digest(tmp_path)
