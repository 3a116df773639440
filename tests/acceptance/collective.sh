#!/bin/sh
# --collective: each form trains the same model, by threads, in simulated time and (with mpi as word) by processes; the record
# has its name; any other is refused by name, and so are ranks that do not agree.
# usage: collective.sh [mpi]
. "$(dirname "$0")/common.sh"
mpi=${1:-}

gzip -dc "$data/a9a/a9a.gz" | head -n 1000 >part
options="--model logistic --data part --batch 250 --epochs 1 --topology allreduce --json"
# shellcheck disable=SC2086
works reference train $options --workers 1 --out reference
for form in auto ring tree recursive rabenseifner hierarchical messages; do
    if [ "$mpi" = mpi ]; then
        # shellcheck disable=SC2086
        works $form launch -n 3 -- "$PLAIT" train $options --collective $form --out $form
    else
        # shellcheck disable=SC2086
        works $form train $options --collective $form --workers 3 --out $form
        # shellcheck disable=SC2086
        [ "$form" = messages ] || works sim-$form train $options --collective $form --workers 5 --transport sim --out sim-$form
        [ "$form" = messages ] || same reference sim-$form 1e-5
    fi
    same reference $form 1e-5
    [ "$(field $form collective)" = $form ] || fail "--collective $form is recorded as $(field $form collective)"
done
if [ "$mpi" = mpi ]; then
    # shellcheck disable=SC2086
    code=0 && "$PLAIT" launch -n 2 -- sh -c "PLAIT_COLLECTIVE=\$([ \$OMPI_COMM_WORLD_RANK = 1 ] && echo tree || echo ring) exec '$PLAIT' train $options" \
        >apart.out 2>apart.err || code=$?
    [ $code -eq 2 ] || [ $code -eq 1 ] || fail "ranks with two forms ended with $code"
    grep -q 'rank 1 with --collective tree, rank 0 with ring' apart.err || fail "two forms are not named: $(cat apart.err)"
else
    # shellcheck disable=SC2086
    exits 2 "ring" wrong train $options --collective rign
    # shellcheck disable=SC2086
    PLAIT_COLLECTIVE=tree works variable train $options --workers 2
    [ "$(field variable collective)" = tree ] || fail "PLAIT_COLLECTIVE is not heard"
fi
finish
