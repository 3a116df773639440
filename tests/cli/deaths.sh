#!/bin/sh
# Real processes that die: of a run under plait launch --max-restarts a rank is killed, or mpirun, or a rank is stopped,
# at instants drawn from a seed, over shared memory and over TCP. Every run must end with exit 0, its record, and the
# bits of the run in which nothing died; the cause must be told, and nothing be left.
# usage: deaths.sh MPIRUN RUNS STOPS FULL_RUNS FULL_STOPS
#        so many kills, every fourth of mpirun; so many stopped ranks; the last two count under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
runs=$2 stops=$3
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$4 stops=$5
TMPDIR=$scratch/folder
mkdir "$TMPDIR"
export TMPDIR

train="train --data part --batch 20 --epochs 500 --reduce exact --schedule constant --seed 3 --json --quiet --out model"
# shellcheck disable=SC2086
works straight $train # alone: the sums are exact, so any ranks have these bits
want=$(field straight model_hash)

draw() { awk -v seed="$1" -v below="$2" 'BEGIN { srand(seed); rand(); print int(rand() * below) }'; }
pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }
# The first life's ranks; after a restart the metrics begin anew.
reaches() { # reaches EPOCH: the run has come so far, or has ended
    gone $pid || says m "\"epoch\": $1[,}]"
}

# one NUMBER KILL|STOP|mpirun WAY: returns 1 if the run had ended before
one() {
    case $(($1 % 3)) in
    0) topology=ps ;;
    1) topology=allreduce ;;
    2) topology="ps --servers 1" ;;
    esac
    rm -rf d m model model.done err out
    # shellcheck disable=SC2086
    OMPI_MCA_btl=$3 "$PLAIT" launch -n 3 --max-restarts 3 -- "$PLAIT" $train --topology $topology --metrics m \
        --checkpoint d --checkpoint-every $((50 + $1 * 37 % 450)) >out 2>err &
    pid=$!
    until_holds 300 reaches "$(at $((1 + $(draw "$1" 350))))" || fail "run $1: no epoch ends"
    victim=$(draw $(($1 + 7777)) 3)
    if [ "$2" = mpirun ]; then
        kill -KILL "$(pgrep -P $pid)" 2>/dev/null || true
    else
        kill -"$2" "$(pid_of "$victim")" 2>/dev/null || true
    fi
    until_holds 300 gone $pid || { fail "run $1 ($2, $topology, $3) does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    hash=$(sed -n 's/.*"model_hash": "\([0-9a-f]*\)".*/\1/p' out)
    if [ $code -ne 0 ] || [ ! -s model.done ] || [ "$hash" != "$want" ]; then
        fail "run $1 ($2 of $victim, $topology, $3): exit $code, model $hash instead of $want"
        cat err
        cp -r d "$scratch/d.$1" 2>/dev/null || true
        return
    fi
    grep -q 'launch: .*; restart 1 of 3' err
}

n=0 told=0
while [ $n -lt $((runs + stops)) ]; do
    n=$((n + 1))
    way=sm,tcp,self
    [ $((n / 3 % 2)) -eq 0 ] || way=tcp,self
    what=KILL
    [ $((n % 4)) -ne 0 ] || what=mpirun
    [ $n -le "$runs" ] || what=STOP
    in_time one $n $what $way
    if [ $what = STOP ] && grep -q restart err; then
        grep -q "launch: .*rank $victim on host .* has not been heard for 5 s.*; restart 1 of 3, from the newest checkpoint in d" err ||
            fail "run $n: who was stopped (rank $victim) is not named: $(cat err)"
    fi
    grep -q 'rank [0-2] on host .*; to go on from the newest checkpoint: .* --resume d' err && told=$((told + 1))
done
# A rank that a busy machine keeps from speaking is ended by launch, which then says alone who was lost.
[ $told -gt 0 ] || fail "no rank tells the command that goes on"
ls "$TMPDIR" | grep -q plait && fail "left: $(ls "$TMPDIR")" # a killed mpirun leaves a folder of its own
echo "$((runs + stops)) runs, all were restarted"

# What is not restarted: what would only repeat, and what was asked for.
exits 1 'gone' fails launch -n 2 --max-restarts 3 -- "$PLAIT" train --data gone
grep -q restart fails.err && fail "a failure that repeats is restarted"
mkdir log.1
exits 1 'log.1: cannot be written' logs launch -n 2 -- "$PLAIT" train --data part --events log # who cannot says why
rm -rf d m
"$PLAIT" launch -n 2 --max-restarts 3 -- "$PLAIT" train --data part --optimizer adagrad --epochs 1000000 --metrics m --checkpoint d 2>err >out &
pid=$!
until_holds 300 says m '"epoch"' || fail "the run does not begin"
kill -INT $pid
until_holds 300 gone $pid || fail "an interrupted run does not end"
code=0
wait $pid || code=$?
[ $code -eq 75 ] || fail "interrupted: exit $code"
grep -q restart err && fail "an interrupted run is restarted"

# A graph run goes on from its newest checkpoint, too. A path takes as many supersteps as it has vertices.
awk 'BEGIN { for (k = 0; k < 3000; k++) print k, k + 1 }' >path
works whole graph run sssp --data path --source 0 --quiet
has_checkpoint() { ls ways/checkpoint-* >ways.ls 2>&1; }
"$PLAIT" launch -n 2 --max-restarts 3 -- "$PLAIT" graph run sssp --data path --source 0 --topology ps --checkpoint ways \
    --checkpoint-every 20 --out ways.out --quiet >out 2>err &
pid=$!
until_holds 300 has_checkpoint || fail "graph run: no checkpoint: $(cat err)"
# shellcheck disable=SC2046
kill -KILL $(pgrep -P "$(pgrep -P $pid)" | head -n 1) 2>/dev/null || fail "graph run: it ended before it was killed"
until_holds 300 gone $pid || fail "graph run: it does not end"
wait $pid || fail "graph run: exit $?: $(cat err)"
grep -q 'launch: .*; restart 1 of 3, from the newest checkpoint in ways' err || fail "graph run: $(cat err)"
cmp -s whole.out ways.out || fail "graph run: other ways after a restart"

# Lives that are all lost: the last says so. The job is a script: rank 1 of each life dies of a signal, with last words.
cat >dying <<'EOF'
#!/bin/sh
echo life >>lives
if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then
    until [ -s dies ] && ! kill -0 "$(cat dies)" 2>/dev/null; do sleep 0.05; done
    rm dies
    exit 3
fi
echo "my last words" >&2
echo $$ >dies
kill -SEGV $$
EOF
chmod +x dying
exits 3 'rank 1 on host .* was lost .signal 11., having said "my last words"; it was restarted 2 times' dying \
    launch -n 2 --max-restarts 2 -- "$scratch/dying"
[ "$(wc -l <lives)" -eq 6 ] || fail "$(wc -l <lives) processes instead of 3 lives of 2"

# The launcher's own death takes all with it.
rm -f m
"$PLAIT" launch -n 2 -- "$PLAIT" train --data part --optimizer adagrad --epochs 1000000 --metrics m 2>err >out &
pid=$!
until_holds 300 says m '"epoch"' || fail "the run does not begin"
rank=$(pid_of 1)
kill -9 $pid
until_holds 120 gone "$rank" || fail "a rank outlives its launch"
finish
