"""Certificates and tokens of one cluster: who may talk to its API server, and how it is recognised."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlwright_cluster.errors import CommandFailed

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
DAYS = "3650"
EXTENSIONS = """\
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


@dataclass(frozen=True)
class User:
    """Somebody with a token: the name and groups that Kubernetes' own roles are bound to."""

    name: str
    groups: tuple[str, ...] = ()


ADMIN = User("mlwright-admin", ("system:masters",))
CONTROLLERS = User("system:kube-controller-manager")
SCHEDULER = User("system:kube-scheduler")
PROXY = User("system:kube-proxy")


def kubelet_user(node: str) -> User:
    """The user that the Node authorizer ties to one node's pods."""
    return User(f"system:node:{node}", ("system:nodes",))


def token_file(tokens: dict[User, str]) -> str:
    """The API server's static token file: token, user name, user id, groups."""
    lines = [f'{token},{user.name},{user.name},"{",".join(user.groups)}"' for user, token in tokens.items()]
    return "\n".join(lines) + "\n"


def alternative_names(*, names: Sequence[str], addresses: Sequence[str]) -> str:
    """The subjectAltName line of a certificate for DNS names and IP addresses."""
    return ",".join([*(f"DNS:{name}" for name in names), *(f"IP:{address}" for address in addresses)])


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(24)


def make_certificates(folder: Path, *, addresses: Sequence[str]) -> None:
    """Writes ca, server (for the API server, at `addresses`), kubelet-client and service-accounts (.crt and .key).

    Raises CommandFailed where openssl is missing or says no. Takes some 50 ms.
    """
    (folder / "openssl.cnf").write_text(EXTENSIONS)
    _certificate(folder, "ca", subject="/CN=mlwright-cluster")
    names = alternative_names(
        names=("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"), addresses=addresses
    )
    _certificate(folder, "server", subject="/CN=kube-apiserver", names=names)
    _certificate(folder, "kubelet-client", subject="/O=system:masters/CN=kube-apiserver-kubelet-client")
    _certificate(folder, "service-accounts", subject="/CN=service-accounts")


def _certificate(folder: Path, name: str, *, subject: str, names: str = "") -> None:
    authority = name == "ca"
    signed_by = [] if authority else ["-CA", "ca.crt", "-CAkey", "ca.key"]
    section = "authority" if authority else "leaf"
    more = ["-addext", f"subjectAltName={names}"] if names else []
    files = ["-keyout", f"{name}.key", "-out", f"{name}.crt"]
    form = ["-config", "openssl.cnf", "-extensions", section, "-days", DAYS, "-subj", subject]
    _openssl(folder, ["req", "-x509", *CURVE, *files, *form, *signed_by, *more])


def _openssl(folder: Path, arguments: list[str]) -> None:
    try:
        done = subprocess.run(
            ["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise CommandFailed("openssl is missing (apt-get install openssl)") from error
    if done.returncode != 0:
        raise CommandFailed(f"openssl {' '.join(arguments)}: {done.stderr.strip()[-1000:]}")
