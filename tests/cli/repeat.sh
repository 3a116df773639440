#!/bin/sh
# docs/reproducibility.md is this test's table: a setting that it says repeats is run three times, and settings that it
# says are alike are compared; model_hash must not differ.
# usage: repeat.sh [MPIRUN]        with it, the settings of processes, else those of threads
. "$(dirname "$0")/common.sh"
if [ $# -gt 0 ]; then
    PLAIT_MPIRUN=$1
    export PLAIT_MPIRUN
    kind=launch
else
    kind=train
fi
gzip -dc "$data/a9a/a9a.gz" | head -n 3000 >train.svm
gzip -c train.svm >train.svm.gz

# hash_of words...: the model's hash of a run
hash_of() {
    "$PLAIT" "$@" --json --quiet >hash.out 2>hash.err || { echo "exit $?"; return; }
    field hash model_hash
}

sed -n 's/^| `\([^`]*\)` | yes |.*/\1/p' "$PLAIT_SOURCE_DIR/docs/reproducibility.md" | grep "^$kind " >repeats || true
sed -n 's/^| `\([^`]*\)` | `\([^`]*\)` | alike |.*/\1\t\2/p' "$PLAIT_SOURCE_DIR/docs/reproducibility.md" | grep "^$kind " >alike || true
[ -s repeats ] || fail "no setting is said to repeat"
while read -r words; do
    # shellcheck disable=SC2086
    {
        first=$(hash_of $words)
        [ ${#first} -eq 64 ] || fail "plait $words: $first, $(tail -n 1 hash.err)"
        for _ in 2 3; do
            next=$(hash_of $words)
            [ "$next" = "$first" ] || fail "does not repeat: plait $words: $first, then $next $(tail -n 1 hash.err)"
        done
    }
done <repeats
tab=$(printf '\t')
[ $kind = launch ] || [ -s alike ] || fail "no settings are said to be alike"
while IFS=$tab read -r one other; do
    # shellcheck disable=SC2086
    {
        first=$(hash_of $one)
        next=$(hash_of $other)
        [ ${#first} -eq 64 ] && [ "$first" = "$next" ] || fail "not alike: plait $one: $first; plait $other: $next"
    }
done <alike
echo "$(wc -l <repeats) settings repeat, $(wc -l <alike) pairs are alike"
finish
