#!/bin/sh
# Builds the wheel in a clean environment, installs it in another one in which there is no compiler, and runs the
# package's tests there. It needs what the README says a build needs, and a package index for pip.
# usage: check-wheel.sh [FOLDER]   (FOLDER keeps the wheel and both environments)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work"
work=$(cd "$work" && pwd)
[ $# -gt 0 ] || trap 'rm -rf "$work"' EXIT

python3 -m venv --clear "$work/build"
"$work/build/bin/pip" wheel --quiet --no-deps --wheel-dir "$work/dist" "$root"
wheel=$(ls -t "$work"/dist/plait-*-abi3-*.whl | head -1)
ls -l "$wheel"

python3 -m venv --clear "$work/use"
mkdir -p "$work/bin" "$work/run"
for tool in sh env ls; do ln -sf "$(command -v $tool)" "$work/bin/$tool"; done
cd "$work/run"
alone() { env -i PATH="$work/use/bin:$work/bin" HOME="$work" "$@"; }
alone pip install --quiet --only-binary :all: "$wheel" pandas
if alone sh -c 'command -v cc gcc clang cmake'; then echo "check-wheel: there is a compiler on PATH"; exit 1; fi
own=$(alone python -c 'import plait, os; print(os.path.dirname(plait.__file__))')
for test in estimators jobs docs checks; do
    alone python "$root/tests/python/$test.py" "$own/bin/plait" "$root"
    echo "$test: passed"
done
