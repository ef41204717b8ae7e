"""Ledger rows to and from SQLite's values: token arrays as little-endian blobs, the rest as JSON."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from mlwright_api.rollout import RolloutStatus

from mlwright_trainer.inference.engine import VersionSpan
from mlwright_trainer.ledger.rows import Result, RolloutRow, Sampled, SealedScore


def pack_tokens(tokens: Sequence[int]) -> bytes:
    return np.asarray(tokens, dtype="<i4").tobytes()


def unpack_tokens(blob: bytes) -> tuple[int, ...]:
    return tuple(np.frombuffer(blob, dtype="<i4").tolist())


def pack_logprobs(logprobs: Sequence[float]) -> bytes:
    return np.asarray(logprobs, dtype="<f8").tobytes()


def unpack_logprobs(blob: bytes) -> tuple[float, ...]:
    return tuple(np.frombuffer(blob, dtype="<f8").tolist())


def sample_values(sample: Sampled, *, sampled_at: float) -> dict[str, Any]:
    """Columns of a fresh row, its result left out."""
    return {
        "id": sample.id,
        "purpose": sample.purpose,
        "round": sample.round,
        "position": sample.position,
        "task": sample.task,
        "prompt_kind": sample.prompt_kind,
        "parent": sample.parent,
        "prompt_tokens": pack_tokens(sample.prompt_tokens),
        "response_tokens": pack_tokens(sample.response_tokens),
        "logprobs": pack_logprobs(sample.logprobs),
        "policy_version": sample.policy_version,
        "spans": json.dumps([[span.version, span.start, span.end] for span in sample.spans]),
        "response": sample.response,
        "script": sample.script,
        "tree": sample.tree,
        "sampled_at": sampled_at,
    }


def spans_from(text: str) -> tuple[VersionSpan, ...]:
    return tuple(VersionSpan(*span) for span in json.loads(text))


def result_values(result: Result) -> dict[str, Any]:
    """Columns that closing a rollout sets, beside closed_at and (if it ran) launched_at."""
    status = result.status
    return {
        "attempt": status.attempt,
        "outcome": str(status.outcome),
        "reason": status.reason,
        "exit_code": status.exit_code,
        "scores": json.dumps({str(split): score for split, score in status.scores.items()}),
        "milestones": json.dumps(status.milestones),
        "seconds": status.seconds.model_dump_json(by_alias=True),
        "output_tail": status.output_tail,
        "isolation": status.isolation.model_dump_json(by_alias=True) if status.isolation else None,
        "reward": result.reward,
        "submission": zlib.compress(result.submission) if result.submission is not None else None,
    }


def rollout_from(row: sqlite3.Row) -> RolloutRow:
    status = RolloutStatus.model_validate(
        {
            "attempt": row["attempt"],
            "outcome": row["outcome"],
            "reason": row["reason"],
            "exitCode": row["exit_code"],
            "scores": json.loads(row["scores"]),
            "milestones": json.loads(row["milestones"]),
            "seconds": json.loads(row["seconds"]),
            "outputTail": row["output_tail"],
            "isolation": json.loads(row["isolation"]) if row["isolation"] else None,
        }
    )
    return RolloutRow(
        id=row["id"],
        purpose=row["purpose"],
        round=row["round"],
        position=row["position"],
        task=row["task"],
        prompt_kind=row["prompt_kind"],
        parent=row["parent"],
        policy_version=row["policy_version"],
        response_tokens=row["response_length"],
        response=row["response"],
        script=row["script"],
        tree=row["tree"],
        sampled_at=row["sampled_at"],
        launched_at=row["launched_at"],
        window=row["window"],
        window_offset=row["window_offset"],
        status=status,
        reward=row["reward"],
        closed_at=row["closed_at"],
        batch=row["batch"],
    )


def sealed_from(row: sqlite3.Row) -> SealedScore:
    return SealedScore(
        subject=row["subject"],
        rollout=row["rollout"],
        digest=row["digest"],
        verdict=row["verdict"],
        reason=row["reason"],
        score=row["score"],
        interval=None if row["low"] is None else (row["low"], row["high"]),
    )
