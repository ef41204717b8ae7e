"""`python -m mlwright_operator`: runs the operator until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from mlwright_operator.edge import heap, logs
from mlwright_operator.edge.configuring import load_config
from mlwright_operator.edge.process import Options, run
from mlwright_operator.errors import ConfigError

log = logging.getLogger("mlwright_operator")

DESCRIPTION = """\
Turns MLTasks and Rollouts into hardened Jobs, and their ends into outcomes.

It needs the CRDs (kubectl apply -f crds/), the rights in operator/rbac.yaml, and a configuration. The smallest one:

  profiles:
    default:
      image: registry.example/mlwright-sandbox@sha256:...
"""
EPILOG = """\
probes and metrics: http://HOST:PORT/healthz, /readyz and /metrics
exit codes: 0 asked to stop; 1 a fault of ours; 2 configuration or arguments; 75 another operator leads now

examples:
  python -m mlwright_operator --config operator.yaml --kubeconfig ~/.kube/config --no-election --namespace lab
  kubectl get rollouts --all-namespaces --watch
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m mlwright_operator",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="configuration, YAML or JSON"
    )
    made.add_argument(
        "--namespace",
        action="append",
        metavar="NAME",
        help="watch this one (may be repeated); instead of `namespaces` of the configuration; default: all",
    )
    made.add_argument(
        "--kubeconfig", metavar="FILE", help="default: the pod's service account, else $KUBECONFIG"
    )
    made.add_argument(
        "--no-election",
        action="store_true",
        help="write without a Lease: only where no other operator can run",
    )
    made.add_argument(
        "--lease-namespace",
        metavar="NAME",
        help="of the Lease mlwright-operator; default: the pod's own, else default",
    )
    made.add_argument(
        "--listen", type=address, default=("0.0.0.0", 8080), metavar="HOST:PORT", help="default 0.0.0.0:8080"
    )
    made.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    return made


def address(text: str) -> tuple[str, int]:
    """HOST:PORT; the host may be left out, or be an IPv6 address in brackets."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"must be HOST:PORT, not {text!r}")
    return host.strip("[]") or "0.0.0.0", int(port)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit code."""
    given = parser().parse_args(arguments)
    logs.configure(given.log_level)
    heap.keep_small()
    options = Options(
        namespaces=given.namespace,
        kubeconfig=given.kubeconfig,
        election=not given.no_election,
        lease_namespace=given.lease_namespace,
        listen=given.listen,
    )
    try:
        return asyncio.run(run(load_config(given.config), options))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except Exception:
        log.exception("a fault of ours")
        return 1


if __name__ == "__main__":
    sys.exit(main())
