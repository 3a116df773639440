#!/bin/sh
# Blocks are a property of the data: more workers than blocks compute the same bits, checkpoints go from many workers to few
# and back, --blocks says how many there are, and a checkpoint remembers it.
# usage: blocks.sh
. "$(dirname "$0")/common.sh"
set -- --data part --batch 60 --topology ps --reduce exact --json --quiet

# hash_is HASH words...: the run's model has this hash; HASH -: it becomes $hash
hash_is() {
    want=$1
    shift
    works run train "$@"
    hash=$(field run model_hash)
    [ "$want" = - ] || [ "$hash" = "$want" ] || fail "$*: $hash, not $want"
}

hash_is - "$@" --epochs 3 --workers 4
four=$hash
for workers in 70 130; do hash_is "$four" "$@" --epochs 3 --workers $workers; done
hash_is "$four" "$@" --epochs 3 --workers 70 --topology allreduce
"$PLAIT" train --data part --workers 70 --dry-run >said.out 2>said.err || fail "exit $?"
grep -q '6 of 70 workers have no rows, since the data have 64 blocks; --blocks 70 gives each one' said.err ||
    fail "no note of workers without rows: $(cat said.err)"

# A checkpoint of 70 workers is resumed by 4, theirs by 70, and the bits are those of one run.
for blocks in 64 140; do
    hash_is - "$@" --epochs 3 --workers 4 --blocks $blocks
    whole=$hash
    [ $blocks = 64 ] || [ "$whole" != "$four" ] || fail "--blocks $blocks changes nothing"
    rm -rf d
    works run train "$@" --epochs 2 --workers 70 --blocks $blocks --checkpoint d --checkpoint-every 7 --schedule constant
    works run train "$@" --epochs 2 --workers 4 --resume d --checkpoint d --checkpoint-every 9 --schedule constant
    works run train "$@" --epochs 3 --workers 70 --resume d --out m --schedule constant
    resumed=$(field run model_hash)
    hash_is "$resumed" "$@" --epochs 3 --workers 4 --blocks $blocks --schedule constant
    "$PLAIT" inspect m | grep -q "\"blocks\": $blocks" || fail "the model does not say its blocks: $(cat m.done)"
done
exits 2 "in 140 blocks', but this run has 'data of 300 rows in 64 blocks" other train "$@" --epochs 3 --resume d --blocks 64 \
    --schedule constant
mkfifo rows
cat part >rows &
exits 2 'blocks 64 is refused with data from a pipe' pipe train --data rows --blocks 64
wait
exits 2 'blocks.*from 64 to 65536' few train --data part --blocks 63
# A worker without rows has its turns with the words that rotate.
head -n 10 part >ten
works rotate train --data ten --model lda --label none --components 2 --epochs 2 --workers 12 --words rotate --topology ps --quiet
finish
