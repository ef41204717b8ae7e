"""Whatever is committed comes back exactly: tokens, log-probabilities, texts, results."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from mlwright_api.mltask import Split
from mlwright_api.results import MILESTONES
from mlwright_api.rollout import Outcome, RolloutSeconds, RolloutStatus
from mlwright_trainer.inference.engine import VersionSpan
from mlwright_trainer.ledger import Ledger, LedgerReader, Result, Sampled
from mlwright_trainer.ledger.codec import pack_logprobs, pack_tokens, unpack_logprobs, unpack_tokens

TOKENS = st.lists(st.integers(0, 2**31 - 1), max_size=200).map(tuple)
LOGPROBS = st.lists(st.floats(allow_nan=False), max_size=200).map(tuple)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(TOKENS)
def test_tokens_come_back_exactly(tokens: tuple[int, ...]) -> None:
    assert unpack_tokens(pack_tokens(tokens)) == tokens


@given(LOGPROBS)
def test_logprobs_come_back_bit_for_bit(logprobs: tuple[float, ...]) -> None:
    bits = [struct.pack("<d", value) for value in unpack_logprobs(pack_logprobs(logprobs))]
    assert bits == [struct.pack("<d", value) for value in logprobs]


@st.composite
def samples(draw: st.DrawFn) -> Sampled:
    response = draw(TOKENS)
    script = draw(st.none() | TEXT)
    return Sampled(
        id=draw(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=20)),
        purpose=draw(st.sampled_from(["Train", "Before", "After", "Evaluation"])),
        round=draw(st.integers(0, 10**6)),
        position=draw(st.integers(0, 10**6)),
        task=draw(TEXT),
        prompt_kind=draw(st.sampled_from(["draft", "improve"])),
        parent=None,
        prompt_tokens=draw(TOKENS),
        response_tokens=response,
        logprobs=tuple(draw(st.lists(FINITE, min_size=len(response), max_size=len(response)))),
        spans=(VersionSpan(draw(st.integers(0, 10**6)), 0, len(response)),),
        response=draw(TEXT),
        script=script,
        tree=None if script is None else "tree",
    )


@st.composite
def results(draw: st.DrawFn) -> Result:
    status = RolloutStatus(
        attempt=draw(st.integers(1, 9)),
        outcome=draw(st.sampled_from(list(Outcome))),
        reason=draw(TEXT),
        scores=draw(st.dictionaries(st.sampled_from([Split.REWARD, Split.SELECTION]), FINITE)),
        milestones=list(draw(st.sets(st.sampled_from(MILESTONES)))),
        exit_code=draw(st.none() | st.integers(-64, 255)),
        seconds=RolloutSeconds(execution=draw(st.floats(0, 1e6)), queued=draw(st.floats(0, 1e6))),
        output_tail=draw(TEXT),
    )
    return Result(
        status, reward=draw(st.none() | FINITE), submission=draw(st.none() | st.binary(max_size=500))
    )


@settings(max_examples=40, deadline=None)
@given(samples(), results())
def test_a_rollout_comes_back_as_it_was_committed_and_closed(sample: Sampled, result: Result) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        with Ledger.create(path, {}) as ledger:
            ledger.commit_round([sample])
            ledger.close_rollout(sample.id, result)
        with LedgerReader(path) as reader:
            row = reader.rollout(sample.id)
            assert reader.sample(sample.id) == sample
            assert row.status == result.status
            assert (row.reward, row.script, row.response) == (result.reward, sample.script, sample.response)
            assert row.response_tokens == len(sample.response_tokens)
            assert reader.submission(sample.id) == result.submission


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_batches_hold_each_trainable_row_at_most_once(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    rewarded = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    with tempfile.TemporaryDirectory() as folder, Ledger.create(Path(folder) / "l.sqlite", {}) as ledger:
        ledger.commit_round([_plain(position) for position in range(count)])
        for position, reward in enumerate(rewarded):
            outcome = Outcome.SCORED if reward else Outcome.CANCELLED
            ledger.close_rollout(
                f"r-{position}", Result(RolloutStatus(outcome=outcome), 0.5 if reward else None)
            )
        size = data.draw(st.integers(1, count))
        number, seen = 0, []
        while waiting := ledger.unassigned()[:size]:
            ledger.assign_batch(number, waiting)
            batch = ledger.batch(number)
            assert batch is not None
            seen += [row.id for row in batch.rows]
            number += 1
        assert sorted(seen) == [f"r-{position}" for position, reward in enumerate(rewarded) if reward]
        assert sum(ledger.batch_sizes().values()) == len(seen) == len(set(seen))


def _plain(position: int) -> Sampled:
    return Sampled(
        id=f"r-{position}",
        purpose="Train",
        round=0,
        position=position,
        task="churn",
        prompt_kind="draft",
        parent=None,
        prompt_tokens=(1,),
        response_tokens=(2,),
        logprobs=(-0.5,),
        spans=(VersionSpan(0, 0, 1),),
        response="",
        script="",
        tree="t",
    )
