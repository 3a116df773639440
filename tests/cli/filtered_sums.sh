#!/bin/sh
# Filters on the sums of allreduce and hybrid, and between neighbours: every transport ends with the same bits and counts the same
# bytes, which are fewer than without; the audit proves the run; topk trains by clocks on servers, too; what does not go with them is refused.
# usage: filtered_sums.sh SIM MPIRUN   (yes or no; the mpirun, or no)
. "$(dirname "$0")/common.sh"
sim=$1 mpirun=$2
t="train --model mlp --layers 32 --data $data/digits/digits.csv.gz --label 65 --batch 100 --epochs 3 --seed 3 --quiet --json"

same() { # same A B [KEYS]: equal bits and bytes
    for key in ${3:-model_hash bytes_sent}; do
        [ -n "$(field "$1" $key)" ] && [ "$(field "$1" $key)" = "$(field "$2" $key)" ] ||
            fail "$1 and $2: $key is $(field "$1" $key) and $(field "$2" $key)"
    done
}

# Three workers go in stripes; two, and sums in flight, gather whole parts.
works plain $t --topology allreduce --workers 3
for filter in topk:0.05 onebit randk:0.1,fp16 fixed8,zstd significant:0.02; do
    works one $t --topology allreduce --workers 3 --filter $filter
    works two $t --topology hybrid --workers 3 --filter $filter
    same one two
    [ $filter = significant:0.02 ] || json one.out "o['bytes_sent'] * 2 < $(field plain bytes_sent)"
    if [ "$sim" = yes ]; then
        works two $t --topology allreduce --workers 3 --filter $filter --transport sim
        same one two
    fi
    case $filter in onebit | topk*) ;; *) continue ;; esac
    if [ "$mpirun" != no ]; then
        PLAIT_MPIRUN=$mpirun
        export PLAIT_MPIRUN
        works two launch -n 3 -- "$PLAIT" $t --topology allreduce --filter $filter
        same one two model_hash # each process reads files for itself
    fi
    [ "$sim" = yes ] || continue
    for way in "--workers 2" "--workers 3 --consistency bounded-delay:1" "--workers 3 --consistency local-sgd:2"; do
        works one $t --topology allreduce $way --filter $filter
        works two $t --topology allreduce $way --filter $filter --transport sim
        same one two
    done
done

# Between neighbours: the same bytes on every transport, fewer than without, and proven; without loss the same bits.
for pair in gossip:ring/bsp gossip:exp/local-sgd:2; do
    way="--workers 4 --topology ${pair%%/*} --consistency ${pair#*/}"
    works plain $t $way
    works one $t $way --filter zstd
    same one plain model_hash
    for filter in topk:0.05 onebit fixed8,zstd; do
        works one $t $way --filter $filter --events log
        works audited audit log
        says audited.out '^proven' || fail "the audit of $filter between neighbours: $(cat audited.out)"
        json one.out "o['bytes_sent'] * 1.5 < $(field plain bytes_sent) and o['train_loss'] < 1.25 * $(field plain train_loss)"
        [ "$sim" = yes ] || continue
        works two $t $way --filter $filter --transport sim
        same one two bytes_sent # the average of all mirrors is summed in another order there
    done
    [ "$mpirun" = no ] || works two launch -n 4 -- "$PLAIT" $t ${way#--workers 4} --filter topk:0.05
done
exits 2 "filter kkt with topology gossip:ring is refused" kkt $t --topology gossip:ring --l1 0.1 --optimizer sgd --filter kkt

# Lists of keys, named once; logged and proven.
works one train --data part --workers 3 --topology allreduce --epochs 2 --batch 50 --filter key-cache,key-delta,topk:0.2 --events log \
    --quiet --json
works audited audit log
says audited.out '^proven' || fail "the audit of a filtered sum: $(cat audited.out)"
works ps $t --topology ps --workers 3 --filter topk:0.1 --events servers
works audited audit servers
says audited.out '^proven' || fail "the audit of topk on servers: $(cat audited.out)"

exits 2 "filter kkt with topology allreduce is refused: it goes by the values in servers" kkt $t --topology allreduce --l1 0.1 \
    --optimizer sgd --filter kkt
# The rule's state in parts: with a filter without loss the bits of the whole state; with others gradients travel rounded, and no value
# does; what filters keep goes through a checkpoint to other workers, whose slices lie elsewhere.
# shellcheck disable=SC2086
{
    works plain $t --topology allreduce --workers 3 --optimizer adam --filter zstd
    works parts $t --topology allreduce --workers 3 --optimizer adam --filter zstd --optimizer-state sharded
    works rounded $t --topology allreduce --workers 3 --optimizer adam --filter topk:0.1 --optimizer-state sharded --checkpoint slices --checkpoint-every 20
    works twice $t --topology allreduce --workers 3 --optimizer adam --filter topk:0.1
    works on $t --topology allreduce --workers 2 --optimizer adam --filter topk:0.1 --optimizer-state sharded --resume slices
}
[ "$(field plain model_hash)" = "$(field parts model_hash)" ] || fail "state in parts, zstd: another model"
awk -v a="$(field twice train_loss)" -v b="$(field on train_loss)" 'BEGIN { exit !(b < 0.8 * a) }' ||
    fail "state in parts, topk: a loss of $(field on train_loss), and $(field twice train_loss) where sums are filtered, too"
exits 2 "filters with topology allreduce and --aggregate host are refused" host $t --topology allreduce --filter fp16 --aggregate host
exits 2 "filter onebit with exact sums is refused" exact $t --topology allreduce --filter onebit --reduce exact
finish
