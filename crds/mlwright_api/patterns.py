"""What names may look like: each pattern, and what it allows in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
METRIC_NAME = r"^[a-z][a-z0-9_]*$"
CSV_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*\.csv$"
FILE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
HUB_NAME = r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?(@[A-Za-z0-9_./-]+)?$"
DIGEST = r"^sha256:[0-9a-f]{64}$"

IN_WORDS: Mapping[str, str] = MappingProxyType(
    {
        DNS_LABEL: "lower-case letters, digits and '-', starting and ending with a letter or digit",
        DNS_NAME: "lower-case letters, digits, '-' and '.', each part starting and ending with a letter or digit",
        METRIC_NAME: "lower-case letters, digits and '_', starting with a letter",
        CSV_NAME: "a file name that ends in .csv: letters, digits, '.', '_' and '-', and no folder",
        FILE_NAME: "a file name: letters, digits, '.', '_' and '-', and no folder",
        HUB_NAME: "a hub name such as owner/name or owner/name@revision",
        DIGEST: "sha256: and 64 hexadecimal digits",
    }
)
