#!/usr/bin/env bash
# Run once, as root, when Gradescope builds the image. VITEDU_PYTHON names a Python that has everything already.
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
if [ -n "${VITEDU_PYTHON:-}" ]; then
  exit 0
fi
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv
python3 -m venv "$root/venv"
"$root/venv/bin/python" -m pip install --no-cache-dir --requirement "$root/source/requirements.txt"
