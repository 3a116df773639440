#!/bin/sh
# --balance dynamic of solvers whose workers remember something of each row: newton, cd of both kinds, lbfgs. Simulated hosts, one of
# which has a quarter of the others' speed: blocks change hands where all meet, the optimum is the one of static, and the run takes less
# time where rows take it; also where a rank dies, proven by the audit, and where the run goes on from a checkpoint.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 2000 >some
"$PLAIT" version | grep -q '^sim *found' || skip "no SimGrid"
hosts='version: 1\nhosts: [{count: 3}, {count: 1, speed: 0.25}]\ncost: {entry: 2us}\n'
printf "$hosts" >slow.yaml
printf "$hosts"'events:\n  - kill: {ranks: 1, at: 1 s}\n' >dies.yaml

# at_optimum NAME: where run static ends, within the tolerance
at_optimum() {
    [ "$(field "$1" converged)" = true ] || fail "$words, $1: it does not converge"
    awk -v a="$(field "$1" objective)" -v b="$(field static objective)" 'BEGIN { d = a / b - 1; exit !(d < 4e-5 && d > -4e-5) }' ||
        fail "$words, $1: objective $(field "$1" objective) instead of $(field static objective)"
}

# solver SHARE words...: dynamic takes at most this share of static's time
solver() {
    share=$1
    shift
    words=$* run="$* --data some --tolerance 1e-6 --workers 4 --transport sim --json"
    # shellcheck disable=SC2086
    {
        works static train $run --cluster slow.yaml
        works dynamic train $run --cluster slow.yaml --balance dynamic
        rm -f log m
        case $words in
        *ps*ssp*) ;;
        *) works killed train $run --cluster dies.yaml --balance dynamic --replicas 2 --events log --metrics m ;;
        esac
    }
    grep -q 'balance: .* hands after epoch' dynamic.err || fail "$words: no block changes hands: $(cat dynamic.err)"
    at_optimum dynamic
    awk -v a="$(field dynamic virtual_seconds)" -v b="$(field static virtual_seconds)" -v s="$share" 'BEGIN { exit !(a < s * b) }' ||
        fail "$words: $(field dynamic virtual_seconds) s, and static $(field static virtual_seconds) s"
    [ ! -f m ] || { at_optimum killed; grep -q '"event": "rank_lost"' m || fail "$words: nobody dies"; works proven audit log; }
}
solver 0.8 --model hinge --optimizer newton --topology ps
solver 0.8 --optimizer newton --hash-bits 12 --topology ps
solver 0.8 --optimizer newton --hash-bits 12 --topology ps --consistency ssp:2
solver 1.1 --model hinge --optimizer cd --l2 0.01 --topology ps # its workers take turns
solver 0.8 --optimizer cd --l1 0.001 --hash-bits 11 --topology ps
solver 0.8 --optimizer lbfgs --hash-bits 12 --topology ps
solver 0.8 --optimizer lbfgs --hash-bits 12 --topology allreduce

# lbfgs keeps nothing of its rows: with exact sums the bits are those of static.
words="--data some --optimizer lbfgs --reduce exact --workers 4 --transport sim --cluster slow.yaml --topology ps --json --tolerance 1e-6"
# shellcheck disable=SC2086
{
    works exact train $words
    works moved train $words --balance dynamic
}
grep -q 'balance: ' moved.err || fail "exact sums: no block changes hands"
[ "$(field exact model_hash)" = "$(field moved model_hash)" ] || fail "lbfgs, exact sums: another model"

# A checkpoint of a run whose blocks have changed hands: models of other rows than the run that goes on has are made anew.
for words in "--model hinge --optimizer newton" "--optimizer newton --hash-bits 12" "--model hinge --optimizer cd --l2 0.01" "--optimizer lbfgs --hash-bits 12"; do
    run="train --data some $words --topology ps --workers 4 --tolerance 1e-6 --json"
    rm -rf kept
    # shellcheck disable=SC2086
    {
        works static $run
        works first $run --transport sim --cluster slow.yaml --balance dynamic --epochs 24 --checkpoint kept --checkpoint-every 8
        grep -q 'balance: ' first.err || fail "$words: no block changes hands before a checkpoint"
        works goes_on $run --resume kept
        at_optimum goes_on
        works goes_on $run --resume kept --balance dynamic --workers 2
        at_optimum goes_on
    }
done
finish
