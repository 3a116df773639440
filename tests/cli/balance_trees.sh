#!/bin/sh
# --balance dynamic of gbdt and forest: blocks of a slow worker go to others between two rounds, and the trees are those of static, bit
# for bit; also where a rank dies (proven by the audit), and where a run goes on from a checkpoint.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 3000 >some
same() {
    for figure in model_hash objective; do
        [ "$(field "$1" $figure)" = "$(field static $figure)" ] || fail "$words, $1: another $figure than with --balance static"
    done
}

# Under threads nobody is slow for certain: whether or not blocks move, the trees are the same.
for words in "gbdt --epochs 6" "forest --epochs 4"; do
    run="train --model $words --data some --workers 4 --json"
    # shellcheck disable=SC2086
    {
        works static $run
        works moved $run --balance dynamic --topology ps
    }
    same moved
done
# shellcheck disable=SC2086
exits 2 "balance dynamic with --trees-by features is refused: .*; take --trees-by rows" features $run --model gbdt --trees-by features --balance dynamic

"$PLAIT" version | grep -q '^sim *found' || finish
hosts='version: 1\nhosts: [{count: 3}, {count: 1, speed: 0.25}]\ncost: {entry: 2us}\n'
printf "$hosts" >slow.yaml
for words in "gbdt --epochs 12" "gbdt --epochs 12 --validation 0.2 --patience 3 --subsample 0.7" "forest --epochs 6" "forest --epochs 6 --trees-by voting"; do
    run="train --model $words --data some --workers 4 --transport sim --json"
    rm -rf log m kept
    # shellcheck disable=SC2086
    {
        works static $run --cluster slow.yaml
        works moved $run --cluster slow.yaml --balance dynamic --checkpoint kept --checkpoint-every 2
        printf "$hosts"'events:\n  - kill: {ranks: 1, at: %s s}\n' "$(field moved virtual_seconds | awk '{ print $1 * 0.6 }')" >dies.yaml
        works killed $run --cluster dies.yaml --balance dynamic --replicas 2 --events log --metrics m
    }
    grep -q 'balance: .* hands after epoch' moved.err || fail "$words: no block changes hands: $(cat moved.err)"
    awk -v a="$(field moved virtual_seconds)" -v b="$(field static virtual_seconds)" 'BEGIN { exit !(a < 0.9 * b) }' ||
        fail "$words: $(field moved virtual_seconds) s, and static $(field static virtual_seconds) s"
    grep -q '"event": "rank_lost"' m || fail "$words: nobody dies"
    works proven audit log
    case $words in *voting*) continue ;; esac # its votes are of a worker's rows
    same moved
    same killed
    # shellcheck disable=SC2086
    works rest $run --resume kept --cluster slow.yaml --balance dynamic --workers 3
    same rest
done
finish
