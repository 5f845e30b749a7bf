#!/usr/bin/env bash
# Run for each submission. The sources hold the references: nobody but this user may read them.
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
chmod -R go-rwx "$root/source" "$root/results"
export PYTHONPATH="$root/source" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
exec "${VITEDU_PYTHON:-$root/venv/bin/python}" -m vitedu.grading.adapters.gradescope "$root"
