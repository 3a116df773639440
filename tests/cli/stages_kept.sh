#!/bin/sh
# Checkpoints of plait train --cut and --columns: a run goes on in any layout. Between stages, or whole, it ends with the
# bits of a run that was never interrupted, also when it is killed again and again. Columns are joined and cut anew with
# no bit lost; then sums round as in the new layout.
# usage: stages_kept.sh SIM MPIRUN   (yes or no; the mpirun, or no)
. "$(dirname "$0")/common.sh"
sim=$1 mpirun=$2
digits=$data/digits/digits.csv.gz
hash_of() { field "$1" model_hash; }
same() { # same NAME OTHER WHAT
    got="$(hash_of "$1") $(field "$1" progressive_loss)" want="$(hash_of "$2") $(field "$2" progressive_loss)"
    [ "$got" = "$want" ] || fail "$3: $got, not $want"
}
whole="" two="--workers 2 --cut 2" three="--workers 3 --cut 3 --topology ps" four="--workers 4 --cut 4 --topology allreduce"

# --- from any layout to any: the same bits ----------------------------------------------------------------------------

set -- --data "$digits" --label -1 --seed 3 --epochs 2 --batch 120 --schedule constant --validation 0.2 --quiet --json \
    --model mlp --layers 32,16,12
works straight train "$@"
for from in "$whole" "$two" "$four"; do
    rm -rf d
    # shellcheck disable=SC2086
    works kept train "$@" $from --checkpoint d --checkpoint-every 10
    same kept straight "'$from' with checkpoints"
    for to in "$whole" "$two" "$three" "$four"; do
        # shellcheck disable=SC2086
        works on train "$@" $to --resume d
        same on straight "from '$from' to '$to'"
    done
done

# Replicas of stages, under exact sums: whoever has how many.
set -- "$@" --reduce exact
works straight train "$@"
works kept train "$@" --workers 4 --cut 2 --topology ps --checkpoint e --checkpoint-every 10 --micro-batches 1
same kept straight "2 x 2 with checkpoints"
for to in "--workers 3 --topology allreduce" "--workers 6 --cut 2 --topology ps" "--workers 6 --cut 3 --topology hybrid"; do
    # shellcheck disable=SC2086
    works on train "$@" $to --resume e
    same on straight "from 2 x 2 to '$to'"
done
if [ "$sim" = yes ]; then
    works on train "$@" --workers 4 --cut 2 --topology ps --transport sim --resume e
    same on straight "from threads to a simulation"
fi

# A graph that drops values at random draws the same ones; its stages are other tables than those of the run before.
sed -n '/^cat >net.json/,/^END/{/^cat/d;/^END/d;p}' "$(dirname "$0")/stages.sh" >net.json
set -- --data "$digits" --label -1 --seed 3 --epochs 1 --batch 120 --quiet --json --graph net.json
works straight train "$@"
works kept train "$@" --workers 2 --cut 2 --checkpoint g --checkpoint-every 9
same kept straight "a graph with checkpoints"
for to in "$whole" "--workers 3 --cut 3"; do
    # shellcheck disable=SC2086
    works on train "$@" $to --resume g
    same on straight "a graph from 2 stages to '$to'"
done

# --- columns ----------------------------------------------------------------------------------------------------------

# The last clock is kept, so a run that goes on from there trains no more: it must have the very values.
set -- --seed 3 --epochs 1 --schedule constant --quiet --json --model mlp
dense="--data $digits --label -1 --batch 120 --layers 33,16,12" sparse="--data part --batch 50 --layers 9,8"
for net in "$dense" "$sparse"; do
    # shellcheck disable=SC2086
    works straight train "$@" $net
    clocks=$(field straight clocks)
    for from in 1 2 3; do
        rm -rf c
        # shellcheck disable=SC2086
        works kept train "$@" $net --workers $from --columns $from --checkpoint c --checkpoint-every "$clocks"
        for to in "--workers 1" "--workers 2 --columns 2" "--workers 3 --columns 3 --topology hybrid" "--workers 2 --cut 2" \
            "--workers 4 --columns 2 --topology ps"; do
            # shellcheck disable=SC2086
            works on train "$@" $net $to --resume c
            [ "$(hash_of on)" = "$(hash_of kept)" ] || fail "from $from columns to '$to': $(hash_of on), not $(hash_of kept)"
        done
    done
done
# In the same columns a run goes on with the same bits. In others it ends where the whole one does but for rounding, which
# a lost moment of adam would not do.
rm -rf c
# shellcheck disable=SC2086
works straight train "$@" $dense --workers 2 --columns 2 --topology ps
# shellcheck disable=SC2086
works kept train "$@" $dense --workers 2 --columns 2 --checkpoint c --checkpoint-every 6
# shellcheck disable=SC2086
works on train "$@" $dense --workers 2 --columns 2 --topology allreduce --resume c
same on straight "2 columns to 2"
loss() { field "$1" objective; }
near() { awk -v a="$(loss "$1")" -v b="$(loss "$2")" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < (2e-6 * b) ^ 2) }'; }
for to in "" "--workers 3 --columns 3"; do
    # shellcheck disable=SC2086
    works on train "$@" $dense $to --resume c
    near on straight || fail "from 2 columns to '$to': loss $(loss on), not $(loss straight)"
done
works list checkpoint inspect c
says list.out 'table	w1\[0,16\]	F32	64 x 17	dense	slots m, v' || fail "the pieces are not listed: $(cat list.out)"
# shellcheck disable=SC2086
exits 2 "made with '--layers 33,16,12', but this run has '--layers 33,17,12'" other train "$@" $dense --layers 33,17,12 --resume c

# --- the whole run is killed, again and again ---------------------------------------------------------------------------

kills=3
[ -z "${PLAIT_TEST_FULL:-}" ] || kills=20
set -- --data "$digits" --label -1 --seed 3 --epochs 40 --batch 120 --schedule constant --quiet --json --model mlp --layers 32,16,12
works straight train "$@"
newest() { ls -t k/*/manifest.json 2>/dev/null | sed -n 1p; } # the last one that is whole
grew() { gone $pid || { [ -n "$(newest)" ] && [ "$(newest)" != "$before" ]; }; }
rm -rf k
killed=0 k=0
while [ $k -lt $kills ]; do
    before=$(newest)
    case $((k % 4)) in
    0) layout=$two ;;
    1) layout=$four ;;
    2) layout="$two --micro-batches 1 --topology ps" ;;
    3) layout=$whole ;;
    esac
    # shellcheck disable=SC2086
    "$PLAIT" train "$@" $layout --checkpoint k --checkpoint-every 20 --resume k >run.out 2>run.err &
    pid=$!
    until_holds 300 grew || fail "kill $k: no checkpoint comes: $(cat run.err)"
    kill -KILL $pid 2>/dev/null && killed=$((killed + 1))
    wait $pid 2>/dev/null || true
    k=$((k + 1))
done
[ $killed -ge 2 ] || fail "only $killed of $kills runs were killed"
# shellcheck disable=SC2086
works on train "$@" $three --checkpoint k --checkpoint-every 20 --resume k
same on straight "after $killed kills"

# Processes, whose ranks are killed all at once.
if [ "$mpirun" != no ]; then
    PLAIT_MPIRUN=$mpirun
    export PLAIT_MPIRUN
    rm -rf k
    before=
    "$PLAIT" launch -n 2 -- "$PLAIT" train "$@" --cut 2 --checkpoint k --checkpoint-every 20 --metrics m >run.out 2>run.err &
    pid=$!
    until_holds 300 grew || fail "no checkpoint comes from processes: $(cat run.err)"
    # shellcheck disable=SC2046
    kill -KILL $(sed -n 's/.*"rank": [01], .*"pid": \([0-9]*\).*/\1/p' m | sort -u) 2>/dev/null || true
    until_holds 120 gone $pid || { fail "the launch does not end"; kill -9 $pid; }
    wait $pid 2>/dev/null || true
    works on train "$@" --workers 2 --cut 2 --resume k
    same on straight "from processes that were killed"
    works on launch -n 3 -- "$PLAIT" train "$@" --cut 3 --resume k
    same on straight "from processes to others"
fi
finish
