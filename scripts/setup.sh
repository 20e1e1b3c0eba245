#!/usr/bin/env bash
# Everything that the project needs on a fresh Debian or Ubuntu machine with Python 3.11 or newer:
# a .venv with the locked dependencies, and ns-2 from the distribution where we may install it.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }

# Installs a distribution's package if we are allowed to; says so in one line if not.
apt_install() {
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo=(sudo -n); else return 1; fi
  fi
  command -v apt-get >/dev/null || return 1
  say "installing $* from the distribution"
  { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" ||
    { "${sudo[@]}" apt-get update -qq &&
      "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@"; }; } \
    >/dev/null 2>&1
}

python=""
for candidate in "${PYTHON:-}" python3 python3.11 python3.12 python3.13 python3.14; do
  if [ -n "$candidate" ] && command -v "$candidate" >/dev/null &&
    "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  apt_install python3 python3-venv || true
  python=python3
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    { say "Python 3.11 or newer is needed"; exit 1; }
fi

if [ ! -x .venv/bin/pip ]; then
  say "making .venv with $("$python" --version)"
  if ! "$python" -m venv .venv 2>/dev/null; then
    rm -rf .venv
    apt_install python3-venv || { say "'$python -m venv' failed; install python3-venv"; exit 1; }
    "$python" -m venv .venv
  fi
fi

say "installing locked dependencies"
.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r scripts/uv.lock
# where Python may not keep bytecode, each process would compile the libraries anew
VIRTUAL_ENV=$PWD/.venv .venv/bin/uv pip install --quiet --require-hashes \
  ${PYTHONDONTWRITEBYTECODE:+--compile-bytecode} -r requirements.lock ||
  { say "uv failed; if it says UnknownIssuer, set UV_SYSTEM_CERTS=1, so that it trusts this system's certificates"
    exit 1; }
VIRTUAL_ENV=$PWD/.venv .venv/bin/uv pip install --quiet --no-deps --no-build-isolation \
  -e . -e ./paper_checks

if ! command -v ns >/dev/null; then
  apt_install ns2 && command -v ns >/dev/null ||
    say "ns-2 is not installed and we may not install it: live ns-2 runs and their tests are skipped"
fi
touch .venv/.ready
