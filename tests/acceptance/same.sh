#!/bin/sh
# Under bsp the model is the same whatever carries the updates: local, allreduce and ps, 1, 2 and 4 workers, threads and
# (with mpi as second word) processes, at the same batch: the weights' 2-norm within 1e-5, relative.
# usage: same.sh OPTIMIZER [mpi]
. "$(dirname "$0")/common.sh"
optimizer=$1
mpi=${2:-}

gzip -dc "$data/a9a/a9a.gz" | head -n 4000 >part
options="--model logistic --data part --optimizer $optimizer --batch 256 --epochs 2 --consistency bsp --seed 7"
# shellcheck disable=SC2086
works reference train $options --workers 1 --topology local --out reference
for workers in 1 2 4; do
    for topology in local allreduce ps; do
        name=$topology-$workers
        if [ "$mpi" = mpi ]; then
            if [ $topology = local ]; then continue; fi
            if [ $workers = 1 ]; then continue; fi
            # shellcheck disable=SC2086
            works "$name" launch -n $workers -- "$PLAIT" train $options --topology $topology --out "$name"
        else
            # shellcheck disable=SC2086
            works "$name" train $options --workers $workers --topology $topology --out "$name"
        fi
        same reference "$name" 1e-5
    done
done
finish
