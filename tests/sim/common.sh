# Sourced by the tests of sim, on top of those of the program.
. "$(dirname "$0")/../acceptance/common.sh"
sim="train --model logistic --optimizer adagrad --data $data/a9a/a9a.gz --transport sim --epochs 1 --json --quiet"

# cluster HOSTS lines...: writes c.yaml, with events
cluster() {
    { echo "version: 1"; echo "hosts: [{count: $1}]"; echo "cost: {clock: 10 ms}"; echo "events:"; } >c.yaml
    shift
    for line in "$@"; do echo "  - $line" >>c.yaml; done
}

# longer A B BY: B's simulated time is at least BY times A's
longer() {
    a=$(field "$1" virtual_seconds) b=$(field "$2" virtual_seconds)
    awk -v a="$a" -v b="$b" -v by="$3" 'BEGIN { exit !(a > 0 && b >= a * by) }' || fail "$2 takes $b s, not $3 times the $a s of $1"
}
