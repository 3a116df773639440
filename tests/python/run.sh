#!/bin/sh
# Builds the module of bindings/python by hand against the built library, and runs a script that uses the package.
# PYTHON_FOR_PLAIT names a python3 with cffi, numpy, scipy and scikit-learn 1.6 or later.
# usage: run.sh ROOT LIBRARY PROGRAM CC SCRIPT
set -eu
root=$1 library=$2 program=$3 cc=$4 script=$5
python=
# Their versions, without importing them, which takes seconds of the processor.
there='import cffi
from importlib.metadata import version
assert version("numpy") and version("scipy") and [int(n) for n in version("scikit-learn").split(".")[:2]] >= [1, 6]'
for try in "${PYTHON_FOR_PLAIT:-}" "$root/.venv-python/bin/python" "$root/.venv/bin/python" python3; do
    [ -n "$try" ] && "$try" -c "$there" 2>/dev/null &&
        { python=$try; break; }
done
[ -n "$python" ] ||
    { echo "skipped: no python3 with cffi, numpy, scipy and scikit-learn 1.6 (PYTHON_FOR_PLAIT names one)"; exit 77; }
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -f "$include/Python.h" ] || { echo "skipped: no Python.h (python3-dev)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$root/bindings/python/plait" "$work/plait"
cp -L "$library" "$work/plait/libplait.so.0"
"$python" "$root/bindings/python/build_ffi.py" "$root/bindings/python/plait.cdef" "$work/_plait.c"
# shellcheck disable=SC2016
"$cc" -shared -fPIC -O1 -DPy_LIMITED_API=0x03090000 -I"$include" -I"$root/include" "$work/_plait.c" \
    "$work/plait/libplait.so.0" -Wl,-rpath,'$ORIGIN' -o "$work/plait/_plait.abi3.so"
cd "$work"
PYTHONPATH=$work "$python" "$root/tests/python/$script" "$program" "$root"
