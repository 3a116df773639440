#!/bin/sh
# Every setting that goes with --replicas 2 by `plait help pairs`, with a rank that is killed (SIGKILL): `plait launch` of four ranks
# with that setting, under a topology and a consistency that are drawn from those that take both. The others go on: exit 0, no restart, and
# the record names who was lost. Where sums are exact, the model has the bits of the run in which nobody died; elsewhere its objective is
# near that of this run. A log is proven by the audit, a checkpoint whole.
# usage: each_pair_dies.sh MPIRUN RUNS FULL_RUNS [FIRST]      0: each setting once; the second counts under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
long=yes
. "$(dirname "$0")/settings.sh"
PLAIT_MPIRUN=$1 runs=$2 first=${4:-1}
export PLAIT_MPIRUN
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$3

COLUMNS=200 works pairs help pairs
awk '/^Settings with each other/ { inside = 1; next } /^Why not/ { exit }
     inside && /^[a-zA-Z]  [^ ]/ { n++; name[n] = substr($0, 4, 27); sub(/ *$/, "", name[n]); cells = substr($0, 31); gsub(/ /, "", cells)
        line[n] = cells; if (name[n] == "--replicas 2") of = n }
     END { for (i = 1; i <= n; i++) if (i != of) { cell = i < of ? substr(line[of], i, 1) : substr(line[i], of, 1); if (cell == "+") print name[i] } }' \
    pairs.out | grep -v '^combine \|^--workers ' >settings # tables have combine; who is away is no process (table.elastic)
all=$(wc -l <settings)
[ "$all" -ge 30 ] || fail "only $all settings go with --replicas 2"
for topology in ps allreduce hybrid gossip:ring; do
    for consistency in bsp ssp:2 bounded-delay:2 async local-sgd:2 essp:2 asp:2:2 bounded-delay:0 sequential vap:2 downpour:2:2; do
        echo "--topology $topology --consistency $consistency"
    done
done >ways

pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }
moves() { gone $pid || says m '"event": "\(clock\|epoch\)"'; }
figure() { for key in objective train_loss inertia perplexity test_rmse progressive_loss; do x=$(field "$1" $key); case $x in missing | null) ;; *) echo "$x"; return ;; esac; done; }

# dies SEED SETTING: 1: the run had ended before
dies() {
    rm -rf m model model.done log.* d
    # shellcheck disable=SC2086
    "$PLAIT" launch -n 4 -- "$PLAIT" train --data $data $words $way $logs $held --json --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 moves || fail "$2: no clock ends: $(cat err)"
    victim=$(($1 % 4))
    kill -KILL "$(pid_of $victim)" 2>/dev/null || true
    until_holds 100 gone $pid || { fail "$2, $words $way: rank $victim dies, and it does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    says model.done '"ranks_lost": \[\]' && return 1
    [ $code -eq 0 ] && says model.done '"ranks_lost": \[[0-9, ]*'$victim ||
        { fail "$2, $words $way, without rank $victim: exit $code: $(cat model.done err)"; return 0; }
    died=$((died + 1))
    ! says err restart || fail "$2, $words $way: a restart: $(cat err)"
    [ -z "$logs" ] || "$PLAIT" audit log.* >said 2>&1 || fail "$2, $words $way: the audit: $(cat said)"
    [ -z "$held" ] || "$PLAIT" checkpoint verify d >said 2>&1 || fail "$2, $words $way: $(cat said)"
    case $words in
    *"--reduce exact"*) [ "$(field run model_hash)" = "$(field whole model_hash)" ] || fail "$2, $words $way: other bits" ;;
    *) awk -v x="$(figure run)" -v y="$(figure whole)" 'BEGIN { exit !(x != "" && y != "" && x < 1.3 * y + 0.02) }' ||
        fail "$2, $words $way: objective $(figure run), and $(figure whole) where nobody died" ;;
    esac
}

# setting SEED SETTING
setting() {
    begin_settings
    turn_on "--replicas 2"
    turn_on "$2"
    end_settings
    [ -z "$resumes" ] || held="--checkpoint d --checkpoint-every 1"
    [ -z "$piped" ] || return 0
    k=0 n=$(wc -l <ways)
    while :; do
        way=$(sed -n "$((($1 + k) * 7 % n + 1))p" ways)
        rm -rf d whole.log.*
        # shellcheck disable=SC2086
        run whole launch -n 4 -- "$PLAIT" train --data $data $words $way $held --json
        [ $code -eq 2 ] && [ $k -lt "$n" ] || break
        k=$((k + 1))
    done
    [ $code -eq 0 ] || { fail "$2, $words $way: exit $code: $(cat whole.err)"; return; }
    # shellcheck disable=SC2086
    for try in 1 2 3 4 5; do
        if dies "$1" "$2"; then return; fi
    done
    late="$late $2,"
}

died=0 late='' seed=$first
[ "$runs" -ne 0 ] || runs=$all
while [ $seed -lt $((first + runs)) ]; do
    setting $seed "$(sed -n "$((seed * 17 % all + 1))p" settings)"
    seed=$((seed + 1))
done
echo "$runs runs of $all settings, $died with a death; too quick to be killed:${late:- none}"
finish
