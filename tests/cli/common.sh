# shellcheck shell=sh
# Sourced by the tests of the commands, on top of what the acceptance tests have.
. "$(dirname "$0")/../acceptance/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 300 >part

# until_holds SECONDS words...: polls a condition until it holds; false at the deadline
until_holds() {
    tries=$(($1 * 20))
    shift
    while [ $tries -gt 0 ]; do
        if "$@"; then return 0; fi
        tries=$((tries - 1))
        sleep 0.05
    done
    return 1
}

says() { grep -q -- "$2" "$1" 2>/dev/null; }                # says FILE PATTERN
gone() { ! kill -0 "$1" 2>/dev/null; }                      # gone PID

skip() {
    echo "skipped: $*"
    exit 77
}
