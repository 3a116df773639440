#!/bin/sh
# plait doctor PID: who waits for what in a live run, of one process or of several; under mpirun also a rank that is frozen.
. "$(dirname "$0")/common.sh"
export PLAIT

# The run to ask: it has begun when its metrics have.
"$PLAIT" train --data part --optimizer adagrad --epochs 1000000 --workers 3 --topology ps --metrics m 2>err &
pid=$!
until_holds 120 says m epoch || fail "the run does not begin"
for i in 1 2 3 4 5; do
    works ask doctor $pid
    [ "$(wc -l <ask.out)" -eq 3 ] || fail "not a line for each of 3 ranks"
    grep -Eqv '^rank [0-2] (works, and waits for nothing|waits for .* \(plait_(table|job|comm)_[a-z_]*, call [0-9]+; [0-9.]+ s\))$' ask.out &&
        fail "odd lines: $(cat ask.out)"
done
# Its tables: w of 118 features lies on one rank or more, each row once; all three have pushed.
tables() { # tables FILE: what is odd about w's lines, of three workers
    awk -F '\t' 'NR == 1 && $1 != "table" { print "no titles" }
        NR > 1 && $1 == "w" {
            n++
            if ($3 != 3 || $4 != "ps" || $6 != "118 x 1" || $11 < 1 || $13 < 0 || $13 > $11) print "odd:", $0
            if ($8 != "-") { split($8, r, "-"); rows += r[2] - r[1] + 1; if ($9 != 8 * (r[2] - r[1] + 1) || $10 > $11 + 1) print "odd:", $0 }
        }
        END { if (n != 3 || rows != 118) print n, "lines,", rows, "rows" }' "$1"
}
works ask doctor --tables $pid
[ -z "$(tables ask.out)" ] || fail "$(tables ask.out): $(cat ask.out)"
exits 2 'unknown option --table; did you mean --tables' wrong doctor --table $pid
kill -STOP $pid
# The signal reaches the threads one by one.
is_stopped() { ! cat /proc/"$1"/task/*/status | grep '^State:' | grep -qv 'T (stopped)'; }
until_holds 120 is_stopped $pid || fail "the run does not stop"
exits 1 "process $pid is stopped" stopped doctor $pid
kill -CONT $pid
kill -INT $pid
until_holds 300 gone $pid || fail "the run does not end"
wait $pid || true
exits 1 "there is no process" gone doctor $pid

sleep 60 &
other=$!
exits 1 'not a running plait train' other doctor $other
kill $other
exits 2 'no process' none doctor
exits 2 'more than one' two doctor 1 2
for word in x 1x -1 0 1.5 99999999999; do exits 2 "$word" word doctor $word; done

# Another user's run is not told.
if [ "$(id -u)" -eq 0 ] && setpriv --reuid 65534 true 2>/dev/null; then
    "$PLAIT" train --data part --optimizer adagrad --epochs 1000000 --metrics m2 2>err &
    pid=$!
    until_holds 120 says m2 epoch || fail "the run does not begin"
    code=0
    setpriv --reuid 65534 --clear-groups "$PLAIT" doctor $pid >foreign.out 2>foreign.err </dev/null || code=$?
    # where the program itself cannot be run by others there is nothing to see
    [ $code -eq 126 ] || [ $code -eq 127 ] || [ $code -eq 1 ] || fail "another user's doctor: exit $code"
    [ $code -ne 1 ] || grep -q "another user" foreign.err || grep -q Permission foreign.err || fail "another user: $(cat foreign.err)"
    kill -INT $pid
    wait $pid || true
fi
[ $# -gt 0 ] || finish

# Several processes: each is asked about all; one that is frozen is named, and heard of again (without heartbeats, which
# would end the run before).
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
rm -f m
"$PLAIT" launch -n 3 -- plait train --data part --optimizer adagrad --epochs 1000000 --metrics m --heartbeat 0 2>err &
pid=$!
until_holds 300 says m '"event": "epoch"' || fail "the run does not begin"
pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m | head -n 1; }
frozen=$(pid_of 1)
works all doctor "$(pid_of 2)"
[ "$(grep -c '^rank [0-2] ' all.out)" -eq 3 ] || fail "not a line for each of 3 processes: $(cat all.out)"
works ask doctor --tables "$(pid_of 2)"
[ -z "$(tables ask.out)" ] || fail "processes: $(tables ask.out): $(cat ask.out)"
kill -STOP "$frozen"
until_holds 300 says err 'rank 1: no sign of life since' || fail "the frozen rank is not named"
works frozen doctor "$(pid_of 0)"
grep -q '^rank 1 does not answer$' frozen.out || fail "the frozen rank is said to answer: $(cat frozen.out)"
works ask doctor --tables "$(pid_of 0)"
grep -q '^rank 1 does not answer$' ask.out || fail "the frozen rank tells of its tables: $(cat ask.out)"
grep -q '^rank 0 waits for .*plait_' frozen.out || fail "who waits for it is not told: $(cat frozen.out)"
kill -CONT "$frozen"
until_holds 300 says err 'rank 1 gives signs of life again' || fail "its return is not told"
kill -INT $pid
until_holds 300 gone $pid || fail "the run does not end"
code=0
wait $pid || code=$?
[ $code -eq 75 ] || { fail "exit $code instead of 75"; tail -n 5 err; }
finish
