#!/bin/sh
# plait train --cut K: a net in stages over ranks has the bits of the whole net, on every transport; replicas of it reach
# the accuracy of uncut workers; what does not go with it is refused; a rank that dies is named.
# usage: stages.sh SIM MPIRUN   (yes or no; the mpirun, or no)
. "$(dirname "$0")/common.sh"
sim=$1 mpirun=$2
digits=$data/digits/digits.csv.gz
hash_of() { sed -n 's/.*"model_hash": "\([0-9a-f]*\)".*/\1/p' "$1.out"; }
same() { # same NAME...: their models have equal bits
    first=$1
    [ -n "$(hash_of "$first")" ] || fail "$first has no model"
    for other in "$@"; do
        [ "$(hash_of "$first")" = "$(hash_of "$other")" ] || fail "$first and $other have different models"
    done
}

# The same bits, and the same file.
set -- --data "$digits" --label -1 --epochs 2 --seed 3 --quiet --json
works whole train "$@" --model mlp --layers 32,16,12 --out whole.model
works two train "$@" --model mlp --layers 32,16,12 --workers 2 --cut 2 --out two.model
works four train "$@" --model mlp --layers 32,16,12 --workers 4 --cut 4 --topology ps
same whole two four
cmp -s whole.model two.model || fail "a cut net leaves another file"
# Two replicas have the bits of two whole nets, wherever a run repeats: no update is lost, doubled or late by a clock.
for pair in "allreduce bsp" "allreduce bounded-delay:3" "allreduce local-sgd:5" "ps sequential" "ps local-sgd:4" \
    "gossip:ring bsp" "local bsp"; do
    together="--topology ${pair% *} --consistency ${pair#* } --batch 90 --optimizer adagrad"
    works apart train "$@" --model mlp --layers 16,12 $together --workers 2
    works staged train "$@" --model mlp --layers 16,12 $together --workers 4 --cut 2
    same apart staged
done
works predict predict --model-file two.model --data "$digits" --label -1
[ "$(wc -l <predict.out)" = 1797 ] || fail "predict: not a line a row"
works cnn train "$@" --model cnn --layers 4,6,8 --epochs 1
works cnn4 train "$@" --model cnn --layers 4,6,8 --epochs 1 --workers 4 --cut 4
same cnn cnn4
cat "$0" "$0" >text
works lstm train --data text --format text --window 32 --model lstm --layers 12,8 --batch 8 --epochs 1 --seed 3 --quiet --json
works lstm4 train --data text --format text --window 32 --model lstm --layers 12,8 --batch 8 --epochs 1 --seed 3 --quiet --json \
    --workers 4 --cut 4 --topology allreduce
same lstm lstm4

# A graph with branches, a transposed weight and dropout; its variables stand before x.
cat >net.json <<'END'
{"plait_graph": 1, "nodes": [
{"name": "w1", "op": "variable", "shape": [64, 16], "initial": "he"}, {"name": "b1", "op": "variable", "shape": [16]},
{"name": "w2t", "op": "variable", "shape": [16, 16], "initial": "glorot"},
{"name": "w3", "op": "variable", "shape": [16, 16], "initial": "glorot"},
{"name": "w4", "op": "variable", "shape": [16, 10], "initial": "glorot"}, {"name": "b4", "op": "variable", "shape": [10]},
{"name": "w2", "op": "transpose", "inputs": ["w2t"], "attrs": {"perm": [1, 0]}},
{"name": "x", "op": "placeholder", "shape": [null, 64]},
{"name": "p1", "op": "matmul", "inputs": ["x", "w1"]}, {"name": "s1", "op": "add", "inputs": ["p1", "b1"]},
{"name": "h", "op": "relu", "inputs": ["s1"]},
{"name": "q", "op": "matmul", "inputs": ["h", "w2"]}, {"name": "k", "op": "matmul", "inputs": ["h", "w3"]},
{"name": "qt", "op": "tanh", "inputs": ["q"]}, {"name": "m", "op": "mul", "inputs": ["qt", "k"]},
{"name": "r", "op": "add", "inputs": ["m", "h"]}, {"name": "d", "op": "dropout", "inputs": ["r"], "attrs": {"rate": 0.1}},
{"name": "p2", "op": "matmul", "inputs": ["d", "w4"]}, {"name": "scores", "op": "add", "inputs": ["p2", "b4"]}]}
END
works graph train "$@" --graph net.json
works graph2 train "$@" --graph net.json --workers 2 --cut 2
works graph3 train "$@" --graph net.json --workers 3 --cut 3 --pipeline gpipe
same graph graph2 graph3
exits 2 'a net of 3 layers \(w1, w2t, w3, w4\) in 4 stages is refused' many train "$@" --graph net.json --workers 4 --cut 4
if "$PLAIT" version --json | grep -q '"onnx": {"found": true'; then
    works cnnfile train "$@" --model cnn --layers 4,6,8 --epochs 1 --out cnn.model
    works export export --model-file cnn.model --format onnx --out cnn.onnx
    works onnx train "$@" --graph cnn.onnx
    works onnx4 train "$@" --graph cnn.onnx --workers 4 --cut 4
    same onnx onnx4
fi

# 2 x 2, with micro-batches: as accurate as two workers that have the whole net.
set -- --data "$digits" --label -1 --validation 0.2 --epochs 8 --seed 3 --quiet --json --model mlp --layers 48,32,16
works uncut train "$@" --workers 2 --topology ps
works both train "$@" --workers 4 --topology ps --cut 2 --micro-batches 4
loss() { sed -n 's/.*"validation_loss": \([0-9.e-]*\),.*/\1/p' "$1.out"; }
near() { awk -v a="$(loss "$1")" -v b="$(loss "$2")" 'BEGIN { exit !(a > 0 && a < 1.01 * b && a > 0.99 * b) }'; }
near both uncut || fail "validation loss $(loss both) in stages, $(loss uncut) whole"
works tied train "$@" --workers 4 --topology ps --cut 2 --micro-batches 4 --pipeline interleaved
same both tied
if [ "$sim" = yes ]; then
    # A trace has the schedule: each micro-batch of each clock goes through each part forward and backward.
    works traced train --data "$digits" --label -1 --epochs 1 --quiet --model mlp --layers 48,32,16 --workers 2 --cut 2 \
        --micro-batches 4 --batch 300 --transport sim --trace t.json
    clocks=$(grep -o '"name": "clock", "ph": "X", "pid": 0' t.json | wc -l)
    for piece in forward backward; do
        for part in 0 1; do
            n=$(grep -o "\"name\": \"$piece in part $part\", \"ph\": \"X\", \"pid\": $part" t.json | wc -l)
            [ "$clocks" -gt 0 ] && [ "$n" -eq $((4 * clocks)) ] || fail "$n times $piece in part $part of $clocks clocks"
        done
    done
    says t.json 'bubble in part 1' || fail "the trace has no bubble"
    says t.json '"micro_batch": 3' || fail "the trace does not count micro-batches"
    works sim train "$@" --workers 4 --topology ps --cut 2 --micro-batches 4 --transport sim
    same both sim
fi
if [ "$mpirun" != no ]; then
    PLAIT_MPIRUN=$mpirun
    export PLAIT_MPIRUN
    works mpi launch -n 4 -- "$PLAIT" train "$@" --topology ps --cut 2 --micro-batches 4
    same both mpi
fi

# The audit proves what each pair promises, group by group.
for pair in "ps bsp" "allreduce bsp" "ps ssp:2" "ps essp:1" "local async" "gossip:ring bsp"; do
    rm -f ev
    works logged train --data "$digits" --label -1 --epochs 1 --quiet --model mlp --layers 24,16,12 --workers 4 --cut 2 \
        --micro-batches 2 --topology "${pair% *}" --consistency "${pair#* }" --events ev
    works audited audit ev
    says audited.out '^proven' || fail "$pair: $(tail -n 3 audited.out)"
done

# Subgraphs are chosen as in a whole net: the others keep their values.
sed 's/^{"plait_graph": 1, /&"subgraphs": {"body": ["p1", "s1", "h"], "head": ["p2", "scores"]}, /' net.json >parts.json
works head train --data "$digits" --label -1 --epochs 1 --seed 3 --quiet --json --graph parts.json --train head
works head2 train --data "$digits" --label -1 --epochs 1 --seed 3 --quiet --json --graph parts.json --train head --workers 2 --cut 2
same head head2
works nothead train --data "$digits" --label -1 --epochs 1 --seed 3 --quiet --json --graph parts.json --workers 2 --cut 2
[ "$(hash_of head)" != "$(hash_of nothead)" ] || fail "--train changes nothing"

# Layers in columns: the same net but for rounding, on every transport, and its file is one of a whole net.
set -- --data "$digits" --label -1 --validation 0.2 --epochs 4 --seed 3 --quiet --json --model mlp --layers 48,32,16
works rows train "$@"
works columns train "$@" --workers 2 --columns 2 --topology ps --out columns.model
near columns rows || fail "validation loss $(loss columns) in columns, $(loss rows) whole"
works predict2 predict --model-file columns.model --data "$digits" --label -1
[ "$(wc -l <predict2.out)" = 1797 ] || fail "predict: not a line a row"
if [ "$sim" = yes ]; then
    works columnsim train "$@" --workers 2 --columns 2 --topology ps --transport sim
    same columns columnsim
fi
if [ "$mpirun" != no ]; then
    works columnsmpi launch -n 2 -- "$PLAIT" train "$@" --columns 2 --topology ps
    same columns columnsmpi
fi
exits 2 'columns with model lstm is refused' columnslstm train --data "$digits" --label -1 --model lstm --workers 2 --columns 2
exits 2 'a net is cut in one way' twoways train "$@" --workers 2 --columns 2 --cut 2

# A softmax of more classes than the last hidden layer has units: its classes lie over ranks, and no rank gathers the net. It
# predicts what the whole net does, and goes on from a checkpoint in any layout.
awk 'BEGIN { srand(5); for (i = 0; i < 300; i++) { c = i % 30; printf "%d", 2 * c
    for (j = 0; j < 5; j++) printf ",%.3f", int(c / 2 ^ j) % 2 + rand() / 4
    print "" } }' >many.csv
set -- --data many.csv --header no --label 1 --epochs 4 --seed 3 --json --model mlp --layers 9 --classes 100 --test many.csv
works soft train "$@" --out soft.model
says soft.err '100 classes' || fail "declared classes are not told: $(cat soft.err)"
for n in 2 4; do
    works soft$n train "$@" --workers $n --columns $n --topology ps --out soft$n.model --checkpoint soft$n.kept --checkpoint-every 23
    for key in train_loss test_loss; do
        awk -v a="$(field soft $key)" -v b="$(field soft$n $key)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-10 * a * a) }' ||
            fail "$key of a softmax over $n ranks: $(field soft$n $key), whole $(field soft $key)"
    done
    works answers predict --model-file soft.model --data many.csv --header no --label 1
    works answers$n predict --model-file soft$n.model --data many.csv --header no --label 1
    cmp -s answers.out answers$n.out || fail "a softmax over $n ranks predicts otherwise"
    [ "$(wc -c <soft.model)" = "$(wc -c <soft$n.model)" ] || fail "a softmax over $n ranks leaves a file of another form"
    "$PLAIT" checkpoint list soft$n.kept >list.out 2>&1 || fail "$(cat list.out)"
done
works logged train "$@" --workers 4 --columns 4 --topology ps --events soft.events --quiet
works audited audit soft.events
says audited.out '^proven' || fail "a softmax over ranks: $(tail -n 3 audited.out)"
works softon train "$@" --workers 4 --columns 4 --topology ps --resume soft2.kept
works softwhole train "$@" --resume soft4.kept
for run in softon softwhole; do
    awk -v a="$(field soft train_loss)" -v b="$(field $run train_loss)" 'BEGIN { exit !((a - b) ^ 2 < 1e-8 * a * a) }' ||
        fail "$run ends at $(field $run train_loss), not at $(field soft train_loss)"
done
if [ "$mpirun" != no ]; then
    works softmpi launch -n 4 -- "$PLAIT" train "$@" --columns 4 --topology ps --out softmpi.model --quiet
    same soft4 softmpi
    cmp -s soft4.model softmpi.model || fail "processes leave another model than threads"
fi
exits 1 '20 classes are declared, 0 to 19, but a row has label' few train "$@" --classes 20
exits 2 'classes 100 with loss squared' numbers train "$@" --loss squared
exits 2 'classes 5 with model gbdt is refused' trees train --data many.csv --header no --label 1 --model gbdt --classes 5
exits 1 'not all whole numbers' reals train --data many.csv --header no --label 2 --model mlp --classes 5
# As many as a million: labels are counted, not listed.
works wide train --data many.csv --header no --label 1 --model mlp --layers 2 --classes 100000 --epochs 1 --batch 150 --optimizer sgd \
    --workers 2 --columns 2 --quiet --out wide.model
[ "$(head -c 4000 wide.model | grep -a -c label_count)" = 1 ] || fail "a list of 100,000 labels in a model"
works wideanswers predict --model-file wide.model --data many.csv --header no --label 1
[ "$(wc -l <wideanswers.out)" = 300 ] || fail "predict: not a line a row"

# Streamed rows lie on the first stage as well.
set -- --data - --label -1 --epochs 1 --seed 3 --quiet --json --model mlp --layers 16
gzip -dc "$digits" | "$PLAIT" train "$@" >stream1.out 2>stream1.err || fail "a stream: $(cat stream1.err)"
gzip -dc "$digits" | "$PLAIT" train "$@" --workers 2 --cut 2 >stream2.out 2>stream2.err || fail "a cut stream: $(cat stream2.err)"
same stream1 stream2

# What does not go together, by name.
set -- --data "$digits" --label -1 --quiet --model mlp --layers 16
exits 2 'cut 2 over 3 workers' odd train "$@" --cut 2 --workers 3
exits 2 'cut 2 with 1 spare: a replica.*take --spares 2' spare train "$@" --cut 2 --workers 5 --spares 1 --replicas 2 --topology ps
exits 2 'a net of 2 layers \(w1, w2\) in 3 stages is refused' layers train "$@" --cut 3 --workers 3
exits 2 'pipeline wants one of' word train "$@" --cut 2 --workers 2 --pipeline gpip
exits 2 'pipeline gpipe needs stages' alone train "$@" --pipeline gpipe
exits 2 'cut with model logistic is refused' linear train --data "$digits" --label -1 --model logistic --cut 2 --workers 2
exits 2 'stage 0 with --servers 1 is refused' servers train "$@" --cut 2 --workers 2 --servers 1 --topology ps
exits 2 'stage 0 with backup workers is refused' backup train "$@" --cut 2 --workers 4 --backup 1 --topology ps
exits 2 'cut with lbfgs is refused' lbfgs train "$@" --cut 2 --workers 2 --optimizer lbfgs

# A stage that dies is named, and nobody waits for it.
if [ "$mpirun" != no ]; then
    "$PLAIT" launch -n 4 -- "$PLAIT" train "$@" --cut 2 --micro-batches 2 --epochs 1000000 --metrics m >out 2>err &
    pid=$!
    trains() { gone $pid || says m '"epoch": 2[,}]'; }
    until_holds 300 trains || fail "no epoch ends"
    kill -KILL "$(sed -n 's/.*"rank": 3, .*"pid": \([0-9]*\).*/\1/p' m | head -n 1)"
    until_holds 120 gone $pid || { fail "the run does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq 3 ] || fail "exit $code after a death: $(cat err)"
    says err 'rank 3' || fail "the dead rank is not named: $(cat err)"
fi
finish
