"""What the machine refused (disk, memory, permission), in the words of the command's errors."""

from __future__ import annotations

import errno
import os

from mlwright_trainer.errors import InternalError, MlwrightError, UserError, is_out_of_memory

ADVICE = {
    errno.ENOSPC: "free some space and go on with --resume, or choose another --dir",
    errno.EDQUOT: "the quota is used up: free some space, or choose another --dir",
    errno.EACCES: "choose another --dir, or mend the permissions",
    errno.EPERM: "choose another --dir, or mend the permissions",
    errno.EROFS: "choose another --dir",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENOMEM: "lower --slots, algorithm.microbatchTokens or the size of the model",
}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE)
"""The machine's fault; the others are a wrong choice of the user's."""
NO_SPACE = ("No space left on device", "(os error 28)")
"""How safetensors words it, in an error of its own."""


def explained(error: BaseException) -> MlwrightError | None:
    """The same failure as one clear line, where the machine is the reason; None for a fault in mlwright."""
    if isinstance(error, OSError) and error.errno in ADVICE:
        kind = InternalError if error.errno in FULL else UserError
        where = f"{error.filename}: " if error.filename else ""
        return kind(f"{where}{error.strerror}; {ADVICE[error.errno]}")
    if any(words in str(error) for words in NO_SPACE):
        return InternalError(f"{os.strerror(errno.ENOSPC)}; {ADVICE[errno.ENOSPC]}")
    if is_out_of_memory(error):
        first = str(error).strip().splitlines()[0] if str(error).strip() else "no detail"
        return InternalError(f"out of memory ({first[:200]}); {ADVICE[errno.ENOMEM]}")
    return None
