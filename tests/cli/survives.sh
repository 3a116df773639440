#!/bin/sh
# Real processes that die, and the run goes on without them: train --replicas 2, of which a rank (a worker, a server, both in
# one, the first) is killed at an instant drawn from a seed, over shared memory and over TCP. Every run must end with exit 0
# and no restart, its record, which names who was lost, and the bits of the run in which nobody died; of every third, which
# writes event logs, the audit must find no update lost or doubled; every fifth writes checkpoints, of which the newest is
# resumed, to the same bits, and of every fifth one rank more stands ready (launch --spares). Ranks die one after the other:
# both that had the copies of a shard, and a third; one, and then the spare that came to hold its shards. Two ranks at once,
# with the only two replicas of a shard, are a restart from the newest checkpoint; with --replicas 3 any two may die at once.
# usage: survives.sh MPIRUN RUNS FULL_RUNS      the last counts under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
runs=$2
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$3

train="train --data part --test part --batch 20 --epochs 250 --reduce exact --schedule constant --seed 3 --json --topology ps"
# shellcheck disable=SC2086
works straight $train --quiet --out model # alone: the sums are exact, so any ranks have these bits
want=$(field straight model_hash) loss=$(field straight test_loss)

draw() { awk -v seed="$1" -v below="$2" 'BEGIN { srand(seed); rand(); print int(rand() * below) }'; }
pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }
reaches() { # reaches EPOCH: the run has come so far, or has ended
    gone $pid || says m "\"epoch\": $1[,}]"
}

# goes_on NUMBER: the newest checkpoint in d is resumed by so many as there were, or fewer, with two replicas or one
goes_on() {
    copies=$((1 + $1 / 5 % 2))
    # shellcheck disable=SC2086
    works again launch -n $((2 + $1 % 3)) -- "$PLAIT" $train --quiet --replicas $copies --resume d --out model.again
    [ "$(field again model_hash)" = "$want" ] || fail "run $1, resumed: another model"
}

# one NUMBER WAY: returns 1 if the run had ended before
one() {
    ranks="-n 4" servers="" size=4
    [ $(($1 % 3)) -ne 0 ] || ranks="-n 6" servers="--servers 2" size=6
    [ $(($1 % 5)) -ne 4 ] || ranks="$ranks --spares 1" size=$((size + 1))
    events=""
    [ $(($1 % 3)) -ne 1 ] || events="--events log"
    saves=""
    [ $(($1 % 5)) -ne 2 ] || saves="--checkpoint d --checkpoint-every $((50 + $1 * 37 % 300))"
    rm -rf m model model.done err run.out log.* d
    # shellcheck disable=SC2086
    OMPI_MCA_btl=$2 "$PLAIT" launch $ranks -- "$PLAIT" $train $servers $events $saves --replicas 2 --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 reaches "$(at $((1 + $(draw "$1" 200))))" || fail "run $1: no epoch ends"
    victim=$(draw $(($1 + 4444)) "$size")
    kill -KILL "$(pid_of "$victim")" 2>/dev/null || true
    until_holds 300 gone $pid || { fail "run $1 ($2) does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq 0 ] && [ -s model.done ] && [ "$(field run model_hash)" = "$want" ] &&
        [ "$(field run test_loss)" = "$loss" ] || {
        fail "run $1 (rank $victim of $size, $2): exit $code, model $(field run model_hash) instead of $want"
        cat err
    }
    [ -z "$saves" ] || goes_on "$1"
    [ -z "$events" ] || "$PLAIT" audit log.* >said 2>&1 || fail "run $1: the audit: $(cat said)"
    grep -q restart err && fail "run $1 was restarted: $(cat err)"
    grep -q '"ranks_lost": \['"$victim"'\]' model.done || return 1
    died=$((died + 1))
    grep -q '"event": "rank_lost"' m || fail "run $1: the metrics do not tell"
    grep -q "rank $victim on host .* has died.*; the run goes on" err || fail "run $1: nobody says so: $(cat err)"
    [ $(($1 % 5)) -ne 4 ] || [ "$victim" -eq 4 ] || grep -q "and spare rank 4 takes its place" err || fail "run $1: nobody tells of the spare: $(cat err)"
}

n=0 died=0
while [ $n -lt "$runs" ]; do
    n=$((n + 1))
    way=sm,tcp,self
    [ $((n % 2)) -eq 0 ] || way=tcp,self
    in_time one $n $way
done

# lives COMMAND...: a run with checkpoints, in the background, until it has written some
lives() {
    rm -rf m model model.done err out d
    # shellcheck disable=SC2086
    "$PLAIT" launch -n 4 "$@" "$PLAIT" $train --replicas 2 --metrics m --out model --checkpoint d --checkpoint-every 100 >out 2>err &
    pid=$!
    until_holds 300 says m '"clock": 200, "folder"' || fail "no second checkpoint: $(cat err)"
}

# The second copy of what rank 1 serves lies on rank 2.
lives --max-restarts 2 --
kill -KILL "$(pid_of 1)" "$(pid_of 2)"
until_holds 300 gone $pid || { fail "a run that lost a shard does not end"; kill -9 $pid; }
code=0
wait $pid || code=$?
hash=$(sed -n 's/.*"model_hash": "\([0-9a-f]*\)".*/\1/p' out)
[ $code -eq 0 ] && [ "$hash" = "$want" ] && [ -s model.done ] || fail "two deaths: exit $code, model $hash: $(cat err)"
grep -q 'restart 1 of 2, from the newest checkpoint in d' err || fail "two deaths without a restart: $(cat err)"

# stops WHO: one death, the first rank's, and then a signal to launch or to a rank: a last checkpoint, and what goes on from it
stops() {
    lives --
    kill -KILL "$(pid_of 0)"
    until_holds 120 says err 'rank 0 on host .* has died.*; the run goes on without it' || fail "nobody says so: $(cat err)"
    if [ "$1" = launch ]; then kill -TERM $pid; else kill -TERM "$(pid_of "$1")"; fi
    until_holds 300 gone $pid || { fail "a run that goes on does not stop"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq 75 ] || fail "$1 asked to stop after a death: exit $code: $(cat err)"
    last=$("$PLAIT" checkpoint list d | tail -n 1 | sed 's/.*clock \([0-9]*\).*/\1/')
    [ "$last" -lt 3750 ] || fail "the signal came too late"
    tail -n 1 m | grep -q '"clocks": '"$last"'[,}]' || fail "the last checkpoint, $last, is not where the run ended: $(tail -n 1 m)"
}
stops 2
stops launch
goes_on 5

# one_after_the_other OPTIONS RANKS...: each is killed when some epochs have ended without the one before; 1: the run had
# ended before one was
lost() { says err "rank $1 on host .* has died.*; the run goes on"; }
lost_or_over() { gone $pid || lost "$1"; }
one_after_the_other() {
    ranks=$1
    shift
    rm -rf m model model.done err run.out log.*
    # shellcheck disable=SC2086
    "$PLAIT" launch $ranks -- "$PLAIT" $train --replicas 2 --events log --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 reaches 20 || fail "$ranks: no epoch ends"
    for victim in "$@"; do
        kill -KILL "$(pid_of "$victim")" 2>/dev/null || { until_holds 300 gone $pid; echo "too late: $(tail -n 1 err)"; return 1; }
        until_holds 120 lost_or_over "$victim" || fail "$ranks: rank $victim: $(cat err)"
        lost "$victim" || { echo "too late: $(tail -n 1 err)"; return 1; }
        until_holds 300 reaches $(($(grep -c '"event": "epoch"' m) + 10)) || fail "$ranks: no epoch ends without $victim"
    done
    until_holds 300 gone $pid || { fail "$ranks without $* does not end"; kill -9 $pid; }
    wait $pid || fail "$ranks without $* ends with $?: $(cat err)"
    [ "$(field run model_hash)" = "$want" ] || fail "$ranks without $*: another model"
    grep -q '"ranks_lost": \['"$(echo "$*" | sed 's/ /, /g')"'\]' model.done || fail "$ranks without $*: $(cat model.done)"
    "$PLAIT" audit log.* >said 2>&1 || fail "$ranks without $*: the audit: $(cat said)"
}
in_time one_after_the_other "-n 4 --spares 1" 1 2
in_time one_after_the_other "-n 4" 2 3 0
in_time one_after_the_other "-n 1 --spares 2" 0 1

# two_at_once NUMBER WAY: with three copies of each shard any two ranks are killed at the same instant
two_at_once() {
    ranks="-n 5" servers="" size=5
    [ $(($1 % 3)) -ne 0 ] || ranks="-n 6" servers="--servers 4" size=6
    [ $(($1 % 4)) -ne 1 ] || ranks="$ranks --spares 1" size=$((size + 1))
    rm -rf m model model.done err run.out log.*
    # shellcheck disable=SC2086
    OMPI_MCA_btl=$2 "$PLAIT" launch $ranks -- "$PLAIT" $train $servers --events log --replicas 3 --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 reaches "$(at $((1 + $(draw "$1" 200))))" || fail "two of run $1: no epoch ends"
    first=$(draw $(($1 + 4444)) "$size")
    second=$(((first + 1 + $(draw $(($1 + 777)) $((size - 1)))) % size))
    kill -KILL "$(pid_of "$first")" "$(pid_of "$second")" 2>/dev/null || true
    until_holds 300 gone $pid || { fail "two of run $1 ($2): it does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq 0 ] && [ -s model.done ] && [ "$(field run model_hash)" = "$want" ] || {
        fail "two of run $1 (ranks $first and $second of $size, $2): exit $code, model $(field run model_hash) instead of $want"
        cat err
    }
    "$PLAIT" audit log.* >said 2>&1 || fail "two of run $1: the audit: $(cat said)"
    grep -q restart err && fail "two of run $1: restarted: $(cat err)"
    grep -q '"ranks_lost": \['"$first, $second"'\]' model.done || grep -q '"ranks_lost": \['"$second, $first"'\]' model.done || return 1
    both=$((both + 1))
}
k=0 both=0 pairs=$(((runs + 1) / 2))
while [ $k -lt $pairs ]; do
    k=$((k + 1))
    way=sm,tcp,self
    [ $((k % 2)) -eq 0 ] || way=tcp,self
    in_time two_at_once $k $way
done

# frozen RANK EPOCHS: a run that goes on without one that is only stopped. Returns 1 if it had ended before. (A rank of a busy
# machine may be silent for a second or two, and is not frozen.)
silent_or_over() { gone $pid || says err "rank $1 on host .* has not been heard for 5 s.*; the run goes on without it"; }
frozen() {
    rm -f m model model.done err run.out
    # shellcheck disable=SC2086
    "$PLAIT" launch -n 3 -- "$PLAIT" $train --epochs "$2" --heartbeat 5s --replicas 2 --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 reaches 20 || fail "no epoch ends"
    kill -STOP "$(pid_of "$1")" 2>/dev/null || true
    until_holds 120 silent_or_over "$1" || fail "nobody says so: $(cat err)"
    ! says model.done '"ranks_lost": \[\]'
}

# It is ended with the others.
in_time frozen 1 250
until_holds 300 gone $pid || { fail "a stopped rank holds up its launch"; kill -9 $pid; }
wait $pid || fail "a run that went on without a stopped rank ends with $?"
[ "$(field run model_hash)" = "$want" ] && grep -q '"ranks_lost": \[1\]' model.done || fail "without a stopped rank: $(cat model.done)"

# Or wakes up, the first, which had led: it writes nothing any more, and is no cause to end the others.
frozen 0 20000
kill -CONT "$(pid_of 0)"
until_holds 120 says err 'rank 0: error: .* took this rank for lost' || fail "who wakes up is not told: $(cat err)"
begun=$(grep -c '"epoch"' m)
until_holds 120 sh -c "[ \$(grep -c '\"epoch\"' m) -gt $((begun + 20)) ]" || fail "the others do not go on: $(cat err)"
kill -USR2 $pid
until_holds 120 gone $pid || { fail "a run without its first rank does not stop"; kill -9 $pid; }
code=0
wait $pid || code=$?
[ $code -eq 75 ] && [ -s model ] || fail "asked to stop, it ends with $code"
tail -n 1 m | grep -q '"event": "end".*"rank_lost": 0' || fail "the metrics end: $(tail -n 1 m)"

# Of those that were too late, since the run had ended, or came while it ended, there may be a few.
[ $died -ge $runs ] || fail "only $died of $runs were lost in the run"
[ $both -ge $pairs ] || fail "only $both of $pairs pairs were lost in the run"
echo "$runs runs, $died with a loss; $pairs with two at once, $both with both lost"
finish
