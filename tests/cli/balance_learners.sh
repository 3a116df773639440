#!/bin/sh
# --balance dynamic of learners whose workers remember something of each row: topics, and both sides of als (trees: balance_trees.sh).
# Simulated hosts, one of which has a quarter of the others' speed: blocks change hands between epochs, the model has the bits of static where the
# learner promises bits, and the run takes less time; also where a rank dies, proven by the audit, and where it goes on from a checkpoint.
. "$(dirname "$0")/common.sh"

awk 'BEGIN { srand(3); for (d = 0; d < 600; d++) { t = d % 4; printf "1"; for (w = 0; w < 12; w++) if (rand() < 0.7) printf " %d:%d", t * 12 + w + 1, 1 + int(4 * rand()); print " 49:1" } }' >docs.svm
awk 'BEGIN { srand(5); for (i = 0; i < 12000; i++) { u = int(200 * rand()); v = int(90 * rand()); printf "u%d i%d %.3f\n", u, v, 3 + (u % 7 - 3) * (v % 5 - 2) / 6 } }' >stars
"$PLAIT" version | grep -q '^sim *found' || skip "no SimGrid"
hosts='version: 1\nhosts: [{count: 3}, {count: 1, speed: 0.25}]\ncost: {entry: 20us}\n'
printf "$hosts" >slow.yaml
printf "$hosts"'events:\n  - kill: {ranks: 1, at: 1 s}\n' >dies.yaml

# learner SHARE words...: dynamic takes at most this share of static's time, and makes the same model
learner() {
    share=$1
    shift
    words=$* run="$* --workers 4 --transport sim --json"
    # shellcheck disable=SC2086
    {
        works static train $run --cluster slow.yaml
        works dynamic train $run --cluster slow.yaml --balance dynamic --metrics moves
    }
    grep -q 'balance: .* hands after epoch' dynamic.err || grep -q shares moves || fail "$words: no block changes hands: $(cat dynamic.err)"
    same_bits static dynamic
    awk -v a="$(field dynamic virtual_seconds)" -v b="$(field static virtual_seconds)" -v s="$share" 'BEGIN { exit !(a < s * b) }' ||
        fail "$words: $(field dynamic virtual_seconds) s, and static $(field static virtual_seconds) s"
}
same_bits() { [ "$(field "$1" model_hash)" = "$(field "$2" model_hash)" ] || fail "$words: $2 is not the model of $1"; }

# dies words...: rank 1 dies while others hold its blocks, or it holds theirs
dies() {
    words=$*
    rm -f log m
    # shellcheck disable=SC2086
    {
        works whole train $words --workers 4 --transport sim --cluster slow.yaml --json --replicas 2
        works killed train $words --workers 4 --transport sim --cluster dies.yaml --json --replicas 2 --balance dynamic --events log --metrics m
    }
    grep -q '"event": "rank_lost"' m || fail "$words: nobody dies"
    grep -q 'balance: .* hands after epoch' killed.err || fail "$words: no block changes hands"
    same_bits whole killed
    works proven audit log
}

topics="--model lda --data docs.svm --components 4 --epochs 16 --reduce exact"
factors="--model mf --data stars --optimizer als --components 8 --epochs 12"
learner 0.8 $topics --topology ps
learner 0.8 $topics --topology allreduce
learner 0.8 $factors --topology ps
learner 0.8 $factors --topology allreduce
dies $topics --topology ps

# Topics under a stale consistency: values go with their rows, and the counts stay those of the tokens (the learner checks it).
words="stale topics"
works stale train --model lda --data docs.svm --components 4 --epochs 16 --workers 4 --transport sim --cluster slow.yaml --topology ps --consistency ssp:2 --balance dynamic --json
grep -q 'balance: .* hands after epoch' stale.err || fail "stale topics: no block changes hands"

# A checkpoint of a run whose blocks have changed hands holds each row's values once, from their last holder.
for words in "$topics" "$factors"; do
    rm -rf kept
    # shellcheck disable=SC2086
    {
        works whole train $words --topology ps --workers 3 --json
        works first train $words --topology ps --workers 4 --transport sim --cluster slow.yaml --balance dynamic --checkpoint kept --checkpoint-every 5 --json
        works goes_on train $words --topology ps --resume kept --workers 3 --json
        same_bits whole goes_on
        works goes_on train $words --topology ps --resume kept --workers 2 --balance dynamic --json
        same_bits whole goes_on
    }
done
exits 2 '--balance dynamic with model lda and --words rotate is refused' rotate train $topics --reduce plain --words rotate --workers 2 --balance dynamic
exits 2 '--balance dynamic with --replicas 2 with model mf is refused' copies train $factors --workers 2 --topology ps --replicas 2 --balance dynamic
finish
