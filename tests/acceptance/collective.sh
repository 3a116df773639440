#!/bin/sh
# --optimizer-state sharded: the same model, bit for bit, as with the whole state; refused by name where it has no meaning.
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
state="--optimizer adam --optimizer-state"
# shellcheck disable=SC2086
for form in ring recursive auto; do
    for how in whole sharded; do
        if [ "$mpi" = mpi ]; then
            works $how launch -n 3 -- "$PLAIT" train $options --collective $form $state $how --out $how
        else
            works $how train $options --collective $form --workers 3 $state $how --out $how
            works sim-$how train $options --collective $form --workers 5 --transport sim $state $how
        fi
    done
    cmp -s whole sharded || fail "$form: a state in parts gives another model"
    [ "$mpi" = mpi ] || [ "$(field sim-whole model_hash)" = "$(field sim-sharded model_hash)" ] || fail "sim, $form: a state in parts gives another model"
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
    # shellcheck disable=SC2086
    exits 2 "nearest is allreduce x bsp" onserver train $options --workers 2 --topology ps $state sharded
    # shellcheck disable=SC2086
    exits 2 "nearest is allreduce x bsp" delayed train $options --workers 2 --consistency bounded-delay:2 $state sharded
    # shellcheck disable=SC2086
    exits 2 "lbfgs with optimizer-state sharded" history train $options --workers 2 --optimizer lbfgs --optimizer-state sharded
fi
finish
