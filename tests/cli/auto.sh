#!/bin/sh
# train --topology auto --consistency auto: what is chosen on a cluster with a straggler and on one without; the record says
# it, and the model is that of the pair; a resumed run keeps it; all processes of a job have it; what cannot be chosen
# is refused by name.
# usage: auto.sh yes|no yes|no      is there a simulator, and an MPI?
. "$(dirname "$0")/common.sh"

refused() { # refused WHY words...
    why=$1
    shift
    code=0
    "$PLAIT" "$@" >out 2>err <part || code=$?
    [ $code -eq 2 ] || fail "$*: exit $code: $(cat err)"
    grep -q -- "$why" err || fail "$*: $(cat err)"
    [ ! -s out ] || fail "$*: it printed $(cat out)"
}
both='--topology auto --consistency auto'
# shellcheck disable=SC2086
{
    refused 'nothing is known of the hosts and their links; describe them by --cluster' train --data part $both --workers 2
    refused "only 'plait train' chooses" plan --data part --topology auto
    refused "only 'plait train' chooses" compare --data part --consistency auto --topology ps
    refused 'it goes with --transport sim, and with --topology auto' train --data part --cluster gone.yaml
    refused 'can be read only once' train --data - $both --transport sim --workers 2
    refused 'one pair for all tables' train --data part $both --transport sim --workers 2 --table w:topology=ps
}
printf 'version: 1\nhosts: [{count: 4}]\ncost: {clock: 100 ms}\nevents: [{slow: {ranks: 2, factor: 4}}]\n' >slow.yaml
if [ "$1" = no ]; then
    code=0
    # shellcheck disable=SC2086
    "$PLAIT" train --data part $both --workers 4 --cluster slow.yaml >out 2>err || code=$?
    [ $code -eq 2 ] && grep -q 'libsimgrid' err || fail "without a simulator: exit $code: $(cat err)"
    finish
    exit 0
fi
sed '/^events/d' slow.yaml >even.yaml

# A rank that is 4 times slower: bsp waits for it. The model is that of the pair by name.
job="--data part --optimizer sgd --batch 40 --epochs 30 --learning-rate 0.05 --schedule constant --seed 3 --workers 4 --json"
# shellcheck disable=SC2086
{
    works slow train $job --quiet --transport sim --cluster slow.yaml $both
    [ "$(field slow topology)" = ps ] && [ "$(field slow consistency)" = async ] || fail "a straggler: $(cat slow.out)"
    grep -q '"pair_why": "it promises a loss in .* that allreduce x bsp reaches in .*, of 7 pairs simulated"' slow.out || fail "no reason: $(cat slow.out)"
    works named train $job --quiet --transport sim --cluster slow.yaml --topology ps --consistency async
    [ "$(field slow model_hash)" = "$(field named model_hash)" ] || fail 'the model is not that of the pair'
    grep -q '"pair_why": null' named.out || fail "a named pair has a reason: $(cat named.out)"
    # Equal ranks have nothing to gain.
    works even train $job --transport sim --cluster even.yaml $both
    [ "$(field even topology)" = allreduce ] && [ "$(field even consistency)" = bsp ] || fail "equal ranks: $(cat even.out)"
    says even.err '^plait: chosen: allreduce x bsp: none of 7 pairs simulated promises' || fail "it does not say so: $(cat even.err)"
    # What was named stays; the cluster also describes the hosts of a run in real time.
    works half train $job --quiet --cluster slow.yaml --topology ps --consistency auto --dry-run
    [ "$(field half topology)" = ps ] && [ "$(field half consistency)" = async ] && [ "$(field half transport)" = threads ] ||
        fail "half of a pair: $(cat half.out)"
    # Without room for the ranks nothing can be simulated.
    refused 'its 4 hosts have 4 cores, but there are 5 ranks' train --data part $both --transport sim --workers 5 --cluster slow.yaml
}

# --- columns ----------------------------------------------------------------------------------------------------------

# The number is that of the shortest clock, or of one within 5 % of it: by links and layers it is another one each time.
costs='cost: {flop: 0.05 ns, moved: 0.02 ns, node: 1 us, byte: 0.1 ns, message: 2 us, sum: 0.3 ns, value: 1 ns, key: 5 ns, entry: 1 ns}'
printf 'version: 1\nhosts: [{count: 4, bandwidth: 10 Gb/s, latency: 20 us}]\n%s\n' "$costs" >quick.yaml
printf 'version: 1\nhosts: [{count: 4, bandwidth: 100 Mb/s, latency: 500 us}]\n%s\n' "$costs" >far.yaml
gzip -dc "$data/digits/digits.csv.gz" | head -n 700 >digits.csv
chosen_columns=
for of in "quick 32,32 64" "quick 512,512 64" "quick 768,512 512" "far 32,32 64" "far 512,512 512"; do
    # shellcheck disable=SC2086
    set -- $of
    net="train --data digits.csv --label -1 --model mlp --layers $2 --batch $3 --epochs 1 --transport sim --workers 4 --cluster $1.yaml --json"
    # shellcheck disable=SC2086
    works columns $net --columns auto
    number=$(field columns columns)
    chosen_columns="$chosen_columns $number"
    says columns.err "^plait: chosen: columns $number: a clock takes .*, of 3 numbers simulated" || fail "$of: $(cat columns.err)"
    grep -q '"columns_why": "a clock takes ' columns.out || fail "$of: no reason: $(cat columns.out)"
    least=
    for n in 1 2 4; do
        # shellcheck disable=SC2086
        works named $net --quiet --columns $n
        seconds=$(field named train_seconds)
        [ $n != "$number" ] || { of_chosen=$seconds && [ "$(field named model_hash)" = "$(field columns model_hash)" ]; } ||
            fail "$of: the model is not that of $number columns"
        least=$(awk "BEGIN { print ${least:-1e9} < $seconds ? ${least:-1e9} : $seconds }")
    done
    awk "BEGIN { exit !($of_chosen <= 1.05 * $least) }" || fail "$of: $number columns take $of_chosen s, the best takes $least s"
done
[ "$(echo "$chosen_columns" | tr ' ' '\n' | sort -u | grep -c .)" -ge 3 ] || fail "always the same number: $chosen_columns"
works both train --data digits.csv --label -1 --model mlp --layers 512,512 --batch 64 --epochs 1 --transport sim --workers 4 --cluster quick.yaml --columns auto --topology auto --json --quiet
[ "$(field both columns)" = 2 ] && grep -q '"pair_why": "' both.out || fail "columns and a pair: $(cat both.out)"
refused 'nothing is known of the hosts and their links; .* or name the number of columns' train --data digits.csv --label -1 --model mlp --workers 4 --columns auto
refused "option --columns: 'all' is not a number from 1 to 65536, nor auto" train --data digits.csv --label -1 --model mlp --columns all
refused "compare: --columns auto is refused: only 'plait train' chooses; name their number$" compare --data digits.csv --model mlp --columns auto

# A resumed run has the pair of its checkpoint, whatever would be chosen now.
# shellcheck disable=SC2086
{
    works begun train $job --quiet --transport sim --cluster even.yaml $both --checkpoint kept --checkpoint-every 10
    works resumed train $job --transport sim --cluster slow.yaml $both --resume kept
    [ "$(field resumed topology)" = allreduce ] && [ "$(field resumed consistency)" = bsp ] || fail "resumed: $(cat resumed.out)"
    says resumed.err '^plait: chosen: allreduce x bsp: the run that kept resumes had it' || fail "resumed: $(cat resumed.err)"
}

# Rank 0 of a job of processes chooses for all, servers too; its refusal is theirs.
if [ "${2:-no}" != no ]; then
    # shellcheck disable=SC2086
    works ranks launch -n 3 -- "$PLAIT" train --data part --optimizer sgd --batch 40 --epochs 4 --servers 1 --json --quiet $both --cluster slow.yaml
    [ "$(field ranks topology)" = ps ] && [ "$(field ranks workers)" = 2 ] && ! says ranks.out '"pair_why": null' || fail "processes: $(cat ranks.out)"
    code=0
    # shellcheck disable=SC2086
    "$PLAIT" launch -n 2 -- "$PLAIT" train --data part $both >out 2>err || code=$?
    [ $code -eq 2 ] && [ "$(grep -c 'nothing is known of the hosts' err)" = 1 ] || fail "processes without a cluster: exit $code: $(cat err)"
fi
finish
