#!/bin/sh
# --balance dynamic: the model of static under bsp, every row once an epoch, shares that follow the speed of simulated
# hosts, and what is refused.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 4000 >train.svm
options="train --data train.svm --batch 200 --epochs 4 --workers 4"

# shares FILE EPOCH: the rows of an epoch, separated by spaces
shares() { sed -n "s/.*\"shares\", \"epoch\": $2, \"rows\": \[\(.*\)\].*/\1/p" "$1" | tr -d ,; }
all_rows() { # all_rows FILE EPOCHS ROWS
    [ "$(grep -c '"event": "shares"' "$1")" -eq "$2" ] || fail "$1: not one line of shares an epoch"
    for epoch in $(seq "$2"); do
        # shellcheck disable=SC2046
        set -- "$1" "$2" "$3" $(shares "$1" "$epoch")
        sum=$(($4 + $5 + $6 + $7))
        [ $sum -eq "$3" ] || fail "$1: $sum rows in epoch $epoch"
        set -- "$1" "$2" "$3"
    done
}

for topology in local allreduce ps; do
    # shellcheck disable=SC2086
    works static $options --topology $topology --out static.model --quiet
    # shellcheck disable=SC2086
    works dynamic $options --topology $topology --out dynamic.model --balance dynamic --metrics $topology.metrics --quiet
    same static.model dynamic.model 1e-5
    all_rows $topology.metrics 4 4000
    tail -n 1 $topology.metrics | grep -q '"event": "end"' || fail "the end does not come last"
done
# shellcheck disable=SC2086
works ssp $options --topology ps --consistency ssp:2 --balance dynamic --metrics ssp.metrics --quiet
all_rows ssp.metrics 4 4000
# With backup workers a late one computes nothing of a clock: no row twice, and few not at all.
# shellcheck disable=SC2086
works backup $options --topology ps --balance dynamic --backup 1 --metrics backup.metrics --json --quiet
for epoch in 1 2 3 4; do
    # shellcheck disable=SC2046
    set -- $(shares backup.metrics $epoch)
    sum=$(($1 + $2 + $3 + $4))
    [ $sum -le 4000 ] && [ $sum -ge 2000 ] || fail "$sum rows of 4000 in epoch $epoch with a backup worker"
done
# shellcheck disable=SC2086
works none $options --metrics none.metrics --quiet
grep -q shares none.metrics && fail "a static run tells shares"

mkdir folder && cp train.svm folder
exits 2 'single streamed pass is refused.*--epochs 2' stream train --data folder --epochs 1 --workers 2 --balance dynamic
exits 2 '33 workers is refused.*64 blocks.*--workers 32' many train --data train.svm --workers 33 --balance dynamic
exits 2 "dynamik.*dynamic" unknown train --data train.svm --balance dynamik
code=0
"$PLAIT" train --data - --epochs 2 --workers 2 --balance dynamic <train.svm 2>pipe.err || code=$?
[ $code -eq 2 ] || fail "exit $code of a balanced pipe"
grep -q 'from a pipe is refused' pipe.err || fail "a balanced pipe: $(cat pipe.err)"

# The slow host is the last: of 13 quarters of a host's speed it has one.
printf 'version: 1\nhosts: [{count: 3}, {count: 1, speed: 0.25}]\ncost: {entry: 2us}\n' >slow.yaml
if ! "$PLAIT" train --data part --transport sim --workers 2 --epochs 1 --quiet >sim.out 2>sim.err; then
    grep -qi 'simgrid' sim.err || fail "sim: $(cat sim.err)" # a build without it says what installs it
    finish
fi
for balance in static dynamic again; do
    # shellcheck disable=SC2086
    works sim-$balance $options --transport sim --cluster slow.yaml --metrics $balance.sim --json --quiet \
        --balance ${balance%again}$([ $balance = again ] && echo dynamic)
done
all_rows dynamic.sim 4 4000
# shellcheck disable=SC2046
set -- $(shares dynamic.sim 4)
[ "$4" -gt 150 ] && [ "$4" -lt 460 ] || fail "a host of a quarter of the speed has computed $* rows, 308 are fair"
for rows in "$1" "$2" "$3"; do [ "$rows" -gt 1000 ] || fail "a fast host has computed $rows rows of $*"; done
for key in trace_hash model_hash; do
    [ "$(field sim-dynamic $key)" = "$(field sim-again $key)" ] || fail "$key of a simulated run does not repeat"
done
awk -v a="$(field sim-static virtual_seconds)" -v b="$(field sim-dynamic virtual_seconds)" 'BEGIN { exit !(b < 0.7 * a) }' ||
    fail "static took $(field sim-static virtual_seconds) simulated seconds, dynamic $(field sim-dynamic virtual_seconds)"

# A net waits for the others' gradients while it computes; that is no work of its own. One of four hosts has half the speed.
printf 'version: 1\nhosts: [{count: 3}, {count: 1, speed: 0.5}]\ncost: {flop: 1ns}\n' >half.yaml
printf 'version: 1\nhosts: [{count: 4}]\ncost: {flop: 1ns}\n' >even.yaml
gzip -dc "$data/digits/digits.csv.gz" >digits.csv
# So it is with two copies of each shard, by servers and by sums, where each worker has a copy of the lease book.
for copies in "1 ps" "2 ps" "2 allreduce"; do
    for run in even.static half.static half.dynamic; do
        works net-$run train --model mlp --layers 64,64 --data digits.csv --label -1 --batch 128 --epochs 10 --workers 4 \
            --transport sim --cluster ${run%.*}.yaml --balance ${run#*.} --replicas "${copies% *}" --topology "${copies#* }" --json --quiet
    done
    awk -v even="$(field net-even.static virtual_seconds)" -v a="$(field net-half.static virtual_seconds)" \
        -v b="$(field net-half.dynamic virtual_seconds)" -v least="$([ "${copies% *}" = 1 ] && echo 1.6 || echo 1.55)" \
        'BEGIN { ideal = even * 4 / 3.5; exit !(b < 1.15 * ideal && a > least * ideal) }' ||
        fail "a net over hosts of speed 1, 1, 1, 1/2, $copies: static $(field net-half.static virtual_seconds) simulated seconds, dynamic $(field net-half.dynamic virtual_seconds), alike $(field net-even.static virtual_seconds)"
done

# Two replicas of a net in two stages: the last rank, stage 1 of the second replica, is slow. That replica gets fewer rows, and
# every row is computed once an epoch.
for run in even.static half.static half.dynamic; do
    works cut-$run train --model mlp --layers 64,64,64 --data digits.csv --label -1 --batch 128 --epochs 10 --workers 4 --cut 2 \
        --micro-batches 8 --transport sim --cluster ${run%.*}.yaml --balance ${run#*.} --metrics cut.$run --json --quiet --out cut.$run.model
done
same cut.half.static.model cut.half.dynamic.model 1e-5
for epoch in $(seq 10); do
    # shellcheck disable=SC2046
    set -- $(shares cut.half.dynamic $epoch)
    [ $# -eq 2 ] && [ $(($1 + $2)) -eq 1797 ] || fail "epoch $epoch of a balanced cut net has rows $*"
done
[ "$2" -lt 800 ] || fail "the replica with a slow stage has computed $2 rows of 1797"
awk -v even="$(field cut-even.static virtual_seconds)" -v a="$(field cut-half.static virtual_seconds)" \
    -v b="$(field cut-half.dynamic virtual_seconds)" 'BEGIN { ideal = even * 2 / (1 + even / a); exit !(b < 1.15 * ideal && b < 0.9 * a) }' ||
    fail "two replicas in two stages: static $(field cut-half.static virtual_seconds), dynamic $(field cut-half.dynamic virtual_seconds), alike $(field cut-even.static virtual_seconds) simulated seconds"

# One net in four stages, of which the second lies on a host of half the speed: --place auto gives it fewer layers.
printf 'version: 1\nhosts: [{count: 1}, {count: 1, speed: 0.5}, {count: 2}]\ncost: {flop: 1ns}\n' >second.yaml
layers=64,64,64,64,64,64,64,64,64,64,64,64,64,64,64
for run in even.layers second.layers second.auto; do
    works stages-$run train --model mlp --layers $layers --data digits.csv --label -1 --batch 512 --epochs 2 --workers 4 --cut 4 \
        --micro-batches 32 --transport sim --cluster ${run%.*}.yaml --place ${run#*.} --json
done
grep -q 'stage 1: w6, b6, w7, b7; stage 2' stages-second.auto.err || fail "stage 1 has not half the layers: $(cat stages-second.auto.err)"
[ "$(field stages-even.layers model_hash)" = "$(field stages-second.auto model_hash)" ] || fail "places change what is learnt"
awk -v even="$(field stages-even.layers virtual_seconds)" -v a="$(field stages-second.layers virtual_seconds)" \
    -v b="$(field stages-second.auto virtual_seconds)" 'BEGIN { ideal = even * 4 / 3.5; exit !(b < 1.15 * ideal && a > 1.6 * ideal) }' ||
    fail "stages on hosts of speed 1, 1/2, 1, 1: by layers $(field stages-second.layers virtual_seconds), auto $(field stages-second.auto virtual_seconds), alike $(field stages-even.layers virtual_seconds) simulated seconds"

# Nobody names its speed: the run measures it, and layers move after two windows of eight clocks. An epoch after that takes what
# these speeds allow; an epoch of equal shares takes far more.
for run in even.static second.static second.dynamic; do
    works half-$run train --model mlp --layers $layers --data digits.csv --label -1 --batch 256 --epochs 4 --workers 4 --cut 4 \
        --micro-batches 32 --transport sim --cluster ${run%.*}.yaml --balance ${run#*.} --metrics half.$run --json
    sed -n 's/.*"event": "epoch".*"seconds": \([0-9.]*\).*/\1/p' half.$run | awk '{ took = $1 - last; last = $1 } END { print took }' >took.$run
done
[ "$(field half-even.static model_hash)" = "$(field half-second.dynamic model_hash)" ] || fail "layers that move change what is learnt"
awk -v even="$(cat took.even.static)" -v a="$(cat took.second.static)" -v b="$(cat took.second.dynamic)" \
    'BEGIN { ideal = even * 4 / 3.5; exit !(b < 1.15 * ideal && a > 1.6 * ideal) }' ||
    fail "the fourth epoch on hosts of speed 1, 1/2, 1, 1: static $(cat took.second.static), dynamic $(cat took.second.dynamic), alike $(cat took.even.static) simulated seconds"

# The second host slows down in the middle of a run. The run tells each epoch's times by stage, and which places would suit. Resumed
# with these it is faster, and learns the same bits.
printf 'version: 1\nhosts: [{count: 4}]\ncost: {flop: 1ns}\nevents:\n  - slow: {ranks: 1, factor: 2, from: 0.1s}\n' >middle.yaml
printf 'version: 1\nhosts: [{count: 4}]\ncost: {flop: 1ns}\nevents:\n  - slow: {ranks: 1, factor: 2}\n' >slowed.yaml
set -- train --model mlp --layers 32,32,32,32,32,32,32 --data digits.csv --label -1 --batch 256 --epochs 7 --workers 4 --cut 4 \
    --micro-batches 16 --transport sim --json
works middle "$@" --cluster middle.yaml --metrics middle.metrics --checkpoint kept --checkpoint-every 30
says middle.err 'rank 1: warning: stage 1 has become 2 times as slow as in its fastest epoch.*stage 1: w3, b3; stage 2: w4' ||
    fail "the slow stage is not told: $(cat middle.err)"
sed -n 's/.*"stages", "epoch": [0-9]*, "seconds": \[\(.*\)\].*/\1/p' middle.metrics | tr -d , >seconds
awk '{ b[NR] = $2; c[NR] = $3 } END { exit !(NR == 7 && b[7] > 1.9 * b[1] && b[7] < 2.1 * b[1] && c[7] < 1.01 * c[1]) }' seconds ||
    fail "times of stages: $(cat seconds)"
echo '{"nodes": {"w1": "rank:0", "w2": "rank:0", "w3": "rank:1", "w4": "rank:2", "w5": "rank:2", "w6": "rank:3", "w7": "rank:3", "w8": "rank:3"}}' >suits.json
for how in layers suits.json; do
    works resumed-${how%.json} "$@" --cluster slowed.yaml --place $how --resume kept
done
[ "$(field resumed-layers model_hash)" = "$(field resumed-suits model_hash)" ] || fail "other places learn other bits"
awk -v a="$(field resumed-layers virtual_seconds)" -v b="$(field resumed-suits virtual_seconds)" 'BEGIN { exit !(b < 0.75 * a) }' ||
    fail "from the checkpoint: $(field resumed-layers virtual_seconds) s by layers, $(field resumed-suits virtual_seconds) s by the places told"
# --balance dynamic moves the layers within the run, with the rule's state: the same bits, faster, also where it writes checkpoints.
works moved "$@" --cluster middle.yaml --balance dynamic --checkpoint moved --checkpoint-every 9
says moved.err 'after clock 40 layers move.*stage 1: w3, b3; stage 2: w4' || fail "layers do not move: $(cat moved.err)"
says moved.err 'stage 1 has become' && fail "a run that moves its layers warns that they stay"
works moved-on "$@" --cluster slowed.yaml --resume moved
for run in moved moved-on; do
    [ "$(field middle model_hash)" = "$(field $run model_hash)" ] || fail "layers that move change what is learnt: $run"
done

# Of 16 layers on four hosts the second becomes slow after the first epoch: an epoch after the move takes 4 / 3.5 of the first.
printf 'version: 1\nhosts: [{count: 4}]\ncost: {flop: 1ns}\nevents:\n  - slow: {ranks: 1, factor: 2, from: 0.21s}\n' >later.yaml
set -- train --model mlp --layers $layers --data digits.csv --label -1 --batch 256 --epochs 4 --workers 4 --cut 4 --micro-batches 32 \
    --transport sim --json
for balance in static dynamic; do
    works later-$balance "$@" --cluster later.yaml --balance $balance --metrics later.$balance
    says later.$balance '"event": "epoch".*"loss": null' && fail "an epoch has no loss: $(grep epoch later.$balance)"
    sed -n 's/.*"event": "epoch".*"seconds": \([0-9.]*\).*/\1/p' later.$balance >ends
    awk -v balance=$balance 'NR == 1 { ideal = $1 * 4 / 3.5 } NR == 4 { took = ($1 - last) / ideal } { last = $1 }
        END { exit !(NR == 4 && (balance == "static" ? took > 1.6 : took < 1.15)) }' ends ||
        fail "four epochs of 16 layers, $balance, the second host slow from the second on, end at $(cat ends)"
done
[ "$(field later-static model_hash)" = "$(field later-dynamic model_hash)" ] || fail "layers that move change what is learnt"
# The same where a rank has two runs of layers.
works later-two "$@" --cluster later.yaml --balance dynamic --pipeline interleaved --metrics later.two --events two.events
says later-two.err 'stage 1: w4, b4; .*stage 5: w11, b11; ' || fail "two runs of layers a rank do not move: $(cat later-two.err)"
sed -n 's/.*"event": "epoch".*"seconds": \([0-9.]*\).*/\1/p' later.two >ends
awk 'NR == 1 { ideal = $1 * 4 / 3.5 } NR == 4 { took = ($1 - last) / ideal } { last = $1 } END { exit !(NR == 4 && took < 1.15) }' ends ||
    fail "four epochs of 16 layers, interleaved, the second host slow from the second on, end at $(cat ends)"
[ "$(field later-static model_hash)" = "$(field later-two model_hash)" ] || fail "two runs of layers that move change what is learnt"
works audit-two audit two.events

# Two replicas whose second stages become slow: rows cannot help, layers do.
printf 'version: 1\nhosts: [{count: 8}]\ncost: {flop: 1ns}\nevents:\n  - slow: {ranks: 2-3, factor: 2}\n' >both.yaml
set -- train --model mlp --layers 32,32,32,32,32,32,32 --data digits.csv --label -1 --batch 256 --epochs 4 --workers 8 --cut 4 \
    --micro-batches 8 --transport sim --json --topology allreduce
for balance in static dynamic; do works both-$balance "$@" --cluster both.yaml --balance $balance --events both.events; done
works audit-both audit both.events
says both-dynamic.err 'layers move' || fail "layers of two replicas do not move: $(cat both-dynamic.err)"
[ "$(field both-static model_hash)" = "$(field both-dynamic model_hash)" ] || fail "layers of two replicas that move change what is learnt"
# They take the slices of their rule's state along.
works both-sharded "$@" --cluster both.yaml --balance dynamic --optimizer-state sharded
says both-sharded.err 'layers move' || fail "layers with slices of state do not move: $(cat both-sharded.err)"
[ "$(field both-static model_hash)" = "$(field both-sharded model_hash)" ] || fail "slices of state change when layers move"

set -- train --model mlp --layers 32,32,32 --data digits.csv --label -1 --workers 2 --balance dynamic
echo '{"nodes": {"w2": "rank:1"}}' >hand.json
refused='balance dynamic with one replica in 2 parts is refused'
exits 2 "$refused.*nearest is --place auto" hand "$@" --cut 2 --place hand.json
finish
