#!/bin/sh
# Under bsp the model over sim is that over threads, whatever the cluster does to the time.
. "$(dirname "$0")/common.sh"
cluster 6 "slow: {ranks: 1, factor: 3}" "messages: {delay: 1 ms, delayed: 0.1, doubled: 0.05, dropped: 0.02}"
base="train --model logistic --data $data/a9a/a9a.gz --epochs 2 --json --quiet"
for topology in ps allreduce; do
    # shellcheck disable=SC2086
    {
        works threads $base --transport threads --workers 4 --topology $topology --out threads.safetensors
        works sim $base --transport sim --workers 4 --topology $topology --out sim.safetensors
        works faulty $base --transport sim --workers 4 --topology $topology --cluster c.yaml --out faulty.safetensors
    }
    same threads.safetensors sim.safetensors 1e-5
    same threads.safetensors faulty.safetensors 1e-5
done
# shellcheck disable=SC2086
works events $base --transport sim --workers 4 --servers 2 --topology ps --consistency ssp:1 --cluster c.yaml --events log
works audit audit log
finish
