#!/bin/sh
# train --columns auto on unlike hosts, within what hosts can hold, with threads and over processes; what cannot be chosen is
# refused by name. (cli.plan_auto has the choice on equal hosts.)
# usage: columns_auto.sh yes|no yes|no      is there a simulator, and an MPI?
. "$(dirname "$0")/common.sh"

gzip -dc "$data/digits/digits.csv.gz" | head -n 512 >digits.csv
net='--model mlp --data digits.csv --label -1 --batch 256 --optimizer adam --seed 3'
# shellcheck disable=SC2086
{
    exits 2 'only the dense layers of an mlp' other train --data part --columns auto --workers 2 --transport sim
    exits 2 'a net is cut in one way' twice train $net --columns auto --cut 2 --workers 2 --transport sim
    exits 2 "is not a number from 1 to .*, nor auto" zero train $net --columns 0 --workers 2
}
if [ "$1" = no ]; then
    finish
    exit 0
fi
slow='hosts: [{count: 4, bandwidth: 50 Mb/s, latency: 100 us}]'
printf 'version: 1\n%s\ncost: {flop: 0.1 ns}\n' "$slow" >slow.yaml
printf 'version: 1\nhosts: [{count: 2, bandwidth: 1 Gb/s, latency: 50 us}, {count: 2, bandwidth: 100 Mb/s, latency: 1 ms, speed: 0.5}]\ncost: {flop: 0.3 ns}\n' >uneven.yaml

printf 'version: 1\nhosts: [{count: 4, bandwidth: 10 Gb/s, latency: 3 ms}]\ncost: {flop: 1 ns}\n' >distant.yaml

# The choice is within 10 % of the best: on two hosts of half the speed behind slow links, and on hosts far from each other,
# where a job takes a while to stop. It is longer than what is simulated.
for of in "uneven 16" "uneven 256" "uneven 128,128" "distant 512" "distant 128,128"; do
    layers=${of#* } cluster=${of% *}.yaml best=
    for n in 1 2 4; do
        # shellcheck disable=SC2086
        works "named$n" train $net --layers $layers --epochs 15 --workers 4 --columns $n --transport sim --cluster "$cluster" --json --quiet
        took=$(field "named$n" train_seconds)
        best=$(awk -v a="$took" -v b="${best:-$took}" 'BEGIN { print a < b ? a : b }')
    done
    # shellcheck disable=SC2086
    works auto train $net --layers $layers --epochs 15 --workers 4 --columns auto --transport sim --cluster "$cluster" --json --quiet
    awk -v a="$(field auto train_seconds)" -v b="$best" 'BEGIN { exit !(a <= 1.1 * b) }' ||
        fail "$of: $(field auto columns) columns take $(field auto train_seconds) s, the best $best s"
done

# shellcheck disable=SC2086
{
    # The cluster also describes the hosts of a run in real time.
    works real train $net --layers 256 --epochs 1 --workers 4 --columns auto --topology local --cluster slow.yaml --json --quiet
    [ "$(field real columns)" = 2 ] && [ "$(field real transport)" = threads ] || fail "threads: $(cat real.out)"
    # Layers that are too narrow for some numbers leave the others.
    works narrow train $net --layers 2 --epochs 1 --workers 4 --columns auto --transport sim --cluster slow.yaml --json --quiet
    says narrow.out 'of 2 numbers simulated' || fail "narrow: $(cat narrow.out)"
    # Why whole layers are taken is said, where nothing else runs.
    works whole train $net --layers 64 --epochs 1 --optimizer lbfgs --workers 4 --columns auto --transport sim --cluster slow.yaml --json --quiet
    says whole.out 'of 1 number simulated; 4 do not run: columns with lbfgs' || fail "whole: $(cat whole.out)"
}

# What hosts cannot hold is refused by rank, and left out of what may be chosen.
for size in 300 100; do
    printf 'version: 1\nhosts: [{count: 8, cores: 2, bandwidth: 10 Gb/s, memory: %s kB}]\n' $((2 * size)) >small$size.yaml
done
printf 'version: 1\nhosts: [{count: 2, memory: 5 Gb}]\n' >odd.yaml
# shellcheck disable=SC2086
{
    exits 2 'rank 0 needs 0.312 MB and has 0.3, rank 1 needs 0.312 MB.*more --columns' two train $net --layers 256 --workers 4 --columns 2 --transport sim --cluster small300.yaml
    works four train $net --layers 256 --epochs 1 --workers 4 --columns 4 --transport sim --cluster small300.yaml --json --quiet
    works fits train $net --layers 256 --epochs 1 --workers 4 --columns auto --transport sim --cluster small300.yaml --json --quiet
    [ "$(field fits columns)" = 4 ] && says fits.out 'whole layers do not run' || fail "memory: $(cat fits.out)"
    exits 2 'does not fit its hosts: rank 0 needs .* MB and has 0.1' none train $net --layers 256 --workers 4 --columns auto --transport sim --cluster small100.yaml
    exits 2 'the net does not fit its hosts' cut train $net --layers 256,256 --workers 2 --cut 2 --transport sim --cluster small300.yaml
    exits 2 'memory: .*expected a size such as' unit train $net --workers 2 --transport sim --cluster odd.yaml
}
# Rank 0 of a job of processes chooses for all.
if [ "${2:-no}" != no ]; then
    # shellcheck disable=SC2086
    works ranks launch -n 4 -- "$PLAIT" train $net --layers 256 --epochs 1 --columns auto --cluster slow.yaml --json --quiet
    [ "$(field ranks columns)" = 2 ] && [ "$(field ranks transport)" = mpi ] || fail "processes: $(cat ranks.out)"
fi
finish
