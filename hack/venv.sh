#!/usr/bin/env bash
# Makes a virtual environment with mlwright and all that its tests need, or brings it up to date.
#   hack/venv.sh VENV [PYTHON]
# Does nothing where the environment was made from this pyproject.toml, by this Python, for this checkout.
# Never touches a folder that it did not make itself.
set -euo pipefail

venv=${1:?usage: hack/venv.sh VENV [PYTHON]}
wanted=${2:-python3}
cd "$(dirname "$0")/.."
stamp=$venv/.mlwright
extras='.[train,operator,report,examples,dev]'

fail() {
  printf 'setup: %s\n' "$1" >&2
  exit 1
}

# The wanted Python if it is new enough, else the newest beside it that is; never one inside of an environment,
# which might be the very one that is to be made.
find_python() {
  local candidate
  for candidate in "$wanted" python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      "$candidate" -c 'import sys; print(sys._base_executable)'
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

install() {
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2
}

made_by() { # what line N of the stamp says
  sed -n "$1p" "$stamp" 2>/dev/null || true
}

python=$(find_python)
version=$("$python" -c 'import sys; print(sys.version.replace("\n", " "))')
project=$("$python" -c 'import hashlib; print(hashlib.sha256(open("pyproject.toml", "rb").read()).hexdigest())')
[[ $(made_by 1) == "$version" && $(made_by 2) == "$project $PWD" ]] && exit 0

if [[ -e $venv && ! -f $stamp ]]; then
  fail "$venv exists and was not made by this script: remove it, or choose another (make setup VENV=...)"
fi
started=$SECONDS
mkdir -p "$(dirname "$venv")"
# One at a time: two checkouts may share an environment.
exec 9<"$(dirname "$venv")"
if command -v flock >/dev/null; then flock 9; fi

if [[ $(made_by 1) != "$version" ]]; then
  ensure_venv_module
  "$python" -m venv --clear "$venv"
  printf '%s\nincomplete\n' "$version" >"$stamp"
  install --upgrade pip
fi
if [[ $(made_by 2) == "$project "* ]]; then
  install --no-deps -e . # Made for another checkout: only the editable install has to move.
else
  printf 'setup: installing into %s (torch is large: several minutes, 6 GB)\n' "$venv" >&2
  install -e "$extras"
fi
printf '%s\n%s\n%s\n' "$version" "$project $PWD" "$((SECONDS - started))" >"$stamp"
printf 'setup: done in %s s\n' "$((SECONDS - started))" >&2
