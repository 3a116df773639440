#!/bin/sh
# plait graph place: a placement of a graph's file is printed and written, keeps the file's places and rules and those of
# the command line, and is refused by name where it cannot be.
. "$(dirname "$0")/common.sh"

# Two branches of wide layers from x, so that two ranks are faster than one.
cat >net.json <<'END'
{"plait_graph": 1, "about": "two branches", "nodes": [
{"name": "x", "op": "placeholder", "shape": [null, 256]},
{"name": "w1", "op": "variable", "shape": [256, 1024], "initial": "he"},
{"name": "w2", "op": "variable", "shape": [1024, 8], "initial": {"uniform": 0.4}},
{"name": "v1", "op": "variable", "shape": [256, 1024], "initial": "he"},
{"name": "v2", "op": "variable", "shape": [1024, 8]},
{"name": "h", "op": "matmul", "inputs": ["x", "w1"]}, {"name": "left", "op": "matmul", "inputs": ["h", "w2"]},
{"name": "k", "op": "matmul", "inputs": ["x", "v1"]}, {"name": "right", "op": "matmul", "inputs": ["k", "v2"]},
{"name": "scores", "op": "add", "inputs": ["left", "right"]}],
"outputs": {"best": "scores"}}
END
rank_of() { sed -n "s/^$2	rank:\([0-9]*\).cpu:0\$/\1/p" "$1.out"; }
number() { sed -n "s/.*\"$2\": \([0-9.e+-]*\).*/\1/p" "$1.out"; }

# The branches are on two ranks, and the step is faster than one rank alone. It repeats.
works two graph place net.json --ranks 2 --batch 512
[ "$(rank_of two w1)" != "$(rank_of two v1)" ] || fail "both branches are on one rank: $(cat two.out)"
[ "$(rank_of two w1)" = "$(rank_of two h)" ] || fail "a variable is not with its first reader: $(cat two.out)"
works again graph place net.json --ranks 2 --batch 512
cmp -s two.out again.out || fail "the same command gives another placement"
works json graph place net.json --ranks 2 --batch 512 --json
awk -v step="$(number json step_seconds)" -v whole="$(number json whole_seconds)" 'BEGIN { exit !(step > 0 && step < 0.7 * whole) }' ||
    fail "two ranks are not faster than one: $(cat json.out)"
# Products of 512 rows in two branches: 2 x 512 x 1024 x (256 + 8) forward, the same again for the weights' gradients, and
# 2 x 512 x 1024 x 8 for the hidden layer's; the placeholder has none.
grep -o '"flops": [0-9.e+]*' json.out | awk '{ n += $2 } END { exit !(n > 1.12e9 && n < 1.15e9) }' || fail "flops: $(cat json.out)"

# What is written keeps the file, and is read back as it was placed.
works out graph place net.json --ranks 2 --batch 512 --out placed.json
grep -q '"initial":"he"' placed.json || fail "first values by rule are lost: $(cat placed.json)"
grep -q '"outputs": {"best":"scores"}' placed.json || fail "outputs are lost: $(cat placed.json)"
grep -q '"about": "two branches"' placed.json || fail "about is lost: $(cat placed.json)"
works back graph place placed.json --ranks 2 --batch 512 --seed 9
cmp -s two.out back.out || fail "the placed graph is placed otherwise"

# A graph trains to the same bits with places and without.
sed 's/256/4/; s/256/4/; s/256/4/; s/ 8\]/ 3]/g' net.json >small.json
works small-out graph place small.json --ranks 2 --apart w1:v1 --out small-placed.json
for graph in small small-placed; do
    works $graph train --graph $graph.json --data "$data/small/iris.csv" --epochs 1 --quiet --json
    sed -n 's/.*"model_hash": "\([0-9a-f]*\)".*/\1/p' $graph.out >$graph.hash
done
for graph in small small-placed; do # layers are cut in stages by themselves
    works $graph-cut train --graph $graph.json --data "$data/small/iris.csv" --epochs 1 --quiet --json --workers 2 --cut 2
    sed -n 's/.*"model_hash": "\([0-9a-f]*\)".*/\1/p' $graph-cut.out >$graph-cut.hash
done
[ -s small-cut.hash ] && cmp -s small-cut.hash small-placed-cut.hash || fail "places change what a cut net trains"
[ -s small.hash ] && cmp -s small.hash small-placed.hash || fail "places change what is trained"

# Places and rules: of the file, of another file, of the command line; a file's places are kept by --place auto.
echo '{"nodes": {"left": "rank:0"}, "together": [["left", "w1", "k"]], "memory": {"rank:1": 90000000}}' >by.json
works by graph place net.json --ranks 3 --place by.json --forbid scores:0 --forbid scores:1 --out by-placed.json
for node in left w1 w2 h k v1; do [ "$(rank_of by $node)" = 0 ] || fail "$node is not on rank 0: $(cat by.out)"; done
[ "$(rank_of by scores)" = 2 ] || fail "scores is on a rank that is forbidden: $(cat by.out)"
grep -q '"forbid":\[\["scores","rank:0"\],\["scores","rank:1"\]\],"memory":{"rank:1":90000000}' by-placed.json ||
    fail "rules are not written: $(tail -n 1 by-placed.json)"
works apart graph place net.json --ranks 2 --apart w1:w2 --together w1:v1
[ "$(rank_of apart w1)" != "$(rank_of apart w2)" ] || fail "not apart: $(cat apart.out)"
[ "$(rank_of apart w1)" = "$(rank_of apart v1)" ] || fail "not together: $(cat apart.out)"
for method in chain heft auto; do
    works m-$method graph place net.json --ranks 2 --place $method --micro-batches 4 --json
    grep -q "\"method\": \"$method\"" m-$method.out || fail "$method: $(cat m-$method.out)"
done
awk -v auto="$(number m-auto step_seconds)" -v chain="$(number m-chain step_seconds)" 'BEGIN { exit !(auto <= chain) }' ||
    fail "auto is worse than chain"

# METIS is a module: with it the result is no worse than auto's, without it the message says how to install it.
if "$PLAIT" version --json | grep -q '"metis": {"found": true'; then
    works m-metis graph place net.json --ranks 2 --place metis --micro-batches 4 --json
    awk -v auto="$(number m-auto step_seconds)" -v metis="$(number m-metis step_seconds)" 'BEGIN { exit !(metis > 0 && metis <= auto) }' ||
        fail "metis is worse than auto: $(cat m-metis.out)"
else
    exits 2 'apt-get install libmetis-dev' no-metis graph place net.json --ranks 2 --place metis
fi

# A cluster's ranks: the host that is four times as fast has the wide branch.
cat >cluster.yaml <<'END'
version: 1
hosts:
  - {count: 1, speed: 0.25}
  - {count: 1, speed: 4}
END
works cluster graph place net.json --cluster cluster.yaml --batch 512
[ "$(rank_of cluster h)" = 1 ] || fail "the slow host has work: $(cat cluster.out)"

# Memory: what does not fit is refused with the figures of each rank that lacks it; with enough ranks it fits.
exits 2 'rank 0 needs [0-9]* of 1048576, rank 1 needs [0-9]* of 1048576 bytes' small graph place net.json --ranks 2 --memory 1M
works fits graph place net.json --ranks 2 --memory 4M
awk '/^rank:/ { if ($4 + $5 > $6 || $6 != 4194304) exit 1 }' fits.out || fail "beyond the memory: $(cat fits.out)"
[ "$(rank_of fits w1)" != "$(rank_of fits v1)" ] || fail "both branches on one rank: $(cat fits.out)"
works forward graph place net.json --ranks 1 --forward --optimizer adam --json
grep -q '"variable_bytes": 2162688,' forward.out || fail "a forward pass holds state: $(cat forward.out)"
works adam graph place net.json --ranks 1 --optimizer adam --json
grep -q '"variable_bytes": 6488064,' adam.out || fail "adam has two values of state: $(cat adam.out)"

# Refusals.
sed 's/^"outputs".*/"place": {"nodes": {"h": "rank:0\/gpu:0"}}}/' net.json >gpu.json
exits 2 "there is no device 'gpu:0'; each rank has one, cpu:0" gpu graph place gpu.json --ranks 2
echo '{"nodes": {"hh": "rank:0"}}' >hh.json
exits 2 "hh.json: place: unknown node 'hh'" hh graph place net.json --ranks 2 --place hh.json
exits 2 'are to be apart, but they belong to one unit' unit graph place net.json --ranks 2 --apart w1:h
exits 2 "is placed on rank 1, but there are 1 ranks" one graph place placed.json --ranks 1
exits 2 "there is no rank 2 of 2" forbid graph place net.json --ranks 2 --forbid h:2
exits 2 "NODE:RANK" forbid2 graph place net.json --ranks 2 --forbid h
exits 2 "--together 'h:zzz': unknown node 'zzz'" pair graph place net.json --ranks 2 --together h:zzz
exits 2 'none of auto, chain, heft' method graph place net.json --ranks 2 --place atuo
exits 2 'each micro-batch needs a row' pieces graph place net.json --ranks 2 --batch 2 --micro-batches 3
exits 2 'how many ranks' ranks graph place net.json
exits 2 'did you mean' word graph plaec net.json
exits 2 'keeps no state' rule graph place net.json --ranks 2 --optimizer lbfgs
exits 2 "no node 'zzz'" fetch graph place net.json --ranks 2 --fetch zzz
exits 2 'write over the graph' over graph place net.json --ranks 2 --out net.json

# ONNX: the metadata's key plait.place is read, and the placed graph is written in Plait's form, with its values.
python=$PLAIT_SOURCE_DIR/.venv/bin/python
if "$PLAIT" version --json | grep -q '"onnx": {"found": true' && "$python" -c 'import onnx' 2>/dev/null; then
    works model train --model mlp --layers 8 --data "$data/small/iris.csv" --epochs 1 --normalize none --quiet --out mlp.model
    works export export --model-file mlp.model --format onnx --out mlp.onnx
    works onnx graph place mlp.onnx --ranks 2 --forward --json --out onnx.json
    node=$(sed -n 's/.*"op": "matmul".*/&/p' onnx.json | sed -n '1s/.*"name": "\([^"]*\)".*/\1/p')
    "$python" - "$node" <<'END'
import sys, onnx, json
m = onnx.load("mlp.onnx")
note = m.metadata_props.add()
note.key, note.value = "plait.place", json.dumps({"nodes": {sys.argv[1]: "rank:1/cpu:0"}})
onnx.save(m, "placed.onnx")
note.value = note.value.replace("cpu", "gpu")
onnx.save(m, "gpu.onnx")
END
    works noted graph place placed.onnx --ranks 2 --forward
    [ "$(rank_of noted "$node")" = 1 ] || fail "the metadata's place is not read: $(cat noted.out)"
    [ "$(rank_of onnx "$node")" != 1 ] || fail "without metadata the node is elsewhere: $(cat onnx.out)"
    exits 2 "metadata 'plait.place': place: place 'rank:1/gpu:0': there is no device" onnx-gpu graph place gpu.onnx --ranks 2
    works json-again graph place onnx.json --ranks 2 --forward
fi
# --- training by a placement: whatever the places, the bits of the whole net ---------------------------------------------

digits=$data/digits/digits.csv.gz
hash_of() { field "$1" model_hash; }
same() { [ "$(hash_of "$1")" = "$(hash_of "$2")" ] || fail "$3: $(hash_of "$1"), not $(hash_of "$2")"; }
stages_of() { sed -n 's/^plait: place: \(.*\); a clock takes.*/\1/p' "$1.err"; }
sed -n '/^cat >net.json/,/^END/{/^cat/d;/^END/d;p}' "$(dirname "$0")/stages.sh" >deep.json
set -- --data "$digits" --label -1 --seed 3 --epochs 1 --batch 120 --json --graph deep.json
works whole train "$@"
echo '{"nodes": {"w1": "rank:0", "b1": "rank:0", "w2t": "rank:1", "w3": "rank:2", "scores": "rank:3", "p2": "rank:3"}}' >chain.json
echo '{"nodes": {"w1": "rank:1", "b1": "rank:1", "w2t": "rank:0", "w3": "rank:0", "w4": "rank:1"}}' >back.json
works chain train "$@" --workers 4 --cut 4 --place chain.json --checkpoint kept --checkpoint-every 7
same chain whole "by hand"
[ "$(stages_of chain)" = "stage 0: w1, b1; stage 1: w2t; stage 2: w3; stage 3: w4, b4" ] || fail "by hand: $(stages_of chain)"
works back train "$@" --workers 2 --cut 2 --place back.json
same back whole "stages that read from each other"
works auto train "$@" --workers 2 --cut 2 --place auto
same auto whole "placed by the search"
works resumed train "$@" --workers 3 --cut 3 --place layers --resume kept
same resumed whole "from stages by hand to stages by layers"
# Replicas; micro-batches go forward first where stages are no chain.
works uncut train "$@" --workers 2 --topology ps --micro-batches 3
works replicas train "$@" --workers 4 --cut 2 --topology ps --micro-batches 3 --place back.json
same replicas uncut "replicas by hand"
says replicas.err "pipeline: gpipe, since .* in stage 0 reads .* of stage 1" || fail "gpipe is not told: $(cat replicas.err)"
exits 2 "pipeline 1f1b with these places is refused: stages are no chain, since .* in stage 0 reads .* of stage 1" \
    order train "$@" --workers 2 --cut 2 --place back.json --pipeline 1f1b
# The graph's own places; a cluster's memory; branches on two ranks are faster than one, so auto finds them.
works placed graph place deep.json --ranks 2 --apart w1:w4 --out deep-placed.json
set -- --data "$digits" --label -1 --seed 3 --epochs 1 --batch 120 --json
works own train "$@" --graph deep-placed.json --workers 2 --cut 2
same own whole "the graph's own places"
case $(stages_of own) in *w1*stage\ 1*w4*) ;; *) fail "the graph's places are not taken: $(stages_of own)" ;; esac
works layers train "$@" --graph deep-placed.json --workers 2 --cut 2 --place layers
[ -z "$(stages_of layers)" ] || fail "--place layers takes the graph's places"
echo '{"memory": {"rank:0": 20000, "rank:1": 20000}}' >memory.json
sed 's/64, 16/64, 300/; s/"shape": \[16\]/"shape": [300]/; s/16, 16/300, 300/g; s/16, 10/300, 10/' deep.json >wide.json
exits 2 'rank 0 needs' memory train "$@" --graph wide.json --workers 2 --cut 2 --place memory.json
sed 's/256/64/g; s/ 8\]/ 10]/g' net.json >branches.json
works branches train "$@" --graph branches.json --workers 2 --cut 2 --place auto --batch 1797
[ "$(rank_of two w1)" != "$(rank_of two v1)" ] && case $(stages_of branches) in
*w1*stage\ 1*v1* | *v1*stage\ 1*w1*) ;;
*) fail "auto leaves both branches in one stage: $(stages_of branches)" ;;
esac

# What is wrong, by name.
exits 2 'is placed on rank:3, but --cut 2 has stages 0 to 1; take --cut 4' beyond train "$@" --graph deep.json --workers 2 --cut 2 \
    --place chain.json
echo '{"nodes": {"w9": "rank:1"}}' >node.json
exits 2 "unknown node 'w9'; did you mean 'w" node train "$@" --graph deep.json --workers 2 --cut 2 --place node.json
exits 1 'place nowhere: no such file; expected auto, layers' file train "$@" --graph deep.json --workers 2 --cut 2 --place nowhere
exits 2 'place auto needs stages' uncutplace train "$@" --graph deep.json --place auto
exits 2 "place autom: no such file; did you mean 'auto'" typo train "$@" --graph deep.json --workers 2 --cut 2 --place autom
exits 2 'pipeline interleaved with places is refused' inter train "$@" --graph deep.json --workers 2 --cut 2 --place back.json \
    --pipeline interleaved --micro-batches 2
works interleaved train "$@" --graph deep.json --workers 2 --cut 2 --place auto --pipeline interleaved --micro-batches 4
works halves train "$@" --graph deep.json --workers 2 --cut 2 --place layers --micro-batches 4
same interleaved halves "two parts a rank, placed by the search"
exits 2 "--apart 'w1:w9': unknown node 'w9'; did you mean 'w1'" apart graph place net.json --ranks 2 --apart w1:w9
exits 2 "--forbid 'w9:0': unknown node 'w9'" forbid graph place net.json --ranks 2 --forbid w9:0

# auto is judged in the order that runs: in simulated time no clock is slower than by layers, and what is told of it is right. The
# last host has half the speed, and costs are high, so that stages pay.
printf 'version: 1\nhosts: [{count: 3}, {count: 1, speed: 0.5}]\ncost: {flop: 1ns, tap: 1ns}\n' >uneven.yaml
cat "$0" >text
if ! "$PLAIT" train --data "$data/small/iris.csv" --transport sim --workers 2 --epochs 1 --quiet >sim.out 2>sim.err; then
    grep -qi 'simgrid' sim.err || fail "sim: $(cat sim.err)" # a build without it says what installs it
    finish
fi
clock_of() { awk -v s="$(field "$1" train_seconds)" -v n="$(field "$1" clocks)" 'BEGIN { printf "%.9g", s / n }'; }
# against NAME STAGES OPTIONS...: auto beside layers
against() {
    net=$1 cut=$2
    shift 2
    for how in layers auto; do
        works $net-$how train "$@" --epochs 1 --seed 3 --json --workers $cut --cut $cut --transport sim --cluster uneven.yaml --place $how
    done
    awk -v a="$(clock_of $net-auto)" -v l="$(clock_of $net-layers)" 'BEGIN { exit !(a > 0 && a <= 1.001 * l) }' ||
        fail "$net: a clock takes $(clock_of $net-auto) s by auto, $(clock_of $net-layers) s by layers"
}
against narrow 4 --data "$digits" --label -1 --model mlp --layers 32,32,32,32,32,32,32,32 --batch 599 --micro-batches 8 --pipeline gpipe
told=$(sed -n 's/.*a clock takes \([0-9.]*\) ms by simulation.*/\1/p' narrow-auto.err)
awk -v told="$told" -v clock="$(clock_of narrow-auto)" 'BEGIN { d = told / 1000 / clock; exit !(d > 0.95 && d < 1.05) }' ||
    fail "a clock takes $(clock_of narrow-auto) s; told: $told ms"
against branches 3 --data "$digits" --label -1 --graph deep.json --batch 599 --micro-batches 4
against cnn 4 --data "$digits" --label -1 --model cnn --layers 4,6,8 --batch 599 --micro-batches 4
against lstm 4 --data text --format text --window 32 --model lstm --layers 12,8,8 --batch 64 --micro-batches 4
finish
