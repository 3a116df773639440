#!/bin/sh
# newton over mirrors that are averaged, where a rank dies about when the first models are made: those who live make theirs anew, and as
# many models as there were before must not look as if nobody had moved. In simulated time, at each of many moments.
. "$(dirname "$0")/common.sh"

"$PLAIT" version | grep -q '^sim *found' || skip "no SimGrid"
gzip -dc "$data/a9a/a9a.gz" | head -n 2000 >some
run="train --data some --optimizer newton --consistency local-sgd:4 --transport sim --json --quiet"
# shellcheck disable=SC2086
works whole $run --topology allreduce --workers 3
for topology in allreduce gossip:torus; do
    for us in 1000 1500 2000 2500 3000 4000 6000; do
        printf 'version: 1\nhosts: [{count: 4}]\ncost: {entry: 100ns}\nevents:\n  - kill: {ranks: 2, at: %s us}\n' $us >dies.yaml
        # shellcheck disable=SC2086
        works killed $run --topology $topology --workers 4 --replicas 2 --cluster dies.yaml
        [ "$(field killed converged)" = true ] || fail "$topology, $us us: it does not converge"
        awk -v a="$(field killed objective)" -v b="$(field whole objective)" 'BEGIN { d = a / b - 1; exit !(d < 2e-4 && d > -2e-4) }' ||
            fail "$topology, $us us: objective $(field killed objective) instead of $(field whole objective)"
    done
done
finish
