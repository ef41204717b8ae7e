"""The digest of a spec: by which a Rollout says exactly which task it is judged by."""

from __future__ import annotations

import hashlib
import json

from mlwright_api.base import ApiModel
from mlwright_api.manifests import wire


def spec_digest(spec: ApiModel) -> str:
    """`sha256:...` over a spec's canonical JSON: sorted keys, no spaces, values that are defaults left out.

    So it makes no difference whether defaults were written, or filled in by an API server, nor whether a later
    version has more fields.
    """
    canonical = wire(spec, defaults=False)
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
