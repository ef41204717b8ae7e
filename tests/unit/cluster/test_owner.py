"""Names that are the same after every restart, and nobody else's."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_api.patterns import DNS_LABEL
from mlwright_trainer.cluster.owner import Owner, one_call


@given(run=st.text(max_size=253), rollout=st.text(max_size=300))
def test_every_name_is_a_dns_label(run: str, rollout: str) -> None:
    name = Owner(run, "uid").object_name(rollout)
    assert re.fullmatch(DNS_LABEL, name)
    assert len(name) <= 60


def test_a_name_reads_as_what_it_is() -> None:
    name = Owner("churn", "1b4e28ba-2fa1-11d2-883f-0016d3cca427").object_name("train-00003-0017")
    assert re.fullmatch(r"churn-train-00003-0017-[0-9a-f]{10}", name)


def test_a_name_depends_on_nothing_but_owner_and_rollout() -> None:
    assert Owner("churn", "a").object_name("r") == Owner("churn", "a").object_name("r")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((Owner("churn", "a"), "r"), (Owner("churn", "b"), "r")),
        ((Owner("churn", "a"), "r.1"), (Owner("churn", "a"), "r-1")),
        ((Owner("churn", "a"), "x" * 40 + "1"), (Owner("churn", "a"), "x" * 40 + "2")),
    ],
)
def test_a_later_run_and_alike_ids_have_names_of_their_own(
    one: tuple[Owner, str], other: tuple[Owner, str]
) -> None:
    assert one[0].object_name(one[1]) != other[0].object_name(other[1])


def test_a_runs_rollouts_are_found_by_its_uid_and_refer_to_it() -> None:
    owner = Owner("churn", "a")
    assert owner.selector == "mlwright.dev/run-uid=a"
    assert owner.run_ref is not None
    assert (owner.run_ref.name, owner.run_ref.uid) == ("churn", "a")


def test_two_calls_of_a_command_never_share_a_rollout() -> None:
    one, other = one_call("churn"), one_call("churn")
    assert one.object_name("script") != other.object_name("script")
    assert one.run_ref is None
    assert one.selector.startswith("mlwright.dev/session=")
