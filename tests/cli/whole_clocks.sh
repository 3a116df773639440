#!/bin/sh
# bounded-delay:0 promises what bsp does, so whatever asks for whole clocks takes it, and the model is bsp's, bit for bit.
# Where bits depend on who was late (backup workers), it trains, and the audit proves it.
. "$(dirname "$0")/common.sh"
t="train --data part --epochs 2 --batch 60 --json"

# same NAME words...: the run under either consistency has one hash
same() {
    name=$1
    shift
    works "$name-bsp" $t "$@" --consistency bsp
    works "$name-delay" $t "$@" --consistency bounded-delay:0
    [ "$(field "$name-bsp" model_hash)" = "$(field "$name-delay" model_hash)" ] || fail "$name: another model"
}

for topology in local ps allreduce; do
    same "lbfgs-$topology" --workers 3 --optimizer lbfgs --topology $topology
    same "exact-$topology" --workers 3 --reduce exact --topology $topology
done
same host --workers 4 --topology ps --aggregate host
same parts --workers 3 --topology allreduce --optimizer-state sharded --optimizer adam --model mlp --layers 8
same copies --workers 3 --topology ps --replicas 2
same spares --workers 4 --topology ps --replicas 2 --spares 1
same net-exact --workers 2 --model mlp --layers 8 --reduce exact
works kept-bsp $t --workers 2 --topology ps --consistency bsp --checkpoint kept --checkpoint-every 3
works kept-delay $t --workers 2 --topology ps --consistency bounded-delay:0 --checkpoint kept.delay --checkpoint-every 3
[ "$(field kept-bsp model_hash)" = "$(field kept-delay model_hash)" ] || fail "checkpoints: another model"

# proven NAME words...: the run's event log is what bounded-delay:0 promises
proven() {
    name=$1
    shift
    works "$name" $t "$@" --consistency bounded-delay:0 --events "$name.log"
    works "$name-audit" audit "$name.log"
}
proven backup --workers 4 --topology ps --backup 1
proven backup-local --workers 4 --topology local --backup 1
proven copies --workers 3 --topology ps --replicas 2

# More than no delay is another model: then each of them is refused by name.
for words in "--optimizer lbfgs" "--reduce exact" "--aggregate host" "--backup 1"; do
    # shellcheck disable=SC2086
    exits 2 "bounded-delay:1.* refused.*nearest.* bsp" late $t --workers 3 --topology ps --consistency bounded-delay:1 $words
done
works late-copies $t --workers 3 --topology ps --consistency bounded-delay:1 --replicas 2 --events late.log
works late-audit audit late.log

if "$PLAIT" version | grep -q '^sim *found'; then
    same sim --transport sim --workers 4 --topology ps --backup 1
fi
finish
