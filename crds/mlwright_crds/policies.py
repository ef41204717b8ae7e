"""ValidatingAdmissionPolicies: what a run's collector may write, which RBAC cannot say.

A collector is known by its ServiceAccount, `<run>-collector` in the run's namespace. RBAC gives it rollouts and the
status of runs in that namespace; these policies narrow that to its own run, and to its own part of the status.
"""

from __future__ import annotations

from typing import Any

from mlwright_api.base import API_VERSION, GROUP
from mlwright_api.runstatus import COLLECTOR_STATUS, TrainingRunStatus

Manifest = dict[str, Any]

_NAMESPACE_ACCOUNTS = "'system:serviceaccount:' + request.namespace + ':'"
# Only accounts of the object's own namespace: `generic-garbage-collector` lives in kube-system.
_IS_COLLECTOR = f"request.userInfo.username.startsWith({_NAMESPACE_ACCOUNTS})" + (
    " && request.userInfo.username.endsWith('-collector')"
)


def _account_of(run: str) -> str:
    return f"{_NAMESPACE_ACCOUNTS} + {run} + '-collector'"


def rollouts_of_own_run() -> list[Manifest]:
    """A collector touches only rollouts of its run; others add to a run only what may change the run itself."""
    named = "has(variables.rollout.spec.runRef)"
    own = f"{named} && request.userInfo.username == {_account_of('variables.rollout.spec.runRef.name')}"
    may_change_the_run = (
        f"authorizer.group('{GROUP}').resource('trainingruns').namespace(request.namespace)"
        ".name(variables.rollout.spec.runRef.name).check('update').allowed()"
    )
    return _policy(
        "rollouts-of-own-run",
        rules=[_rule(["CREATE", "UPDATE", "DELETE"], "rollouts")],
        variables={
            "rollout": "request.operation == 'DELETE' ? oldObject : object",
            "isCollector": _IS_COLLECTOR,
            "isOwn": own,
        },
        validations=[
            (
                "!variables.isCollector || variables.isOwn",
                "a collector may only create, change and delete rollouts whose spec.runRef names its own run",
            ),
            (
                f"request.operation != 'CREATE' || !{named} || variables.isOwn || {may_change_the_run}",
                "spec.runRef may only be given by the run's collector, or by who may update that TrainingRun: "
                "leave it out",
            ),
        ],
    )


def status_by_its_writer() -> list[Manifest]:
    """A collector writes its part of its own run's status, and no other status."""
    fields = [field.alias or name for name, field in TrainingRunStatus.model_fields.items()]
    others = [name for name in fields if name not in COLLECTOR_STATUS]
    same = " && ".join(f"object.?status.?{name} == oldObject.?status.?{name}" for name in others)
    return _policy(
        "status-by-its-writer",
        rules=[_rule(["UPDATE"], "trainingruns/status", "mltasks/status", "rollouts/status")],
        condition=_IS_COLLECTOR,
        validations=[
            (
                "request.resource.resource == 'trainingruns' && "
                f"request.userInfo.username == {_account_of('object.metadata.name')}",
                "a collector may only write the status of its own TrainingRun",
            ),
            (
                f"request.resource.resource != 'trainingruns' || ({same})",
                f"a collector may only write {', '.join(COLLECTOR_STATUS)} of the status: "
                f"{', '.join(others)} are the operator's",
            ),
        ],
    )


def policies() -> list[Manifest]:
    """Every policy with its binding."""
    return [*rollouts_of_own_run(), *status_by_its_writer()]


def _rule(operations: list[str], *resources: str) -> Manifest:
    return {
        "apiGroups": [GROUP],
        "apiVersions": [API_VERSION.removeprefix(f"{GROUP}/")],
        "operations": operations,
        "resources": list(resources),
    }


def _policy(
    name: str,
    *,
    rules: list[Manifest],
    validations: list[tuple[str, str]],
    variables: dict[str, str] | None = None,
    condition: str = "",
) -> list[Manifest]:
    """A policy that refuses, also where it cannot be evaluated, and its binding to every namespace."""
    spec: Manifest = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules}}
    if condition:
        spec["matchConditions"] = [{"name": "by-a-collector", "expression": condition}]
    if variables:
        spec["variables"] = [{"name": key, "expression": value} for key, value in variables.items()]
    spec["validations"] = [
        {"expression": expression, "message": message, "reason": "Forbidden"}
        for expression, message in validations
    ]
    return [
        _object("ValidatingAdmissionPolicy", name, spec),
        _object(
            "ValidatingAdmissionPolicyBinding",
            name,
            {"policyName": f"{name}.{GROUP}", "validationActions": ["Deny"]},
        ),
    ]


def _object(kind: str, name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": f"{name}.{GROUP}"},
        "spec": spec,
    }
