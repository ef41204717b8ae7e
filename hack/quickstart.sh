#!/usr/bin/env bash
# The quickstart, and how long each part took: prepare the task, run, report.
#   hack/quickstart.sh VENV [DIR]
set -euo pipefail

venv=${1:?usage: hack/quickstart.sh VENV [DIR]}
cd "$(dirname "$0")/.."
run=${2:-runs/quickstart}
task=examples/tasks/churn
mlwright=$venv/bin/mlwright
parts=()

timed() {
  local name=$1 started=$SECONDS
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@"
  parts+=("$(printf '%-16s %5d s' "$name" "$((SECONDS - started))")")
}

resume=()
[[ -e $run/ledger.sqlite ]] && resume=(--resume)

installed=$(sed -n 3p "$venv/.mlwright" 2>/dev/null || true)
parts+=("$(printf '%-16s %5s s (once)' 'install' "${installed:-?}")")
timed 'prepare data' "$mlwright" task prepare "$task"
timed 'run' "$mlwright" run examples/quickstart/run.yaml --task "churn=$task" --dir "$run" "${resume[@]}"
timed 'report' "$mlwright" report "$run"

printf '\nHow long each part took:\n'
printf '  %s\n' "${parts[@]}"
printf '\nOpen %s/report.html, or try:\n' "$run"
printf '  %s replay %s    # recompute the weights from the ledger\n' "$mlwright" "$run"
printf '  %s show %s best    # the best script, and how it was judged\n' "$mlwright" "$run"
printf '  %s task new --help    # a task from a table of your own\n' "$mlwright"
