#!/bin/sh
# --balance dynamic with --columns: a slow rank has fewer columns, from the start where its speed is known, and after some
# clocks where it becomes slow. Weights are those of columns that stay, but for rounding.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/digits/digits.csv.gz" >digits.csv
printf 'version: 1\nhosts: [{count: 4}]\ncost: {flop: 1ns}\n' >even.yaml
printf 'version: 1\nhosts: [{count: 1}, {count: 1, speed: 0.5}, {count: 2}]\ncost: {flop: 1ns}\n' >half.yaml
printf 'version: 1\nhosts: [{count: 4}]\ncost: {flop: 1ns}\nevents:\n  - slow: {ranks: 1, factor: 2, from: 0.2s}\n' >later.yaml
printf 'version: 1\nhosts: [{count: 8}]\ncost: {flop: 1ns}\nevents:\n  - slow: {ranks: 2-3, factor: 2, from: 0.2s}\n' >both.yaml
printf 'version: 1\nhosts: [{count: 4}]\ncost: {flop: 1ns}\nevents:\n  - slow: {ranks: 1, factor: 2, from: 0.01s}\n' >soon.yaml

if ! "$PLAIT" train --data part --transport sim --workers 2 --epochs 1 --quiet >sim.out 2>sim.err; then
    grep -qi 'simgrid' sim.err || fail "sim: $(cat sim.err)" # a build without it says what installs it
    finish
fi

moves='columns move to ranks that suit the measured speeds'
# alike NAME words...: runs both ways; columns must move, and the weights be those of columns that stay
alike() {
    pair=$1
    shift
    works $pair.static train "$@" --balance static --out $pair.static.model --json
    works $pair.dynamic train "$@" --balance dynamic --out $pair.dynamic.model --json
    says $pair.dynamic.err "$moves" || fail "$pair: columns do not move: $(cat $pair.dynamic.err)"
    same $pair.static.model $pair.dynamic.model 1e-5
}

# The second of four hosts has half the speed, as the cluster file says.
set -- train --model mlp --layers 256,256,256 --data digits.csv --label -1 --batch 256 --epochs 3 --workers 4 --columns 4 \
    --transport sim --optimizer sgd --json
for run in even.static half.static half.dynamic; do
    works start-$run "$@" --cluster ${run%.*}.yaml --balance ${run#*.} --out start-$run.model
done
same start-even.static.model start-half.dynamic.model 1e-5
says start-half.dynamic.err 'columns lie by speeds known beforehand: stage 0: 28.*stage 1: 14' ||
    fail "the slow host has not half of a share: $(cat start-half.dynamic.err)"
awk -v even="$(field start-even.static virtual_seconds)" -v a="$(field start-half.static virtual_seconds)" \
    -v b="$(field start-half.dynamic virtual_seconds)" 'BEGIN { ideal = even * 4 / 3.5; exit !(b < 1.05 * ideal && a > 1.4 * ideal) }' ||
    fail "columns on hosts of speed 1, 1/2, 1, 1: static $(field start-half.static virtual_seconds), dynamic $(field start-half.dynamic virtual_seconds), alike $(field start-even.static virtual_seconds) simulated seconds"

# It becomes slow in the run. Its columns move with the rule's state, by messages and by copies.
set -- --model mlp --layers 128,128,128 --data digits.csv --label -1 --batch 256 --epochs 6 --workers 4 --columns 4 --transport sim
for topology in ps allreduce; do
    alike later-$topology "$@" --cluster later.yaml --topology $topology --metrics later.metrics --events later.events
    works later-audit audit later.events
done
sed -n 's/.*"event": "epoch".*"seconds": \([0-9.]*\).*/\1/p' later.metrics >ends
awk 'NR == 1 { ideal = $1 * 4 / 3.5 } NR == 6 { took = ($1 - last) / ideal } { last = $1 } END { exit !(NR == 6 && took < 1.15) }' ends ||
    fail "six epochs in columns, the second host slow from the second on, end at $(cat ends)"
alike later-ssp "$@" --cluster later.yaml --topology ps --consistency ssp:2
# The run writes checkpoints meanwhile, and goes on from one in the shares of its beginning.
works kept train "$@" --cluster later.yaml --balance dynamic --checkpoint kept --checkpoint-every 5 --out kept.model
same later-ps.static.model kept.model 1e-5
rm -r "$(find kept -name 'checkpoint-*' | sort | tail -n 1)"
works resumed train "$@" --cluster even.yaml --balance dynamic --resume kept --out resumed.model
same kept.model resumed.model 1e-5
works best train "$@" --cluster later.yaml --balance dynamic --validation 0.2 --patience 3
says best.err "$moves" || fail "columns do not move with --validation: $(cat best.err)"

# A softmax by classes, whose hidden layer is one of a pair, or alone; and rows by key, which pay penalties late.
awk 'BEGIN { for (i = 0; i < 400; i++) printf "%d,%d,%d\n", i % 50, i % 7, i % 50 }' >many.csv
set -- --model mlp --classes 2000 --data many.csv --header no --label 1 --epochs 8 --batch 50 --workers 4 --columns 4 --transport sim
for layers in 16 16,32; do alike classes-$layers "$@" --layers $layers --cluster soon.yaml; done
gzip -dc "$data/a9a/a9a.gz" | head -n 3000 |
    awk '{ for (i = 2; i <= NF; i++) { split($i, p, ":"); $i = (p[1] * 37) ":" p[2] } print }' >wide.svm
set -- --model mlp --layers 64,32 --data wide.svm --batch 100 --epochs 2 --columns 4 --transport sim --l1 0.001 --l2 0.01
alike keyed "$@" --optimizer ftrl --workers 4 --cluster soon.yaml

# Two replicas, of which the same columns become slow: rows cannot help, columns do.
set -- --model mlp --layers 128,128,128 --data digits.csv --label -1 --batch 256 --epochs 6 --workers 8 --columns 4 --transport sim
for topology in ps allreduce; do
    alike both-$topology "$@" --cluster both.yaml --topology $topology --events both.events
    works both-audit audit both.events
done
alike both-sharded "$@" --cluster both.yaml --topology allreduce --optimizer-state sharded

exits 2 'keep of a piece.s updates cannot be cut anew' rounded train --model mlp --layers 32,32 --data digits.csv --label -1 \
    --workers 2 --columns 2 --balance dynamic --topology ps --filter fixed8
finish
