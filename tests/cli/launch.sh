#!/bin/sh
# Under plait launch: exit codes, signals, a rank that is killed, the completion record.
. "$(dirname "$0")/common.sh"
export PLAIT
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
mkdir folder
TMPDIR=$scratch/folder
export TMPDIR

works done launch -n 2 -- plait train --data part --epochs 2 --out model --metrics m --json
[ -s model.done ] || fail "no completion record"
[ "$(head -n 2 m | grep -c '"event": "start"')" -eq 2 ] || fail "the metrics do not begin with a line a rank"
[ "$(grep -o '"pid": [0-9]*' m | sort -u | wc -l)" -eq 2 ] || fail "the ranks are not two processes"
works short launch -n 1 -- version
works one launch -n 1 -- plait eval --model-file model --data part --quiet
exits 2 "eval works in one process, and each of 2 would do and print the same: run 'plait eval ...' without launch" many launch -n 2 -- plait eval --model-file model --data part
exits 2 'predict works in one process' many launch -n 2 -- predict --model-file model --data part
# A vertex program is a job of the processes; graph place is not.
awk 'BEGIN { for (k = 0; k < 3000; k++) print k, k + 1 }' >path
works graph1 graph run components --data path
works graph2 launch -n 2 -- plait graph run components --data path
cmp -s graph1.out graph2.out || fail "two processes find other components: $(cat graph2.err)"
exits 2 'graph works in one process' many launch -n 2 -- plait graph place path --ranks 2
exits 2 'graph works in one process' many launch -n 2 -- plait graph place path --ranks 2 --out run
exits 1 'gone' gone launch -n 2 -- plait train --data gone
exits 2 'with several processes is refused' stdin launch -n 2 -- plait train --data -
grep -q waiting stdin.err && fail "a refused run waits for data: $(cat stdin.err)"
exits 2 'has started 2 processes; with the transport sim' sim launch -n 2 -- plait train --data part --transport sim
exits 2 'has started 2 processes; with the transport threads' threads launch -n 2 -- plait train --data part --transport threads
exits 1 'cannot be written' events launch -n 2 -- plait train --data part --events nowhere/e
for file in sim threads events; do
    [ "$(grep -c '^plait: ' $file.err)" -eq 1 ] || fail "$file is told $(grep -c '^plait: ' $file.err) times: $(cat $file.err)"
done
exits 2 'or --hostfile part, not both' where launch -n 2 --hosts a --hostfile part -- plait train --data part
exits 2 "hosts 'a,,b': expected names" where launch -n 2 --hosts a,,b -- plait train --data part
exits 1 'hostfile: .*nothere' where launch -n 2 --hostfile nothere -- plait train --data part
# A machine that cannot be reached: one line, and what is no failure of mpirun's goes through unchanged.
echo 'nosuchhost.invalid slots=2' >hosts
for way in "--hosts nosuchhost.invalid" "--hostfile hosts"; do
    # shellcheck disable=SC2086
    exits 1 '^plait: launch: no rank was started: .*nosuchhost.invalid.*; each machine must be reached by .ssh HOST true.' \
        unreached launch -n 2 $way -- plait train --data part
    [ "$(cat unreached.out unreached.err | wc -l)" -eq 1 ] || fail "$way: $(cat unreached.out unreached.err)"
done
export PRTE_MCA_plm_ssh_agent=nosuchagent # as on a machine without ssh
exits 1 '^plait: launch: no rank was started: mpirun finds no ssh, .*openssh-client.; each machine must be reached by .ssh HOST true.' \
    without launch -n 2 --hosts far -- plait train --data part
[ "$(cat without.out without.err | wc -l)" -eq 1 ] || fail "without ssh: $(cat without.out without.err)"
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >agent
printf '#!/bin/sh\nprintf "%%s" ---\n>&2 printf "%%s" ssh\nprintf "%%60s\\n" "" | tr " " -\nexit 7\n' >talker
chmod +x agent talker
PRTE_MCA_plm_ssh_agent=$scratch/agent
TMPDIR=$scratch # mpirun's helper of the other machine, which is this one here, ends later than mpirun does
export PRTE_MCA_plm_ssh_agent
works far launch -n 2 --hosts far:2 -- plait train --data part --epochs 1 --json
[ "$(field far workers)" = 2 ] && grep -q 'plait: label' far.err || fail "--hosts: $(cat far.out far.err)"
exits 7 '^ssh' talker launch -n 1 --hosts far -- "$scratch/talker"
grep -q '^-\{63\}$' talker.out || fail "what ranks print is lost: $(cat talker.out)"
unset PRTE_MCA_plm_ssh_agent
TMPDIR=$scratch/folder
exits 2 'no program nosuch' program launch -n 2 -- nosuch
exits 2 'epohcs' typo launch -n 2 -- plait train --data part --epohcs 2

exits 2 '^plait: 2 processes were started, which makes 2 workers, not 5: leave --workers out, or start 5 processes .`plait launch -n 5' \
    count launch -n 2 -- plait train --data part --workers 5
exits 2 '^plait: 2 processes were started, less --servers 1, which makes 1 worker, not 5: .* start 6 processes' \
    count launch -n 2 -- plait train --data part --workers 5 --servers 1

# A process that nobody has launched leaves no file in /dev/shm, however it ends: the file has lost its name already.
TMPDIR=$scratch # Open MPI leaves empty folders of its own there
exits 2 '^plait: 1 process was started, and with --servers 1 no worker is left' lone train --data part --transport mpi --servers 1
exits 2 '1 process was started, which makes 1 worker, not 3: .*launch -n 3' lone train --data part --transport mpi --workers 3
"$PLAIT" train --data part --transport mpi --optimizer adagrad --epochs 1000000 --metrics lone.m 2>/dev/null >lone.out &
pid=$!
until_holds 300 says lone.m '"epoch"' || fail "a lone run does not begin"
grep '/sm_segment' /proc/$pid/maps >segments || echo "none (deleted)" >segments
grep -v '(deleted)$' segments && fail "a lone process would leave $(cat segments)"
kill -9 $pid
wait $pid 2>/dev/null || true
TMPDIR=$scratch/folder

# What all ranks have to say is said by one of them: a mistake of the command, and what goes wrong on every rank.
for file in gone stdin typo; do
    [ "$(grep -c '^plait: .*\(gone\|refused\|epohcs\)' $file.err)" -eq 1 ] || fail "$file is told $(grep -c '^plait: ' $file.err) times"
done
grep -q '^plait: rank 0: .*gone' gone.err || fail "it is not the lowest rank that tells"
sed -n 1,200p part >other
printf '#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] && exec "$PLAIT" train --data part --quiet\nexec "$PLAIT" train --data other --quiet\n' >unlike
chmod +x unlike
exits 2 'different data' unlike launch -n 3 -- "$scratch/unlike"

start() {
    rm -f m err model model.done
    "$PLAIT" launch -n 2 -- plait train --data part --optimizer adagrad --epochs 1000000 --metrics m --out model --events e 2>err >out &
    pid=$!
    until_holds 300 says m '"event": "epoch"' || fail "the run does not begin"
}
ends() {
    until_holds 300 gone $pid || { fail "the run does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq "$1" ] || { fail "exit $code instead of $1"; tail -n 5 err; }
}

# listeners PID: sockets of the process and of what it has started that listen elsewhere than on loopback, "address:port"
family() {
    echo "$1"
    for one in $(pgrep -P "$1"); do family "$one"; done
}
listeners() {
    for one in $(family "$1"); do ls -l "/proc/$one/fd" 2>/dev/null; done | sed -n 's/.*socket:\[\([0-9]*\)\]$/\1/p' >sockets
    awk 'NR == FNR { ours[$1]; next } $4 == "0A" && $10 in ours { print $2 }' sockets /proc/net/tcp /proc/net/tcp6 >ports
    [ -s ports ] || echo "none at all: can they be seen?"
    grep -v '^0100007F:\|^00000000000000000000000001000000:' ports || true
}

start
[ -z "$(listeners $pid)" ] || fail "on one machine launch or a rank listens on the network: $(listeners $pid)"
for one in $(family $pid); do
    tr '\0' '\n' <"/proc/$one/environ" | grep '^LD_PRELOAD=.*plait' >>preloads || true
done
[ "$(wc -l <preloads)" -le 1 ] || fail "ranks inherit what is meant for mpirun: $(cat preloads)"
kill -USR1 $pid
until_holds 120 says err wait || fail "SIGUSR1 is not answered"
kill -INT $pid
ends 75
[ -s model ] || fail "interrupted: no model"
[ "$(grep -c 'the run ends after this clock' err)" -eq 1 ] || fail "the signal is told $(grep -c 'the run ends after this clock' err) times"
grep -q 'to go on from the saved weights .*, under the same launcher: plait train .* --epochs [0-9]* --init-model model --metrics m.2 --events e-2' err || fail "interrupted: the command that goes on is not told"
start
kill -9 "$(sed -n 's/.*"rank": 1, .*"pid": \([0-9]*\).*/\1/p' m | head -n 1)"
ends 3
[ -e model.done ] && fail "a killed run is said to be done"
grep -q '^plait: launch: rank 1 on host .* was lost (signal 9)' err || fail "the lost rank is not named: $(cat err)"

# An mpirun whose exit code lies: what the ranks say themselves counts; nobody says anything of a rank that was killed.
printf '#!/bin/sh\nshift 2\n"$@"\nexit 1\n' >liar
chmod +x liar
code=0
PLAIT_MPIRUN=$scratch/liar "$PLAIT" launch -n 2 -- plait train --data part --epohcs 2 2>liar.err || code=$?
[ $code -eq 2 ] || fail "exit $code instead of the ranks' own 2"
[ -z "$(ls "$TMPDIR")" ] || fail "launch leaves $(ls "$TMPDIR")"

# A launch that was killed leaves its file behind; the next one removes it, and no other.
start
mpirun=$(pgrep -P $pid)
kill -9 $pid
wait $pid 2>/dev/null || true
until_holds 120 gone "$mpirun" || fail "mpirun outlives a killed launch" # before that it may still write
ls "$TMPDIR" | grep -q "^plait-launch-$pid-" || fail "a killed launch leaves no file: is its name another one now?"
: >"$TMPDIR/plait-launch-notes"
: >"$TMPDIR/plait-launch-$$-lives"
works after launch -n 1 -- version
[ "$(ls "$TMPDIR" | grep "^plait-" | sort | tr '\n' ' ')" = "plait-launch-$$-lives plait-launch-notes " ] || fail "after a killed launch: $(ls "$TMPDIR")"

# A program that the signal ends: its number counts, not mpirun's 0. One that ends by itself keeps its code.
signalled() {
    rm -f up
    "$PLAIT" launch -n 2 -- sh -c "$3 echo >>up; while :; do sleep 0.05; done" 2>err >out &
    pid=$!
    until_holds 120 has_two up || fail "the program does not begin"
    kill "-$1" $pid
    ends "$2"
}
has_two() { [ -e "$1" ] && [ "$(wc -l <"$1")" -eq 2 ]; }
signalled INT 130 ""
signalled TERM 143 ""
signalled TERM 0 "trap 'exit 0' USR2;"
signalled TERM 5 "trap 'exit 5' USR2;"

# Two signals at once are one request, as `timeout` sends them: mpirun hears of one, which leaves ranks the time to save.
cat >ears <<'END'
#!/bin/sh
trap 'echo asked >>heard' USR2
trap 'echo killed >>heard' TERM INT
echo ready >heard
until [ -e enough ]; do sleep 0.05; done
END
chmod +x ears
PLAIT_MPIRUN=$scratch/ears "$PLAIT" launch -n 2 -- plait train --data part 2>err &
pid=$!
until_holds 120 says heard ready || fail "mpirun does not start"
kill -STOP $pid
kill -INT $pid
kill -TERM $pid
kill -CONT $pid
until_holds 120 says heard asked || fail "the request is not handed on"
touch enough
until_holds 300 gone $pid || fail "launch does not end"
wait $pid || true
[ "$(cat heard)" = "$(printf 'ready\nasked')" ] || fail "two signals at once come to mpirun as: $(cat heard)"

# Ranks that load have nothing to save: they end before their data come to an end.
mkfifo never
rm -f m err
"$PLAIT" launch -n 2 -- "$PLAIT" train --data part --graph never --metrics m --out model 2>err >out &
pid=$!
until_holds 120 says m start || fail "the run does not begin: $(cat err)"
kill -TERM $pid
ends 75
[ "$(grep -c 'before the first clock: nothing was learnt' err)" -eq 1 ] || fail "interrupted while they load: $(cat err)"

# Without an MPI: how to get it, and exit 2.
code=0
PLAIT_MPIRUN=$scratch/nothing "$PLAIT" launch -n 2 -- plait train --data part 2>none.err || code=$?
[ $code -eq 2 ] || fail "exit $code without mpirun"
finish
