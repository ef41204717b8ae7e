"""The ledger: the only record of a run; report, metrics, batches and replay are queries over it."""

from mlwright_trainer.ledger.reader import LedgerError, LedgerReader
from mlwright_trainer.ledger.rows import (
    CLOSED,
    Phase,
    Purpose,
    Result,
    RolloutRow,
    Sampled,
    SealedScore,
    UpdateRow,
    WindowRow,
)
from mlwright_trainer.ledger.store import Ledger

__all__ = [
    "CLOSED",
    "Ledger",
    "LedgerError",
    "LedgerReader",
    "Phase",
    "Purpose",
    "Result",
    "RolloutRow",
    "Sampled",
    "SealedScore",
    "UpdateRow",
    "WindowRow",
]
