#!/usr/bin/env bash
# Makes a virtual environment with mlwright and all that its tests need, or brings it up to date.
#   hack/venv.sh VENV [PYTHON]
# Does nothing where the environment was made from this pyproject.toml, by this Python, for this checkout.
set -euo pipefail

venv=${1:?usage: hack/venv.sh VENV [PYTHON]}
wanted=${2:-python3}
cd "$(dirname "$0")/.."
stamp=$venv/.mlwright
extras='.[train,report,examples,dev]'

fail() {
  printf 'setup: %s\n' "$1" >&2
  exit 1
}

# The wanted Python if it is new enough, else the newest beside it that is.
find_python() {
  local candidate
  for candidate in "$wanted" python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  fail "needs Python 3.11 or newer; none found (make setup PYTHON=/path/to/python3)"
}

# Debian ships venv and ensurepip as a package of its own.
ensure_venv_module() {
  "$python" -c 'import ensurepip, venv' 2>/dev/null && return
  hack/packages.sh python3-venv
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python has no venv module: install python3-venv (apt-get install python3-venv), then make setup"
}

python=$(find_python)
made_from=$("$python" - pyproject.toml <<'PY'
import hashlib
import sys

with open(sys.argv[1], "rb") as file:
    print(hashlib.sha256(file.read() + sys.version.encode()).hexdigest())
PY
)
here="$made_from $PWD"
[[ -f $stamp && $(head -n 1 "$stamp") == "$here" ]] && exit 0

started=$SECONDS
mkdir -p "$(dirname "$venv")"
# One at a time: two checkouts may share an environment.
exec 9<"$(dirname "$venv")"
if command -v flock >/dev/null; then flock 9; fi
if [[ -f $stamp && $(head -n 1 "$stamp" | cut -d ' ' -f 1) == "$made_from" ]]; then
  # Made for another checkout: only the editable install has to move.
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -e . >&2
else
  ensure_venv_module
  printf 'setup: installing into %s (torch is large: several minutes, 6 GB)\n' "$venv" >&2
  "$python" -m venv --clear "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip >&2
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e "$extras" >&2
fi
printf '%s\n%s\n' "$here" "$((SECONDS - started))" >"$stamp"
printf 'setup: done in %s s\n' "$((SECONDS - started))" >&2
