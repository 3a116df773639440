#!/bin/sh
# a9a under one topology and each consistency, 4 workers: every pair that the contract lists comes within 1 % of
# LIBLINEAR's objective (0.32337958, -s 0 -e 1e-6, no intercept), gossip and local-sgd within 2 %; every other is refused by name.
# How far apart workers run under async, downpour and vap is the scheduler's: one run in a hundred, where a worker began
# late, is a little above that, so of these it is the middle one of three.
# usage: pairs.sh TOPOLOGY
. "$(dirname "$0")/common.sh"
topology=$1
nearest=$topology
[ "$topology" = hybrid ] && nearest=allreduce # as its dense weights travel

# Does the contract list the pair?
trains() {
    case $topology-$consistency in
    allreduce-bsp | allreduce-bounded-delay:* | hybrid-bsp | hybrid-bounded-delay:* | allreduce-local-sgd:* | hybrid-local-sgd:* | gossip:*-local-sgd:* | ps-* | gossip:*-bsp | gossip:*-async) true ;;
    allreduce-* | hybrid-* | local-essp:* | local-downpour:* | local-local-sgd:* | gossip:*) false ;;
    esac
}

for consistency in bsp ssp:0 ssp:2 essp:2 asp:4:50 bounded-delay:0 bounded-delay:2 sequential vap:0.02 vap:0.02:weak \
    downpour:4:4 async local-sgd:8; do
    name=$topology-$consistency
    if ! trains; then
        exits 2 "$topology.*${consistency%%:*}" "$name" train --model logistic \
            --data "$data/a9a/a9a.gz" --workers 4 --topology "$topology" --consistency "$consistency"
        grep -q "nearest is $nearest x" "$name.err" || fail "$name: the refusal does not name the nearest pair"
        continue
    fi
    works "$name" train --model logistic --data "$data/a9a/a9a.gz" --workers 4 --no-intercept \
        --topology "$topology" --consistency "$consistency" --json
    case $topology-$consistency in
    gossip:* | *-local-sgd:*) holds "$name" objective "<= 0.32337958 * 1.02" ;;
    *-async | *-downpour:* | *-vap:*)
        for again in again once_more; do
            works "$name-$again" train --model logistic --data "$data/a9a/a9a.gz" --workers 4 --no-intercept \
                --topology "$topology" --consistency "$consistency" --json
        done
        middle=$(for run in "$name" "$name-again" "$name-once_more"; do field "$run" objective; done | sort -g | sed -n 2p)
        awk -v x="$middle" 'BEGIN { exit !(x <= 0.32337958 * 1.01) }' ||
            fail "$name: of three objectives the middle one is $middle, it must be <= 0.32337958 * 1.01"
        ;;
    *) holds "$name" objective "<= 0.32337958 * 1.01" ;;
    esac
    [ "$(field "$name" topology)" = "$topology" ] || fail "$name: topology is $(field "$name" topology)"
    [ "$(field "$name" consistency)" = "$consistency" ] || fail "$name: consistency is $(field "$name" consistency)"
    echo "$name: objective $(field "$name" objective), $(field "$name" train_seconds) s"
done

# Without the slowest worker of each clock, and with steps by staleness: as near.
if [ "$topology" = ps ]; then
    train="train --model logistic --data $data/a9a/a9a.gz --workers 4 --no-intercept --topology ps --json"
    works backup $train --backup 1
    holds backup objective "<= 0.32337958 * 1.01"
    holds backup updates_dropped ">= 0"
    late=$(($(field backup updates_dropped) + $(field backup clocks_skipped)))
    [ $late -eq "$(field backup clocks)" ] || fail "backup: $late late workers in $(field backup clocks) clocks"
    works staleness $train --consistency ssp:2 --staleness-aware
    holds staleness objective "<= 0.32337958 * 1.01"
    [ "$(field staleness updates_dropped)" = null ] || fail "staleness: updates_dropped is not null"
fi
finish
