"""Whether a pod is the one that was asked for: whatever differs and is not known to be harmless is told."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from mlwright_api.quantities import Quantity

Leaves = dict[str, object]
"""Values by path, such as `spec.containers[agent].image`; lists of words are one value."""

_SHOWN_CHARACTERS = 80
_KEYS = ("mountPath", "name", "path")
"""By which the items of a list are told apart, whatever their order."""


def weakened(sent: Mapping[str, Any], returned: Mapping[str, Any]) -> tuple[str, ...]:
    """What is not as it was sent, a line each; empty where the pod can be trusted.

    `sent` and `returned` are objects with metadata and spec: a pod template as it was built, and the template or the
    pod as an API server shows it. Of the metadata only labels (policies select by them) and annotations (they carry
    the request, and network plug-ins and runtimes take orders from them) are compared.
    Closed by default: a field that is new to this function is a difference, until a rule below allows it.
    """
    asked, found = _leaves(_compared(sent)), _leaves(_compared(returned))
    return tuple(_differences(asked, found))


def _differences(asked: Leaves, found: Leaves) -> Iterator[str]:
    for path, value in asked.items():
        if path not in found:
            yield f"{path}: {_shown(value)} is gone"
        elif not _equal(path, value, found[path]):
            yield f"{path}: {_shown(value)} has become {_shown(found[path])}"
    for path, value in found.items():
        if path not in asked and not _harmless(path, value, asked):
            yield f"{path}: {_shown(value)} was added"


def lacks_user_namespace(sent: Mapping[str, Any], returned: Mapping[str, Any]) -> bool:
    """Whether a user namespace was asked for and the cluster has left it out (it knows none)."""
    return sent["spec"].get("hostUsers") is False and returned.get("spec", {}).get("hostUsers") is not False


def _compared(pod: Mapping[str, Any]) -> dict[str, Any]:
    metadata, spec = pod.get("metadata"), pod.get("spec")
    named = metadata if isinstance(metadata, Mapping) else {}
    compared = {key: named[key] for key in ("labels", "annotations") if named.get(key)}
    if isinstance(spec, Mapping) and spec.get("hostUsers") is True:
        # The same as nothing, which is what a cluster says that knows no user namespaces.
        spec = {key: value for key, value in spec.items() if key != "hostUsers"}
    return {"metadata": compared, "spec": spec}


def _leaves(tree: object) -> Leaves:
    """Every value of a tree by its path."""
    found: Leaves = {}
    _gather(tree, "", found)
    return found


def _gather(tree: object, path: str, found: Leaves) -> None:
    if isinstance(tree, str | int):  # most are, and everything else is slower to ask
        found[path] = tree
    elif isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            _gather(value, f"{path}.{key}" if path else str(key), found)
    elif isinstance(tree, list) and any(isinstance(item, Mapping) for item in tree):
        _gather_items(tree, path, found)
    else:
        found[path] = tree


def _gather_items(items: list[Any], path: str, found: Leaves) -> None:
    """Items by name, or whole by what they say; a second one of the same name must not hide behind the first."""
    seen: Counter[str] = Counter()
    for item in items:
        name = _name(item)
        place = json.dumps(item, sort_keys=True, default=str) if name is None else name
        seen[place] += 1
        at = f"{path}[{place}]" if seen[place] == 1 else f"{path}[{place}#{seen[place]}]"
        if name is None:
            found[at] = item
        else:
            _gather(item, at, found)


def _name(item: object) -> str | None:
    if not isinstance(item, Mapping):
        return None
    for key in _KEYS:
        name = item.get(key)
        if isinstance(name, str):
            return name
    return None


_AMOUNT = re.compile(r"\.resources\.(requests|limits)\.[^.\[]+(/[^.\[]+)?$|\.emptyDir\.sizeLimit$")


def _equal(path: str, asked: object, found: object) -> bool:
    if type(asked) is type(found) and asked == found:
        return True
    amount = _amount(asked) if _AMOUNT.search(path) else None
    return amount is not None and amount == _amount(found)


def _amount(written: object) -> Decimal | None:
    """The number that a quantity stands for: an API server writes 1024Mi as 1Gi."""
    try:
        return Quantity(written).exact
    except ValueError:
        return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


# What a cluster adds to every pod, and may. Each rule: the whole path, and which values are fine.

Fine = Callable[[object, Leaves], bool]


def _any(value: object, _asked: Leaves) -> bool:
    return value is not None


_NODE_LIFE = frozenset(
    f"node.kubernetes.io/{condition}" for condition in ("not-ready", "unreachable", "memory-pressure")
)


def _tolerable(value: object, asked: Leaves) -> bool:
    """Added to every pod, for the devices that were asked for, or by the platform's runtime class."""
    key = str(value.get("key")) if isinstance(value, Mapping) else ""
    devices = {path.rpartition(".limits.")[2] for path in asked if ".resources.limits." in path}
    return key in _NODE_LIFE or key in devices or "spec.runtimeClassName" in asked


_HARMLESS: tuple[tuple[re.Pattern[str], Fine], ...] = tuple(
    (re.compile(pattern, re.DOTALL), fine)
    for pattern, fine in (
        # The Job controller's labels, and where the node is.
        (r"metadata\.labels\.(batch\.kubernetes\.io/)?(controller-uid|job-name)", _any),
        (r"metadata\.labels\.topology\.kubernetes\.io/(zone|region)", _any),
        # What network plug-ins note down about the address that they gave, and others about defaults: no orders.
        (r"metadata\.annotations\.cni\.projectcalico\.org/(containerID|podIPs?)", _any),
        (r"metadata\.annotations\.k8s\.ovn\.org/pod-networks", _any),
        (r"metadata\.annotations\.k8s\.v1\.cni\.cncf\.io/network-status", _any),
        (r"metadata\.annotations\.kubernetes\.io/limit-ranger", _any),
        # Defaults of the API server.
        (r"spec\.schedulerName", lambda value, _asked: value == "default-scheduler"),
        (r"spec\.serviceAccount", lambda value, asked: value == asked.get("spec.serviceAccountName")),
        # When and where, not what.
        (r"spec\.(nodeName|priority|preemptionPolicy|priorityClassName)", _any),
        (r"spec\.tolerations\[.*\]", _tolerable),
        # The runtime class's own demands, where the platform asked for one.
        (r"spec\.(overhead|nodeSelector)\..*", lambda _value, asked: "spec.runtimeClassName" in asked),
        # The service account's, where none were asked for; only the kubelet sees them.
        (
            r"spec\.imagePullSecrets\[.*\]\.name",
            lambda _value, asked: not _asks(asked, "spec.imagePullSecrets"),
        ),
    )
)


def _harmless(path: str, value: object, asked: Leaves) -> bool:
    return any(pattern.fullmatch(path) and fine(value, asked) for pattern, fine in _HARMLESS)


def _asks(asked: Leaves, prefix: str) -> bool:
    return any(path.startswith(prefix) for path in asked)
