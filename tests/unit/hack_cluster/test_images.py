"""Images: one of a single file is the same for the same file; the sandbox's name changes with what goes into it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from mlwright_cluster import sandbox_image
from mlwright_cluster.images import write_program_image
from mlwright_cluster.sandbox_image import context_files, image_key, planned

FILES = [("a.py", b"1"), ("b.py", b"2")]


def archive_of(folder: Path, content: bytes) -> dict[str, bytes]:
    (folder / "program").write_bytes(content)
    write_program_image(folder / "image.tar", name="localhost/x:1", program=folder / "program")
    with tarfile.open(folder / "image.tar") as tar:
        return {name: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]  # files


def test_an_image_of_a_program_has_it_as_its_entrypoint(tmp_path: Path) -> None:
    files = archive_of(tmp_path, b"ELF")
    (manifest,) = json.loads(files["manifest.json"])
    assert manifest["RepoTags"] == ["localhost/x:1"]
    config = json.loads(files[manifest["Config"]])
    assert config["config"]["Entrypoint"] == ["/program"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(files['layer.tar']).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(files["layer.tar"])) as layer:
        assert layer.getmember("program").mode & 0o111


def test_an_image_is_the_same_for_the_same_program_only(tmp_path: Path) -> None:
    assert archive_of(tmp_path, b"a") == archive_of(tmp_path, b"a") != archive_of(tmp_path, b"b")


@pytest.mark.parametrize(
    ("files", "base"),
    [
        ([("a.py", b"1"), ("b.py", b"3")], "base"),
        ([("a.py", b"1")], "base"),
        ([("a.py", b"1"), ("c.py", b"2")], "base"),
        (FILES, "other"),
    ],
)
def test_whatever_goes_into_the_image_changes_its_key(files: list[tuple[str, bytes]], base: str) -> None:
    assert image_key(files=files, base=base) != image_key(files=FILES, base="base")


def test_the_order_of_files_does_not_change_the_key() -> None:
    assert image_key(files=FILES, base="base") == image_key(files=FILES[::-1], base="base")


def test_the_context_has_sources_and_no_traces_of_running_them(tmp_path: Path) -> None:
    for name in (
        "sandbox-image/Containerfile",
        "sandbox-image/mlwright_sandbox/runner.py",
        "sandbox-image/mlwright_sandbox/__pycache__/runner.pyc",
        "crds/mlwright_api/base.py",
        "trainer/mlwright_trainer/secret.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path) for path in context_files(tmp_path)] == [
        "crds/mlwright_api/base.py",
        "sandbox-image/Containerfile",
        "sandbox-image/mlwright_sandbox/runner.py",
    ]


def test_an_image_that_is_built_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_image, "CACHE", tmp_path)
    monkeypatch.setenv("PATH", "")
    image = planned(tmp_path)
    image.archive.parent.mkdir()
    image.archive.touch()
    assert sandbox_image.build(tmp_path) == image


def test_where_nothing_can_build_it_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_image, "CACHE", tmp_path)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(sandbox_image.ProgramsMissing, match="apt-get install buildah mmdebstrap"):
        sandbox_image.build(tmp_path)
