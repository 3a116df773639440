#!/bin/sh
# Example 11, a learner of the program's own, by its flags alone: every topology, consistency and transport gives the same
# bits; checkpoints, resumed by other numbers of workers; ranks that die; a model that is predicted from. And the same
# learner as one of Plait's own: one file more and one line changed.
# usage: learner.sh EXAMPLE PLAIT_WITH_IT SIM MPI      (sim, mpi: yes or no; with mpi: of processes that may die)
. "$(dirname "$0")/../cli/common.sh"
example=$1 plait=$PLAIT with=$2 sim=$3 mpi=$4

# digits: the digit first, so that it is the label
gzip -dc "$data/digits/digits.csv.gz" | awk -F , '{ printf "%s", $65; for (i = 1; i < 65; i++) printf ",%s", $i; print "" }' >digits.csv

# fits NAME words...: the example must fit
fits() {
    name=$1
    shift
    "$example" --data digits.csv "$@" >"$name.out" 2>"$name.err" </dev/null || fail "exit $? of 11_learner $*: $(cat "$name.err")"
}
# same NAME: with the bits of the first run, told once
same() {
    [ "$(wc -l <"$1.out")" -eq 1 ] && [ "$(cut -d ' ' -f 2 "$1.out")" = "$hash," ] || fail "$1: $(cat "$1.out") instead of $hash"
}
each() { # each NAME words...
    fits "$@"
    same "$1"
}

fits alone --out model
hash=$(sed -n 's/^centroids \([0-9a-f]\{64\}\), 65 clocks$/\1/p' alone.out)
[ -n "$hash" ] || fail "no hash: $(cat alone.out)"

each threads.local --workers 2 --topology local --consistency async
each threads.sums --workers 4 --topology allreduce --consistency bsp
each threads.ps --workers 3 --topology ps --consistency ssp:2
each threads.copies --workers 3 --topology ps --consistency bsp --replicas 2
if [ "$sim" = yes ]; then
    each sim.ps --transport sim --workers 5 --topology ps --consistency ssp:2
    each sim.sums --transport sim --workers 4 --topology allreduce --consistency bsp
    printf 'version: 1\nhosts: [{count: 4}]\ncost: {clock: 10 ms}\nevents: [kill: {ranks: 1, at: 300 ms}]\n' >dies.yaml
    each sim.dies --transport sim --cluster dies.yaml --workers 4 --topology ps --consistency bsp --replicas 2
    "$example" --data digits.csv --transport sim --cluster dies.yaml --workers 4 --topology ps >dies.out 2>dies.err &&
        fail "a death without a second copy is survived: nobody died"
fi

# Checkpoints, and on from them.
fits writes --workers 3 --topology ps --consistency bsp --checkpoint d --every 20
same writes
[ -d d/checkpoint-000000000060 ] || fail "no checkpoint: $(ls d)"
each resumed.1 --workers 1 --resume d
each resumed.2 --workers 2 --topology allreduce --resume d
each resumed.5 --workers 5 --topology ps --resume d

# The model, in another process.
"$example" --data digits.csv --model-file model >labels || fail "predicting: exit $?"
cut -d , -f 1 digits.csv | paste -d ' ' - labels | awk '$1 == $2 { n++ } END { exit !(NR == 1797 && n / NR > 0.9) }' ||
    fail "the labels are not those of digits: $(head -n 3 labels)"
exits 2 "unknown model 'centroids'; the model of a program's own learner" unknown predict --model-file model --data digits.csv

# One of Plait's own.
PLAIT=$with
works own train --model centroids --data digits.csv --workers 2 --topology ps --json --quiet --out own
[ "$(tail -n 1 own.out | sed -n 's/.*"model_hash": "\([^"]*\)".*/\1/p')" = "$hash" ] || fail "as Plait's own: another model"
grep -q '"label": "c1 (first column), 10 classes"' own.out || fail "the record has no label: $(cat own.out)"
works labels predict --model-file own --data digits.csv
cmp -s labels labels.out || fail "plait predict says something else"
works distances transform --model-file own --data digits.csv
[ "$(awk -F '\t' 'NF == 10' distances.out | wc -l)" -eq 1797 ] || fail "transform: $(head -n 1 distances.out)"
exits 2 '^plait: predict: --proba: model centroids has no probabilities; leave --proba out$' proba predict --model-file own --data digits.csv --proba
works help help centroids
grep -q '^  sums ' help.out || fail "plait help centroids: $(cat help.out)"

[ "$mpi" = yes ] || finish
launched() { # launched NAME RANKS words...
    name=$1 n=$2
    shift 2
    "$plait" launch -n "$n" -- "$example" --data digits.csv "$@" >"$name.out" 2>"$name.err" </dev/null || fail "exit $? of $n processes, $*: $(cat "$name.err")"
}
for pair in "ps ssp:2" "allreduce bsp"; do
    launched mpi 3 --topology "${pair% *}" --consistency "${pair#* }"
    same mpi
done
launched mpi 2 --topology ps --resume d
same mpi

# A process is killed: the others go on, to the same bits.
for _ in 1 2 3 4 5 6 7 8 9 10; do cat digits.csv digits.csv digits.csv digits.csv; done >many.csv
"$example" --data many.csv --workers 2 --topology ps >many.out
hash=$(cut -d ' ' -f 2 many.out)
hash=${hash%,}
# The process of rank 1 of this very run.
rank_1() {
    for environ in $(grep -lzsx "LEARNER_TEST=$$" /proc/[0-9]*/environ); do
        process=${environ%/environ}
        if [ "$(readlink "$process/exe")" = "$(readlink -f "$example")" ] && grep -qzsx OMPI_COMM_WORLD_RANK=1 "$environ"; then
            echo "${process#/proc/}"
        fi
    done
}
begun() { [ -n "$(ls k 2>/dev/null)" ] || gone $pid; }
# dies: rank 1 is killed after its first checkpoint; false: the run was faster
dies() {
    rm -rf k
    LEARNER_TEST=$$ "$plait" launch -n 3 -- "$example" --data many.csv --topology ps --replicas 2 --checkpoint k --every 1 >dies.out 2>dies.err &
    pid=$!
    until_holds 300 begun || fail "it does not begin: $(cat dies.err)"
    victim=$(rank_1)
    killed=no
    if [ -n "$victim" ] && kill -KILL "$victim"; then killed=yes; fi
    code=0
    wait $pid || code=$?
    [ $code -eq 0 ] || fail "rank 1 (killed: $killed): exit $code: $(cat dies.err)"
    same dies
    [ $killed = yes ]
}
dies || dies || dies || fail "three runs have ended before rank 1 could be killed"
finish
