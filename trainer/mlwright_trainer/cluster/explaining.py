"""What an API server refused, in one line for a person: what, where, and what to do. Pure."""

from __future__ import annotations

from mlwright_trainer.cluster.errors import ApiFailure, ClusterRefused, ClusterUnavailable
from mlwright_trainer.errors import MlwrightError

_NO_CRDS = ("page not found", "could not find the requested resource")


def explained(failure: ApiFailure, *, doing: str, place: str) -> MlwrightError:
    """The failure to do `doing` ("create Rollout x") at `place` (namespace and address)."""
    said = " ".join(str(failure).split())
    advice = _advice(failure, said)
    if advice is None:
        return ClusterUnavailable(f"{place}: no answer when asked to {doing}: {said}")
    return ClusterRefused(f"{place}: cannot {doing}: {said}; {advice}")


def missing_crds(failure: ApiFailure) -> bool:
    """Whether the server does not know the kind at all."""
    return failure.gone and any(words in str(failure) for words in _NO_CRDS)


def _advice(failure: ApiFailure, said: str) -> str | None:
    """What the user can do; None where nobody answered as they should."""
    if failure.status == 401:
        return "log in to the cluster again, or choose another --context"
    if failure.status == 403:
        return "ask whoever runs the cluster for that right, or choose another --namespace or --context"
    if missing_crds(failure):
        return "mlwright is not installed there: apply its crds/, or choose another --context"
    if failure.gone and "namespaces" in said:
        return "make the namespace, or choose another with --namespace"
    if failure.gone:
        return "see what there is: kubectl get mltasks,rollouts"
    if failure.status in (400, 409, 422):
        return "the cluster's mlwright may be of another version: compare its CRDs with crds/"
    return None


def no_answer(failure: ApiFailure) -> str:
    """A line of progress while something is tried again."""
    said = " ".join(str(failure).split())[:200]
    if failure.status == 403:
        return f"waiting for quota: {said}"
    return f"the API server does not answer as it should ({said}); trying again"
