#!/bin/sh
# Topics whose ranks die: train --model lda --replicas 2 under plait launch, a rank of which is killed (SIGKILL) while it
# draws. The run goes on; the counts of the words and those of the totals add up to the tokens in every clock (it would end
# otherwise), and the model has the bits of the run in which nobody died: so the counts are those of the tokens' topics after
# each death.
# usage: topics_die.sh MPIRUN RUNS FULL_RUNS      the last counts under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
runs=$2
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$3

awk 'BEGIN {
    s = 7
    for (d = 0; d < 300; d++) {
        for (w = 0; w < 30; w++) n[w] = 0
        for (t = 0; t < 40; t++) {
            s = (s * 16807) % 2147483647; own = s % 10 < 9
            s = (s * 16807) % 2147483647; n[own ? d % 3 * 10 + s % 10 : s % 30]++
        }
        printf "0"
        for (w = 0; w < 30; w++) if (n[w] > 0) printf " %d:%d", w + 1, n[w]
        print ""
    }
}' >planted.svm
lda="train --model lda --data planted.svm --components 3 --batch 60 --reduce exact --seed 4 --topology ps --epochs 150 --json --quiet"
# shellcheck disable=SC2086
works straight launch -n 3 -- "$PLAIT" $lda --out model
want=$(field straight model_hash)
pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }
reaches() { gone $pid || says m "\"epoch\": $1[,}]"; }

# dies RUN: returns 1 if the run had ended before
dies() {
    run=$1
    rm -rf m model model.done
    # shellcheck disable=SC2086
    "$PLAIT" launch -n 3 -- "$PLAIT" $lda --replicas 2 --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 reaches "$(at $((run * 7 % 100 + 2)))" || fail "run $run: no epoch ends"
    kill -KILL "$(pid_of $((run % 3)))" 2>/dev/null || true
    until_holds 300 gone $pid || { fail "run $run does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq 0 ] && [ "$(field run model_hash)" = "$want" ] ||
        fail "run $run: exit $code, model $(field run model_hash) instead of $want; $(cat model.done err)"
    says model.done '"ranks_lost": \[\]' && return 1
    says model.done '"ranks_lost": \['$((run % 3))'\]' || fail "run $run: $(cat model.done err)"
}
for run in $(seq "$runs"); do in_time dies "$run"; done
finish
