"""Whether a device can be used at all, asked before anything is written."""

from __future__ import annotations

import torch

from mlwright_trainer.errors import UserError


def require_device(name: str) -> None:
    """Put one number on the device. Raises UserError where torch does not know it or cannot reach it."""
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise UserError(
            f"--device {name}: {reason[:200]}; use a device that is there, such as cpu"
        ) from error
