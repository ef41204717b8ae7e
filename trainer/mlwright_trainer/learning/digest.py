"""A digest of weights: of the numbers, not of the file they are in; the standard library alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlwright_trainer.errors import InternalError

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class _Tensor:
    """Where a tensor's bytes are, and what the digest says of it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path
    start: int
    end: int


def weights_digest(folder: Path) -> str:
    """`sha256:<hex>` over all tensors of a folder's safetensors files in name order: name, dtype, shape,
    bytes.

    Shards and metadata do not matter. Raises InternalError where there is no such file or one is torn.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise InternalError(f"{folder}: no safetensors file, so no weights")
    tensors = sorted((t for file in files for t in _tensors(file)), key=lambda t: t.name)
    digest = hashlib.sha256()
    for tensor in tensors:
        shape = ",".join(map(str, tensor.shape))
        digest.update(f"{tensor.name}\0{tensor.dtype}\0{shape}\0".encode())
        for chunk in _bytes(tensor):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def file_digest(path: Path) -> str:
    """`sha256:<hex>` of a file's bytes."""
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def _tensors(file: Path) -> Iterator[_Tensor]:
    """The header: 8 bytes of length (little-endian), then JSON; offsets count from its end."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 0 < length <= file.stat().st_size:
            raise InternalError(f"{file}: not a complete safetensors file")
        header = json.loads(stream.read(length))
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            yield _Tensor(name, entry["dtype"], tuple(entry["shape"]), file, start, end)


def _bytes(tensor: _Tensor) -> Iterator[bytes]:
    with tensor.file.open("rb") as stream:
        stream.seek(tensor.start)
        left = tensor.end - tensor.start
        while left > 0:
            chunk = stream.read(min(left, _CHUNK_BYTES))
            if not chunk:
                raise InternalError(f"{tensor.file}: ends inside tensor {tensor.name}")
            left -= len(chunk)
            yield chunk
