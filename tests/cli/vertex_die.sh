#!/bin/sh
# plait graph run --replicas 2 by real processes, one of which is killed by SIGKILL at a drawn moment; with --replicas 3 two of
# five are, at once. Every run must end with
# exit 0, without a restart, with the values of a run in which nobody died: to the bit, and ranks over a vertex cut, which
# are sums of parts in another order, within 1e-9. The audit proves each, and of the asynchronous engine what each update
# has read under its locks; from a checkpoint of such a run it goes on.
# usage: vertex_die.sh MPIRUN RUNS FULL_RUNS      the last counts under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
runs=$2
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$3

draw() { awk -v seed="$1" -v below="$2" 'BEGIN { srand(seed); rand(); print int(rand() * below) }'; }
# The process that has a rank's event log open.
pid_of() { find /proc/[0-9]*/fd -lname "$PWD/log.$1" 2>/dev/null | head -n 1 | cut -d / -f 3; }
wrote() { gone $pid || { [ -e "log.$1" ] && [ "$(wc -c <"log.$1")" -ge "$2" ]; }; } # the rank's log is so long, or the run is over
near() { # every column of both
    paste "$1" "$2" | awk '{ for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (d > 1e-9 || d < -1e-9) exit 1 } }'
}

awk 'BEGIN { for (k = 0; k < 5000; k++) print k, k + 1 }' >path # as many supersteps as it has vertices
awk 'BEGIN { srand(4); for (k = 0; k < 5000; k++) { print k, k + 1; print k, k + 1 + int(20 * rand() * rand()) } }' >braid # likewise
ranks="pagerank --data braid --damping 0.999 --tolerance 0"
works ranks graph run $ranks --quiet
works ways graph run sssp --data path --source 0 --quiet
works hops graph run bfs --data path --source 0 --quiet
awk 'BEGIN { srand(6); for (k = 0; k < 12000; k++) print int(4000 * rand()), int(4000 * rand()) }' >sparse
awk 'BEGIN { srand(4); for (k = 0; k < 15000; k++) { print k, k + 1, 1 + int(4 * rand())
             print k, k + 1 + int(20 * rand() * rand()), 1 + int(9 * rand()) } }' >long
works long graph run sssp --data long --source 0 --engine async --quiet
works sparse graph run pagerank --data sparse --tolerance 1e-14 --quiet
works joined graph run components --data path --quiet
works colors graph run coloring --data path --quiet
works cores graph run kcore --data path --quiet
works groups graph run labels --data path --supersteps 1000 --quiet
awk 'BEGIN { srand(9); for (v = 0; v < 6400; v++) { if (v % 80 < 79) print v, v + 1 >"grid"; if (v < 6320) print v, v + 80 >"grid"
             p = 0.3 + 0.4 * rand(); print v, p, 1 - p >"priors" } }'
seen="beliefs --data grid --priors priors --smoothing 0.4"
works seen graph run $seen --tolerance 0 --supersteps 300 --quiet
works guess graph run $seen --tolerance 1e-13 --quiet
awk 'BEGIN { srand(2); for (u = 0; u < 3000; u++) for (i = u % 11; i < 400; i += 37) # users and items who are far from each other
    print 10000 + u, 20000 + int(u / 8) + i, 3 + sin(u) + cos(i) + rand() - 0.5 }' >rated
awk 'BEGIN { for (k = 0; k < 4000; k++) print k, (k + 1) % 4000; for (k = 4000; k < 4100; k++) print k, k + 1 - 7 * (k % 10 == 0) }' >ring
works ring graph run strong --data ring --quiet
awk 'BEGIN { srand(5); for (v = 0; v < 1200; v++) {
        printf "%d", 7 + v % 3 >"rows"
        for (f = 1; f <= 60; f++) if (rand() < (f % 3 == v % 3 ? 0.3 : 0.1)) printf " %d:1", f >"rows"
        print "" >"rows"
        print v < 300 ? "train" : v < 400 ? "val" : "test" >"split"
        for (k = 0; k < 4; k++) { u = int(1200 * rand()); if (u % 3 == v % 3 || rand() < 0.05) print v, u >"joined" } } }'
taught="gcn --data joined --features rows --split split --reduce exact --supersteps 400"
works taught graph run $taught --quiet
solved="als --data rated --components 2 --l2 0.02 --tolerance 1e-8 --supersteps 100000"
works solved graph run $solved --quiet

# one NUMBER WANTED JUDGE OPTIONS...: with two replicas on three ranks, or if copies is 3 with three on five
copies=2
one() {
    n=$1 wanted=$2 judge=$3
    shift 3
    rm -rf values log.* kept err run.out
    "$PLAIT" launch -n $((2 * copies - 1)) -- "$PLAIT" graph run "$@" --replicas $copies --events log --out values --json --quiet >run.out 2>err &
    pid=$!
    victim=$(draw $((n + 999)) $((2 * copies - 1)))
    lost=$victim # those that die, in order
    [ $copies -eq 2 ] || lost=$(printf "%s\n" "$victim" $(((victim + 2) % 5)) | sort -n | paste -sd " ")
    until_holds 300 wrote "$victim" 500 || fail "run $n ($*) does not begin: $(cat err)"
    killed=$(for rank in $lost; do pid_of "$rank"; done | paste -sd " ")
    case "$*" in *async*) all=6000000 ;; *kcore*) all=150000 ;; als*) all=200000 ;; *supersteps*) all=60000 ;; *) all=400000 ;; esac # of a log, about half
    until_holds 300 wrote "$victim" "$(draw "$n" $all)" || fail "run $n ($*) stands still: $(cat err)"
    # shellcheck disable=SC2086
    [ -z "$killed" ] || kill -KILL $killed 2>/dev/null || true
    until_holds 300 gone $pid || { fail "run $n ($*) does not end: $(cat err)"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq 0 ] && [ -s values ] || fail "run $n ($*, rank $victim): exit $code: $(cat err)"
    $judge values "$wanted" || fail "run $n ($*, rank $victim): other values"
    grep -q restart err && fail "run $n was restarted: $(cat err)"
    echo "run $n ($*): rank $victim, process ${killed:-none}, $(wc -c <"log.$victim") bytes of its log: $(grep -o '"ranks_lost": [^]]*]' run.out)"
    grep -q '"ranks_lost": \['"$(echo "$lost" | sed 's/ /, /')"'\]' run.out || return 0 # it came too late: its log is cut
    died=$((died + 1))
    "$PLAIT" audit log.* >said 2>&1 || fail "run $n ($*, rank $victim): the audit: $(cat said)"
    case "$*" in *async*) ;; *) return 0 ;; esac
    "$PLAIT" audit --scopes log.* >said 2>&1 || fail "run $n ($*, rank $victim): the audit of scopes: $(cat said)"
    cat said
}

n=0 died=0
while [ $n -lt "$runs" ]; do
    n=$((n + 1))
    # shellcheck disable=SC2086
    case $((n % 17)) in
    1) one $n ranks.out cmp $ranks --reduce exact ;;
    2)
        one $n ways.out cmp sssp --data path --source 0 --partition random --checkpoint kept --checkpoint-every 1000
        [ ! -d kept ] || works rest graph run sssp --data path --source 0 --resume kept --quiet
        [ ! -d kept ] || cmp -s rest.out ways.out || fail "run $n: from its checkpoint it goes on to other ways"
        ;;
    3) one $n ranks.out near $ranks --partition hdrf ;;
    4) one $n hops.out cmp bfs --data path --source 0 ;;
    5) one $n joined.out cmp components --data path --partition grid ;;
    6) one $n sparse.out near pagerank --data sparse --engine async --scope full --tolerance 1e-13 ;;
    7) one $n seen.out cmp $seen --tolerance 0 --supersteps 300 ;;
    8) one $n guess.out near $seen --tolerance 1e-13 --engine async --scope edge --order priority ;;
    10) one $n ring.out cmp strong --data ring --partition random ;;
    11) one $n taught.out cmp $taught ;;
    12)
        copies=3
        one $n ranks.out cmp $ranks --reduce exact
        copies=2
        ;;
    15) one $n colors.out cmp coloring --data path ;;
    16)
        copies=3
        one $n solved.out cmp $solved
        copies=2
        ;;
    13) one $n cores.out cmp kcore --data path ;;
    14) one $n groups.out cmp labels --data path --supersteps 1000 ;;
    9)
        one $n solved.out cmp $solved --checkpoint kept --checkpoint-every 100
        [ ! -d kept ] || works rest graph run $solved --resume kept --quiet
        [ ! -d kept ] || cmp -s rest.out solved.out || fail "run $n: from its checkpoint it goes on to other factors"
        ;;
    0) one $n long.out cmp sssp --data long --source 0 --engine async --scope edge ;;
    esac
done
# One process decides for all where a run begins, and tells it once.
begins() { # WORDS options...: of two processes; the words come once
    words=$1
    shift
    "$PLAIT" launch -n 2 -- "$PLAIT" graph run pagerank --data braid --checkpoint new --resume new --checkpoint-every 2 --supersteps 4 \
        --out values "$@" >run.out 2>err || fail "from $words: $(cat err)"
    [ "$(grep -c -- "$words" err)" -eq 1 ] || fail "not once: $words: $(cat err)"
}
begins 'new holds no checkpoint: the run starts from the beginning'
begins 'new was saved by a run with --tolerance 1e-10; this one goes on with --tolerance 1e-06' --tolerance 1e-6

[ $((died * 2)) -ge "$runs" ] || fail "only $died of $runs were lost in the run"
echo "$runs runs, $died with a loss"
finish
