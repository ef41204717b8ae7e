"""Who sees which folder: answers are the grader's, sealed ones nobody's, and data is read-only to everybody."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from mlwright_api.mltask import DataVolume
from mlwright_operator.sandbox.volumes import regular_files_folder
from sandbox_pods import PROFILE, TASK, changed, check_pod, container, mounts, pod, volume

SOURCES: dict[str, dict[str, Any]] = {
    "image": {"image": "registry.example/{}:1"},
    "claim": {"claim": {"name": "claim-{}", "path": "{}"}},
    "config map": {"configMap": "map-{}"},
}


def source(kind: str, name: str) -> Any:
    def named(value: Any) -> Any:
        return {k: named(v) for k, v in value.items()} if isinstance(value, dict) else value.format(name)

    return named(SOURCES[kind])


def task(public: str, private: str, sealed: str) -> dict[str, Any]:
    data = {
        "public": source(public, "public"),
        "private": source(private, "private"),
        "sealed": source(sealed, "sealed"),
    }
    return changed(TASK, "data", data)


EVERY_MIX = list(product(SOURCES, repeat=3))


@pytest.mark.parametrize("mix", EVERY_MIX, ids=["-".join(mix) for mix in EVERY_MIX])
def test_the_agent_sees_public_data_and_no_answers(mix: tuple[str, str, str]) -> None:
    made = pod(task=task(*mix))
    assert set(mounts(container(made, "agent"))) == {
        "/work", "/tmp", "/dev/shm", "/control", "/request", "/public",
    }  # fmt: skip
    assert "private" not in {each["name"] for each in container(made, "agent")["volumeMounts"]}


@pytest.mark.parametrize("mix", EVERY_MIX, ids=["-".join(mix) for mix in EVERY_MIX])
def test_sealed_answers_are_in_no_pod(mix: tuple[str, str, str]) -> None:
    for made in (pod(task=task(*mix)), check_pod(task(*mix))):
        assert "sealed" not in repr(made)


def test_the_grader_sees_answers_and_what_the_script_left() -> None:
    seen = mounts(container(pod(), "grader"))
    assert set(seen) == {"/work", "/control", "/request", "/tmp", "/public", "/private"}
    assert [path for path, mount in seen.items() if not mount.get("readOnly")] == ["/control", "/tmp"]


def test_agent_and_grader_have_temporary_folders_and_requests_of_their_own() -> None:
    agent, grader = (mounts(container(pod(), name)) for name in ("agent", "grader"))
    shared = {path for path in agent if path in grader and agent[path]["name"] == grader[path]["name"]}
    assert shared == {"/work", "/control", "/public"}


def test_the_agents_request_is_the_script_and_the_graders_is_the_task() -> None:
    made = pod()
    asked = {
        name: {
            item["path"]: item["fieldRef"]["fieldPath"] for item in volume(made, name)["downwardAPI"]["items"]
        }
        for name in ("job-request", "task-request")
    }
    assert asked == {
        "job-request": {
            "job.json": "metadata.annotations['mlwright.dev/job']",
            "files.json": "metadata.annotations['mlwright.dev/files']",
        },
        "task-request": {"task.json": "metadata.annotations['mlwright.dev/task']"},
    }


def test_all_that_can_be_written_is_memory_of_the_tasks_size() -> None:
    made = pod(task=changed(TASK, "limits.workSize", "100Mi"))
    sizes = {each["name"]: each["emptyDir"] for each in made["spec"]["volumes"] if "emptyDir" in each}
    assert {folder["medium"] for folder in sizes.values()} == {"Memory"}
    assert {name: folder["sizeLimit"] for name, folder in sizes.items()} == {
        "work": "104857600",
        "temporary": "104857600",
        "shared-memory": "104857600",
        "control": "1Mi",
        "grader-temporary": "64Mi",
    }


def test_a_claim_is_mounted_read_only_twice_over_and_only_its_folder() -> None:
    made = pod()
    assert volume(made, "public")["persistentVolumeClaim"] == {"claimName": "wine", "readOnly": True}
    for name in ("agent", "grader"):
        mount = mounts(container(made, name))["/public"]
        assert mount["subPath"] == "wine/public"
        assert mount["readOnly"] is True
        assert mount["recursiveReadOnly"] == "IfPossible"


@pytest.mark.parametrize(("path", "mounted"), [("", None), ("a", "a"), ("a/b", "a/b"), ("..a", "..a")])
def test_only_a_claims_folder_is_mounted_and_all_of_it_where_none_is_named(
    path: str, mounted: str | None
) -> None:
    data = {"public": {"claim": {"name": "one", "path": path}}, "private": {"claim": {"name": "two"}}}
    mount = mounts(container(pod(task=changed(TASK, "data", data)), "agent"))["/public"]
    assert mount.get("subPath") == mounted


def test_an_image_is_pulled_as_the_platform_says() -> None:
    never = PROFILE.model_copy(update={"image_pull_policy": "Never"})
    made = pod(task=task("image", "image", "image"), profile=never)
    assert volume(made, "public")["image"] == {
        "reference": "registry.example/public:1",
        "pullPolicy": "Never",
    }


def test_a_config_map_is_read_through_its_links() -> None:
    made = check_pod(task("config map", "claim", "claim"))
    command = container(made, "grader")["command"]
    assert command[command.index("--work") + 1] == "/public/..data"


@pytest.mark.parametrize("kind", ["image", "claim"])
def test_other_sources_hold_regular_files(kind: str) -> None:
    made = DataVolume.model_validate(source(kind, "public"))
    assert regular_files_folder("/public", made) == "/public"
