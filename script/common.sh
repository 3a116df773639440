# What the scripts share; sourced from the root of the tree with `set -eu` on.

PLAIT_JOBS=${PLAIT_JOBS:-$(nproc 2>/dev/null || echo 2)}
started=$(date +%s)

say() { printf '== %s (%ss)\n' "$*" "$(($(date +%s) - started))"; }

# configure PRESET [option...]: afresh where the build folder came with a copy of the tree from elsewhere.
configure() {
    preset=$1
    shift
    cache=build/$preset/CMakeCache.txt
    if [ -f "$cache" ] && ! grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$cache"; then
        rm -rf "build/$preset"
    fi
    cmake --preset "$preset" "$@"
}

# build PRESET [target...]
build() {
    preset=$1
    shift
    if [ $# -gt 0 ]; then
        cmake --build --preset "$preset" --parallel "$PLAIT_JOBS" --target "$@"
    else
        cmake --build --preset "$preset" --parallel "$PLAIT_JOBS"
    fi
}

# Runs a command; shows what it said only when it fails.
quietly() {
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        rm -f "$log"
    else
        code=$?
        cat "$log"
        rm -f "$log"
        return $code
    fi
}

# run_tests PRESET [ctest option...]. More tests run at a time than there are cores: they wait for deadlines and for each
# other half of their time, and a test over MPI counts as two. The thread sanitizer needs the old layout of addresses.
run_tests() {
    preset=$1
    shift
    if [ "$preset" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
        setarch "$(uname -m)" -R ctest --preset tsan --parallel "$PLAIT_JOBS" "$@"
    else
        ctest --preset "$preset" --parallel "$((2 * PLAIT_JOBS))" "$@"
    fi
}
