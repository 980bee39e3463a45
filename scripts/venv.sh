#!/bin/sh
# Makes or completes the virtual environment .venv of this checkout: scripts/venv.sh [train] [dev]
# It is used again as long as pyproject.toml does not change.
set -eu
cd "$(dirname "$0")/.."

supported='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))'

find_python() {
    for candidate in ${PYTHON:-python3.12 python3.11 python3 python}; do
        if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$supported" 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    found=$(${PYTHON:-python3} --version 2>&1 || true)
    echo "Python 3.11 or 3.12 is needed (MindSpore 2.10.0 has no other); found: ${found:-none}." >&2
    echo "Install one, or name it: make $MAKECMDGOALS PYTHON=/path/to/python3.11" >&2
    exit 1
}

MAKECMDGOALS=${MAKECMDGOALS:-demo}
wanted="$*"
stamp=".venv/ready"
state="$wanted $(cksum <pyproject.toml)"
if [ -x .venv/bin/python ] && .venv/bin/python -c "$supported" 2>/dev/null; then
    if [ -f "$stamp" ] && grep -qxF "$state" "$stamp"; then
        exit 0
    fi
else
    python=$(find_python)
    rm -rf .venv
    "$python" -m venv .venv
fi

extras=""
groups=""
for name in $wanted; do
    case $name in
    train) extras="[train]" ;;
    dev) groups="--group dev" ;;
    esac
done
echo "Installing into .venv${extras:+ with the training stack (about 2.8 GB)} …"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
# shellcheck disable=SC2086
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".$extras" $groups
echo "$state" >>"$stamp"
