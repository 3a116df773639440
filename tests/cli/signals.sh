#!/bin/sh
# SIGINT and SIGTERM end the clock, save, print the command that goes on, exit 75; a second one ends at once; SIGUSR1
# prints the waits. A run is ready for signals when its metrics have begun.
. "$(dirname "$0")/common.sh"

# start words...: a run in the background, ready for signals
start() {
    rm -f m err out
    "$PLAIT" train --metrics m "$@" >out 2>err &
    pid=$!
    until_holds 120 says m start || fail "the run does not begin"
}
# ends CODE
ends() {
    if ! until_holds 300 gone $pid; then
        fail "the run does not end"
        kill -9 $pid
    fi
    code=0
    wait $pid || code=$?
    [ $code -eq "$1" ] || { fail "exit $code instead of $1"; tail -n 5 err; }
}

# goes_on: the command that was told, with 2 epochs instead of all that are left
goes_on() {
    sed -n 's/.*to go on from the saved weights .*: plait \(train .*--epochs \)[0-9]* \(.*\)/\1 2 \2/p' err
}
for signal in INT TERM; do
    for workers in 1 3; do
        rm -f model model.done m.2 e.2
        start --data part --test part --optimizer adagrad --epochs 1000000 --workers $workers --out model --json --seed 5 --events e
        until_holds 300 says m '"epoch"' || fail "no epoch ends"
        kill -$signal $pid
        ends 75
        [ -s model ] || fail "SIG$signal: no model"
        [ -e model.done ] && fail "SIG$signal: an interrupted run is said to be done"
        [ "$(wc -l <out)" -eq 1 ] || fail "SIG$signal: no record"
        # What was saved ends the run: nobody waits for its scores.
        cp out scored.out
        [ "$(field scored train_loss) $(field scored test_loss)" = "null null" ] || fail "SIG$signal: an interrupted run is judged"
        tail -n 1 m | grep -q interrupted || fail "SIG$signal: the metrics do not tell it"
        # What is told works, for as many epochs as are left, and leaves the metrics of this run alone.
        cp out first.out
        done=$(field first epochs)
        grep -q "$done of 1000000 epochs done" err || fail "SIG$signal: the epochs done ($done) are not told: $(tail -n 1 err)"
        grep -q "to go on from the saved weights .*: .* --epochs $((1000000 - done)) --init-model model --metrics m.2 --events e.2$" err ||
            fail "SIG$signal: the command that goes on is not told"
        goes_on | grep -q -- '--seed 5' || fail "SIG$signal: the command is not the one that was given"
        [ "$(goes_on | grep -o -- --epochs | wc -l)" -eq 1 ] || fail "SIG$signal: epochs twice"
        cp m m.before
        cp e e.before
        # shellcheck disable=SC2046
        works onward $(goes_on)
        [ -e model.done ] || fail "the run that went on is not done"
        [ "$(field onward epochs)" = 2 ] || fail "the run that went on has $(field onward epochs) epochs"
        cmp -s m m.before || fail "the run that went on wrote over the metrics"
        cmp -s e e.before || fail "the run that went on wrote over the events"
        [ -s e.2 ] || fail "the run that went on has no events"
        says m.2 start || fail "the run that went on has no metrics"
    done
done
# What a variable or the configuration file has said is in the command as well: it works where there is neither.
printf 'data: [part]\nepochs: 1000000\nbatch: 30\nout: a model\nno-intercept: true\nmetrics: elsewhere\n' >run.yaml
PLAIT_SEED=5 PLAIT_WORKERS=2 PLAIT_TIMEOUT=90s
export PLAIT_SEED PLAIT_WORKERS PLAIT_TIMEOUT
start --config run.yaml --topology ps
until_holds 300 says m '"epoch"' || fail "no epoch ends"
kill -INT $pid
ends 75
unset PLAIT_SEED PLAIT_WORKERS PLAIT_TIMEOUT
command="plait train --topology ps --no-intercept --data part --batch 30 --seed 5 --workers 2 --out 'a model' --timeout 90s --epochs [0-9]* --init-model 'a model' --metrics m.[0-9]"
grep -q "to go on from the saved weights .*: $command$" err || fail "variables and the file are left out: $(tail -n 1 err)"
mkfifo idle
"$PLAIT" train --config run.yaml --data idle 2>err >out &
pid=$!
exec 3>idle
until_holds 120 says elsewhere start || fail "the run does not begin"
kill -INT $pid
ends 75
exec 3>&-
grep -q "begins anew: plait train --data idle --no-intercept --epochs 1000000 --batch 30 --out 'a model' --metrics elsewhere$" err ||
    fail "interrupted before the first clock: $(cat err)"

# An epoch that did not come to its end is not reported.
start --data part --optimizer adagrad --epochs 1000000 --batch 1
until_holds 300 says m '"event": "clock"' || fail "no clock ends"
kill -INT $pid
ends 75
done=$(sed -n 's/.*"event": "end".*"epochs": \([0-9]*\).*/\1/p' m)
[ "$(grep -c '"event": "epoch"' m)" = "$done" ] || fail "$(grep -c '"event": "epoch"' m) epochs are reported of $done"
grep -q 'nothing was saved' err || fail "without --out it is not told that nothing was saved"

# What does not begin from a saved model offers no command that would be refused.
rm -f none
start --model gbdt --data part --epochs 1000000 --min-rows 1 --subsample 0.5 --out none
until_holds 300 says m '"epoch"' || fail "no round of trees ends"
kill -INT $pid
ends 75
grep -q 'what was learnt is in none, but model gbdt does not begin from a model; a run with --checkpoint DIR can be resumed$' err ||
    fail "trees: $(tail -n 1 err)"

# Of a net whose tables travel differently one needs all workers: none leaves by itself.
rm -f mixed
start --model mlp --layers 8 --data part --optimizer adagrad --epochs 1000000 --workers 3 --topology ps --table w2:topology=allreduce --out mixed
until_holds 300 says m '"epoch"' || fail "no epoch of the mixed net ends"
kill -INT $pid
ends 75
[ -s mixed ] || fail "no model of the mixed net"

# Before the first clock there is nothing to save: the run ends although the data may never come. A writer holds the
# pipe open and writes nothing, or there is none.
mkfifo late
for words in "--data -" "--data late" "--data part --test late" "--data part --validation late"; do
    for writer in yes no; do
        [ $writer = yes ] && exec 3<>late
        case $words in *-) [ $writer = no ] && continue ;; esac
        rm -f m err
        # shellcheck disable=SC2086
        if [ "$words" = "--data -" ]; then set -- late; else set -- /dev/null; fi
        # shellcheck disable=SC2086
        "$PLAIT" train $words --epochs 3 --metrics m --out unlearnt <"$1" 2>err >out 3<&- &
        pid=$!
        until_holds 120 says m start || fail "$words: the run does not begin"
        kill -TERM $pid
        ends 75
        grep -q "SIGTERM before the first clock: nothing was learnt; the same command begins anew: plait train $words --epochs 3 --metrics m --out unlearnt$" err ||
            fail "$words: interrupted while it loads: $(cat err)"
        tail -n 1 m | grep -q '"end".*interrupted' || fail "$words: the metrics do not tell the end: $(cat m)"
        [ -e unlearnt ] && fail "$words: a model of nothing"
        exec 3>&-
    done
done

# SIGUSR1 says something of each wait, and harms nothing.
start --data part --optimizer adagrad --epochs 1000000 --workers 3 --topology ps
kill -USR1 $pid
until_holds 120 says err 'wait' || fail "SIGUSR1 is not answered"
kill -TERM $pid
ends 75

# Behind the training the result is told to its end, whenever a signal comes. Here nobody reads it yet: the pipe is full.
mkfifo full
exec 3<>full
dd if=/dev/zero bs=4096 count=16 >&3 2>fill
rm -f m err
"$PLAIT" train --data part --epochs 2 --metrics m --out told 3>&- >full 2>err &
pid=$!
until_holds 300 says m '"event": "end"' || fail "the run does not end"
until_holds 300 test -e told.done || fail "the run is not done"
sleep 0.2
kill -INT $pid
sleep 0.2
{ head -c 65536 >/dev/null; cat >out; } <full 3>&- &
reader=$!
ends 0
exec 3>&-
wait $reader
grep -q '^clocks' out || fail "a signal cut the result off: $(cat out)"
grep -q 'the run ends after this clock' err && fail "a run that has ended is said to end: $(cat err)"

# Two signals at once are one request: `timeout` sends its own to the process and to its group.
rm -f model
start --data part --optimizer adagrad --epochs 1000000 --out model
until_holds 300 says m '"epoch"' || fail "no epoch ends"
kill -STOP $pid
kill -INT $pid
kill -TERM $pid
kill -CONT $pid
ends 75
[ -s model ] || fail "two signals at once: no model"
# So they are where the run comes to the second one late: what the first makes it say finds no reader for more than a second.
mkfifo said
exec 3<>said
rm -f model m
"$PLAIT" train --metrics m --data part --optimizer adagrad --epochs 1000000 --out model 3>&- >out 2>said &
pid=$!
until_holds 300 says m '"epoch"' || fail "no epoch ends"
for bytes in 4096 1; do dd if=/dev/zero bs=$bytes count=65536 oflag=nonblock >&3 2>fill || true; done
kill -STOP $pid
kill -INT $pid
kill -TERM $pid
kill -CONT $pid
sleep 1.5
tr -d '\0' <said >err 3>&- &
reader=$!
exec 3>&-
ends 75
wait $reader
[ -s model ] || fail "two signals at once, the second of which is read late: no model"

# One that comes a second later ends a run at once that the first cannot end: nobody reads the record.
exec 3<>full
dd if=/dev/zero bs=4096 count=16 >&3 2>fill
rm -f m err
"$PLAIT" train --metrics m --data part --optimizer adagrad --epochs 1000000 3>&- >full 2>err &
pid=$!
until_holds 300 says m '"epoch"' || fail "no epoch ends"
kill -INT $pid
until_holds 120 says err 'ends it at once' || fail "the first signal is not confirmed"
again() { kill -INT $pid 2>/dev/null || true; gone $pid; }
until_holds 300 again || fail "no further signal ends the run"
ends 130
exec 3>&-
finish
