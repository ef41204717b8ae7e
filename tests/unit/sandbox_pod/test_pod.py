"""What a pod's runner makes of its mounts, its control group and its environment, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlwright_sandbox import cgroups, libraries, pod
from mlwright_sandbox.agent import clean_environment
from mlwright_sandbox.pod import Mounts, memory_mounts, pod_access

MOUNTINFO = """\
600 500 0:50 / / ro,relatime master:1 - overlay overlay ro,lowerdir=/a
601 600 0:51 / /work rw,nosuid,relatime - tmpfs tmpfs rw,size=524288k
602 600 0:52 / /tmp rw shared:7 master:2 - tmpfs tmpfs rw,size=65536k
603 600 0:53 /sub /cache rw - tmpfs tmpfs rw
604 600 8:1 /var/lib/kubelet/x /disk rw - ext4 /dev/sda1 rw
605 600 0:54 / /with\\040blank rw - tmpfs tmpfs rw
"""


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mounts:
    # In a pod these lie nowhere near the control files; here /tmp holds everything.
    monkeypatch.setattr(pod.namespaces, "TEMPORARY", tmp_path / "tmp")
    for name in ("work", "public", "control", "request", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "message").touch()
    (tmp_path / "control/lock").touch()
    paths = {name: tmp_path / name for name in ("work", "public", "control", "request", "message")}
    return Mounts(**paths)


def test_only_whole_tmpfs_count_as_sized_mounts() -> None:
    """Of a part of one, nobody knows who else fills it; a disk has other people's files."""
    assert memory_mounts(MOUNTINFO) == {Path("/work"), Path("/tmp"), Path("/with blank")}


def test_a_script_reads_the_data_writes_its_work_folder_and_sees_no_control_files(mounts: Mounts) -> None:
    access = pod_access(mounts)
    assert mounts.public in access.read
    assert mounts.work in access.write
    for hidden in mounts.hidden:
        for allowed in (*access.read, *access.write, *access.devices):
            assert not hidden.is_relative_to(allowed), (hidden, allowed)


def test_nothing_is_both_the_system_and_writable(mounts: Mounts) -> None:
    access = pod_access(mounts)
    system = [path for path in access.read if path.is_relative_to("/usr") or path.is_relative_to("/etc")]
    assert system
    for path in system:
        assert not [place for place in access.write if path.is_relative_to(place)]


def test_password_hashes_are_not_read_even_by_who_could(mounts: Mounts) -> None:
    access = pod_access(mounts)
    assert Path("/etc/passwd") in access.read
    for name in ("shadow", "gshadow"):
        assert not [path for path in access.read if Path("/etc", name).is_relative_to(path)]


def test_control_files_within_a_system_tree_stay_hidden(
    mounts: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever mounts them in a strange place must not open them to scripts."""
    seen = pod.world.World(trees=(tmp_path,), hidden=(), shown=())
    monkeypatch.setattr(pod.world, "this_world", lambda: seen)
    access = pod_access(mounts)
    assert tmp_path in access.list
    for hidden in mounts.hidden:
        assert not [path for path in access.read if hidden.is_relative_to(path)]


def test_outside_of_a_container_the_runner_refuses_to_run(
    mounts: Mounts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod.signal, "signal", lambda *_: None)
    options = [f"--{name}={getattr(mounts, name)}" for name in ("work", "public", "control", "request")]
    assert pod.main([*options, f"--message={mounts.message}"]) == pod.OWN_FAULT
    assert "not the first process of a container" in mounts.message.read_text()
    assert capsys.readouterr().err.startswith("runner: not the first process")
    assert not (mounts.work / "data").exists()


def test_a_message_that_cannot_be_written_is_at_least_said(
    mounts: Mounts, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod.signal, "signal", lambda *_: None)
    assert pod.main([f"--message={tmp_path / 'none/message'}"]) == pod.OWN_FAULT
    assert "No such file or directory" in capsys.readouterr().err


def test_of_a_containers_environment_only_the_api_servers_address_is_kept() -> None:
    given = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "TOKEN": "secret", "PYTHONPATH": "/evil", "PATH": "/evil"}
    environment = clean_environment(given, cores=3)
    assert environment["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"
    assert "secret" not in environment.values()
    assert (environment["OMP_NUM_THREADS"], environment["PYTHONHASHSEED"]) == ("3", "0")
    assert not {"TOKEN", "PYTHONPATH"} & set(environment)
    assert "/evil" not in environment["PATH"]


def test_a_script_has_as_many_threads_as_its_pod_has_cores() -> None:
    environment = libraries.script_environment(Path("/tmp"), cores=4)
    assert (environment["OMP_NUM_THREADS"], environment["LOKY_MAX_CPU_COUNT"]) == ("4", "4")
    assert environment["HOME"] == environment["TMPDIR"] == "/tmp"


class TestOwnGroup:
    """Of the container, whichever version and however much of the hierarchy it sees."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return tmp_path / "cgroup"

    def own(self, tmp_path: Path, text: str) -> Path:
        path = tmp_path / "own"
        path.write_text(text)
        return path

    def put(self, root: Path, name: str, text: str) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    def test_version_two_in_a_namespace_of_its_own(self, root: Path, tmp_path: Path) -> None:
        self.put(root, "memory.events", "low 0\nhigh 0\noom 2\noom_kill 3\noom_group_kill 1\n")
        self.put(root, "cpu.max", "200000 100000\n")
        own = self.own(tmp_path, "0::/\n")
        assert (cgroups.own_kills(root, own), cgroups.own_cores(root, own)) == (3, 2)

    def test_version_one_whose_path_is_the_machines(self, root: Path, tmp_path: Path) -> None:
        """The container sees its own group as the root, but is told its place on the machine."""
        self.put(root, "memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
        self.put(root, "cpu/cpu.cfs_quota_us", "150000\n")
        self.put(root, "cpu/cpu.cfs_period_us", "100000\n")
        own = self.own(tmp_path, "4:memory:/kubepods/pod1/c1\n1:cpu:/kubepods/pod1/c1\n0::/\n")
        assert (cgroups.own_kills(root, own), cgroups.own_cores(root, own)) == (2, 1)

    def test_a_group_below_the_root_is_preferred(self, root: Path, tmp_path: Path) -> None:
        self.put(root, "memory/memory.oom_control", "oom_kill 9\n")
        self.put(root, "memory/a/memory.oom_control", "oom_kill 1\n")
        assert cgroups.own_kills(root, self.own(tmp_path, "4:memory:/a\n")) == 1

    @pytest.mark.parametrize("limit", ["max 100000\n", ""])
    def test_without_a_limit_every_core_counts(self, root: Path, tmp_path: Path, limit: str) -> None:
        self.put(root, "cpu.max", limit)
        assert cgroups.own_cores(root, self.own(tmp_path, "0::/\n")) == len(pod.os.sched_getaffinity(0))

    def test_less_than_a_core_is_one(self, root: Path, tmp_path: Path) -> None:
        self.put(root, "cpu.max", "50000 100000\n")
        assert cgroups.own_cores(root, self.own(tmp_path, "0::/\n")) == 1

    def test_without_any_group_nothing_was_killed(self, root: Path, tmp_path: Path) -> None:
        assert cgroups.own_kills(root, tmp_path / "none") == 0
