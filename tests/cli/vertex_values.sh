#!/bin/sh
# plait graph run: programs whose values have several numbers. Belief propagation comes to the same marginals for every
# number of workers, topology and engine, and goes on from a checkpoint. Least squares by a vertex program comes to the
# RMSE of `plait train --model mf --optimizer als`. Mistakes in files and options are told by name.
# usage: vertex_values.sh SIM (yes or no)
. "$(dirname "$0")/common.sh"
sim=$1

# near A B D: the numbers of two outputs are at most D apart.
near() {
    paste "$1" "$2" | awk -v most="$3" '{ n = NF / 2
        for (i = 1; i <= n; i++) { d = $i - $(n + i); if (d > most || d < -most) { print; exit 1 } } }' >apart ||
        fail "$1 and $2 are more than $3 apart: $(cat apart)"
}
values() { grep -v '^{' "$1.out" >"$1.values"; }

# --- beliefs: two pixels, by hand; then a noisy picture of three colors ----------------------------------------------

printf '7 9\n' >pair
printf '7 0.8 0.2\n9 1 1\n' >of_pair
works pair graph run beliefs --data pair --priors of_pair --quiet
awk 'BEGIN { e = exp(-1); a = 0.8 + 0.2 * e; b = 0.8 * e + 0.2; printf "7 0.8 0.2\n9 %.17g %.17g\n", a / (a + b), b / (a + b) }' >wanted
near pair.out wanted 1e-12
works pair graph run beliefs --data pair --priors of_pair --messages max --smoothing 3 --quiet
awk 'BEGIN { e = exp(-3); print "7 0.8 0.2"; printf "9 %.17g %.17g\n", 0.8 / 1, 0.2 / 1 }' >wanted
near pair.out wanted 1e-12

awk 'BEGIN { srand(6); G = 16
    for (i = 0; i < G; i++) for (j = 0; j < G; j++) {
        v = G * i + j; truth = (i - 7) ^ 2 + (j - 8) ^ 2 < 20 ? 2 : j > 8
        if (j + 1 < G) print v, v + 1 >"grid"
        if (i + 1 < G) print v, v + G >"grid"
        seen = rand() < 0.6 ? truth : int(3 * rand())
        print v, (seen == 0 ? .6 : .2), (seen == 1 ? .6 : .2), (seen == 2 ? .6 : .2) >"priors"
        print truth >"truth"
    } }'
picture() { name=$1; shift; works "$name" graph run beliefs --data grid --priors priors --smoothing 0.7 --json --quiet "$@"; values "$name"; }
right() { # right FILE: how many pixels have the color that they had before the noise
    awk '{ best = 2; for (i = 3; i <= NF; i++) if ($i > $best) best = i; print best - 2 }' "$1" | paste - truth | awk '$1 == $2 { n++ } END { print n }'
}
picture one
json one.out "o['converged'] and o['labels'] == 3 and o['supersteps'] < 200"
awk '{ if (sqrt(($2 + $3 + $4 - 1) ^ 2) > 1e-12) exit 1 }' one.values || fail "beliefs do not add up to 1: $(head -n 3 one.values)"
picture best --messages max
[ "$(right priors)" -lt 200 ] && [ "$(right best.values)" -ge 240 ] || fail "of 256 pixels $(right priors) were right, and $(right best.values) are"
json best.out "o['energy'] < $(tail -n 1 one.out | sed 's/.*"energy": \([^,]*\),.*/\1/') + 1e-9"
for setting in "2 local" "4 ps" "3 allreduce"; do
    picture many --workers "${setting% *}" --topology "${setting#* }" --events log
    cmp -s one.values many.values || fail "beliefs of $setting have other bits"
    works audit audit log
done
for setting in "--workers 1 --order priority" "--workers 3 --topology ps --scope edge" "--workers 2 --scope full --order sweep"; do
    # shellcheck disable=SC2086
    picture async --engine async --tolerance 1e-12 $setting
    near one.values async.values 1e-9
done
picture stale --workers 3 --topology ps --consistency ssp:2 --tolerance 1e-12
near one.values stale.values 1e-9
if [ "$sim" = yes ]; then
    picture sim --workers 4 --topology ps --transport sim
    cmp -s one.values sim.values || fail "simulated beliefs have other bits"
    picture sim --workers 4 --topology ps --transport sim --engine async --scope edge --tolerance 1e-12
    near one.values sim.values 1e-9
fi
if [ "$sim" = yes ]; then
    # All that a worker has lies in the table, so a run goes on when one dies: to the same bits, or the same fixed point.
    for at in 1 4 8; do
        printf 'version: 1\nhosts: [{count: 4}]\nevents:\n  - kill: {ranks: 1, at: %s ms}\n' $at >dying.yaml
        picture died --workers 4 --topology ps --transport sim --cluster dying.yaml --replicas 2 --events log
        cmp -s one.values died.values || fail "a worker dies at $at ms: beliefs have other bits"
        json died.out "o['ranks_lost'] == [1]"
        works audit audit log
        picture died --workers 4 --topology ps --transport sim --cluster dying.yaml --replicas 2 --engine async --tolerance 1e-12
        near one.values died.values 1e-9
        json died.out "o['ranks_lost'] == [1]"
    done
fi
picture part --supersteps 4 --checkpoint kept --checkpoint-every 4 --workers 2
picture rest --resume kept --workers 3 --topology ps
cmp -s one.values rest.values || fail "beliefs from a checkpoint have other bits"
works array graph run beliefs --data grid --priors priors --smoothing 0.7 --out beliefs.npy
if command -v python3 >/dev/null && python3 -c 'import numpy' 2>no_numpy; then
    python3 -c "import numpy as np
a = np.load('beliefs.npy'); b = np.loadtxt('one.values')
assert a['value'].shape == (256, 3) and (a['id'] == b[:, 0]).all() and (a['value'] == b[:, 1:]).all()" || fail "the array"
fi
gzip -c priors >packed.gz
works packed graph run beliefs --data grid --priors packed.gz --smoothing 0.7 --quiet
cmp -s packed.out one.values || fail "packed priors give other beliefs"
works help help beliefs
says help.out "plait graph run beliefs --data EDGES --priors FILE" || fail "help beliefs: $(cat help.out)"

# A frustrated circle, whose weights want unequal neighbors, does not come to rest: it ends by itself, and says so.
printf '1 2\n2 3\n3 1\n1 4\n4 2\n4 3\n' >circle
printf '1 2 1\n2 1 1\n3 1 1\n4 1 1\n' >of_circle
works circle graph run beliefs --data circle --priors of_circle --smoothing -9 --json
json circle.out "o['converged'] is False and o['supersteps'] == 1000"
says circle.err "before values were still" || fail "it says: $(cat circle.err)"

# --- als: the ratings of `train --model mf --optimizer als`, and its numbers ------------------------------------------

awk 'BEGIN { srand(2); for (u = 0; u < 300; u++) for (k = 0; k < 25; k++) { i = int(rand() * 120)
    if (i in seen && seen[i] == u) continue
    seen[i] = u
    printf "%d %d %.1f\n", 1000 + u, 5000 + i, 3 + sin(u) + cos(i) + 1.3 * sin(u * 1.7) * cos(i * 2.3) + rand() - 0.5 } }' >ratings
rate() { name=$1; shift; works "$name" graph run als --data ratings --json --quiet "$@"; values "$name"; }
of() { tail -n 1 "$1.out" | sed "s/.*\"$2\": \([^,}]*\).*/\1/"; }
# Two supersteps are an epoch. Users and items stand in the same order, so that both begin with the same factors; a side
# of the one has the floats of the other, and what is left is how the errors are summed up.
for setting in "8 0.05 15" "3 0.2 4" "32 0.1 2"; do
    # shellcheck disable=SC2086
    set -- $setting
    works mf train --model mf --optimizer als --format ratings --data ratings --test ratings --components "$1" --l2 "$2" --epochs "$3" --seed 3 --json --quiet
    rate als --components "$1" --l2 "$2" --supersteps $((2 * $3)) --seed 3
    json als.out "abs(o['train_rmse'] - $(of mf test_rmse)) < 1e-7 and abs(o['objective'] - $(of mf objective)) < 1e-7"
done
rate one --components 8 --l2 0.1
json one.out "o['users'] == 300 and o['supersteps'] == 30 and o['train_rmse'] < 0.4"
[ "$(awk 'NF != 10' one.values)" = "" ] || fail "a line is an id, a bias and 8 factors: $(head -n 1 one.values)"
for setting in "2 local" "4 ps" "3 allreduce"; do
    rate many --components 8 --l2 0.1 --workers "${setting% *}" --topology "${setting#* }" --events log
    cmp -s one.values many.values || fail "factors of $setting have other bits"
    works audit audit log
done
if [ "$sim" = yes ]; then
    rate sim --components 8 --l2 0.1 --workers 4 --topology ps --transport sim
    cmp -s one.values sim.values || fail "simulated factors have other bits"
fi
rate part --components 8 --l2 0.1 --supersteps 7 --checkpoint kept-als --checkpoint-every 7 --workers 3 --topology ps
rate rest --components 8 --l2 0.1 --supersteps 23 --resume kept-als --workers 2
cmp -s one.values rest.values || fail "factors from a checkpoint have other bits"
# Vertex by vertex, or with stale reads, it comes to the same optimum.
rate best --components 2 --l2 0.2 --tolerance 1e-5 --supersteps 500
json best.out "o['converged']"
for setting in "--engine async --scope edge --topology ps" "--engine async --order priority" "--topology ps --consistency ssp:1"; do
    # shellcheck disable=SC2086
    rate other --components 2 --l2 0.2 --tolerance 1e-5 --supersteps 500 --workers 3 $setting
    json other.out "o['converged'] and abs(o['objective'] - $(of best objective)) < 1e-6"
done
if [ "$sim" = yes ]; then
    rate died --components 2 --l2 0.2 --tolerance 1e-5 --supersteps 500 --workers 4 --topology ps --transport sim --cluster dying.yaml \
        --replicas 2 --engine async
    json died.out "o['ranks_lost'] == [1] and o['converged'] and abs(o['objective'] - $(of best objective)) < 1e-6"
fi
works array graph run als --data ratings --components 8 --l2 0.1 --out factors.npy
if command -v python3 >/dev/null && python3 -c 'import numpy' 2>no_numpy; then
    python3 -c "import numpy as np
a = np.load('factors.npy'); b = np.loadtxt('one.values')
assert a['value'].shape == (420, 9) and a['value'].dtype == np.float32 and (a['value'] == b[:, 1:].astype(np.float32)).all()" || fail "the array"
fi

# --- what is refused ---------------------------------------------------------------------------------------------------

refused() { # refused CODE WORDS options...
    code=$1 words=$2
    shift 2
    is=0
    "$PLAIT" graph run "$@" --out none >said 2>err || is=$?
    [ $is -eq "$code" ] || fail "graph run $*: exit $is: $(cat err)"
    grep -qF -- "$words" err || fail "graph run $*: $(cat err)"
    [ ! -s said ] && [ ! -e none ] || fail "graph run $*: something was written"
}
printf '7 0.8 0.2\n9 1 x\n' >letter
printf '7 0.8 0.2\n8 1 1\n' >foreign
printf '7 9 1\n9 7 2\n' >unlike
refused 2 "beliefs needs --priors FILE" beliefs --data pair
refused 1 "letter:2: expected a finite number: 'x'" beliefs --data pair --priors letter
refused 1 "foreign:2: the graph has no such vertex: '8'" beliefs --data pair --priors foreign
refused 1 "nowhere" beliefs --data pair --priors nowhere
refused 2 "have the weights" beliefs --data unlike --priors of_pair
refused 2 "update over a vertex cut is refused" beliefs --data grid --priors priors --workers 2 --topology ps --partition hdrf
refused 2 "bfs has no use for --priors: it is beliefs'" bfs --data pair --source 7 --priors of_pair
refused 2 "beliefs has no use for --damping: it is pagerank's" beliefs --data pair --priors of_pair --damping 0.5
refused 2 "--messages" beliefs --data pair --priors of_pair --messages min
refused 2 "the checkpoint is of 'graph run beliefs" beliefs --data grid --priors priors --smoothing 0.6 --resume kept
refused 2 "has edges to others and from others" als --data ratings --undirected
refused 2 "--l2 must be above 0" als --data ratings --l2 0
refused 2 "--components" als --data ratings --components 65
refused 2 "over a vertex cut is refused" als --data ratings --workers 2 --topology ps --partition hdrf
refused 2 "beliefs has no use for --l2: it is als'" beliefs --data pair --priors of_pair --l2 1
refused 2 "the checkpoint is of 'graph run als" als --data ratings --components 8 --l2 0.2 --resume kept-als
refused 2 "beliefs has no --source" beliefs --data pair --priors of_pair --source 7
finish
