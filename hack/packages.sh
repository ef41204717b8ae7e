#!/usr/bin/env bash
# Installs those of the named Debian packages that are missing, where that is possible; else says what is missing.
#   hack/packages.sh NAME...
set -euo pipefail

missing=()
for name in "$@"; do
  dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed ||
    missing+=("$name")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
  printf 'missing: %s (as root: apt-get install %s)\n' "${missing[*]}" "${missing[*]}" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
