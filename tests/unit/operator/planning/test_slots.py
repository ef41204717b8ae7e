"""Slots in use: whatever still runs, or may, whoever it belonged to."""

from __future__ import annotations

from mlwright_operator.actions import Kind
from mlwright_operator.observing import observed
from mlwright_operator.planning.admission import Group
from mlwright_operator.planning.slots import Slots, group_of, slots_in_use
from operator_world.controllers import Fate
from operator_world.objects import config, rollout, task
from operator_world.scene import Scene


def slots(scene: Scene) -> Slots:
    return slots_in_use(observed(scene.api.objects.values()))


def running(*, run_uid: str = "") -> Scene:
    scene = Scene()
    scene.api.create(task())
    scene.api.create(rollout("r", run_uid=run_uid))
    scene.controllers.fates["r"] = [Fate(seconds=1000)]
    scene.go_on(3)
    return scene


def test_a_sandbox_counts_for_its_run() -> None:
    assert slots(running(run_uid="one")).by_group == {Group("run", "team/one"): 1}


def test_without_a_run_it_counts_for_its_namespace() -> None:
    assert slots(running()).by_group == {Group("namespace", "team"): 1}


def test_a_pod_that_is_terminating_holds_its_slot_though_rollout_and_job_are_gone() -> None:
    scene = running(run_uid="one")
    scene.api.delete(Kind.ROLLOUT, "r")
    for job in scene.api.listed(Kind.JOB):
        scene.api.delete(Kind.JOB, job["metadata"]["name"])
    (pod,) = scene.api.live(Kind.POD)
    scene.api.terminate(pod)
    assert slots(scene).by_group == {Group("run", "team/one"): 1}
    scene.wait()
    scene.wait()
    assert slots(scene).by_group == {}


def test_somebody_elses_pod_with_our_labels_but_no_controller_holds_none() -> None:
    scene = running()
    (pod,) = scene.api.listed(Kind.POD)
    del pod["metadata"]["ownerReferences"]
    pod["metadata"] |= {"name": "fake", "uid": "fake"}
    pod["metadata"]["labels"]["mlwright.dev/rollout-uid"] = "nobody"
    scene.api.create(pod)
    assert sum(slots(scene).by_group.values()) == 1


def test_a_run_of_another_namespace_shares_nothing() -> None:
    seen = observed(
        [
            rollout("r", run_uid="one", namespace=namespace)
            | {"metadata": {"name": "r", "namespace": namespace, "uid": namespace}}
            for namespace in ("mine", "theirs")
        ]
    )
    mine, theirs = seen.rollouts["mine"], seen.rollouts["theirs"]
    assert group_of(mine) != group_of(theirs)


def test_a_waiting_rollout_gets_the_slot_only_when_the_pod_before_it_has_ended() -> None:
    scene = running()
    scene.config = config(sandboxes=1)
    scene.api.create(rollout("next"))
    scene.api.delete(Kind.ROLLOUT, "r")
    scene.carry_out()
    assert scene.reason("Started", "next") == "Queued"
    scene.go_on(5)
    assert scene.reason("Started", "next") in ("Creating", "Running")
