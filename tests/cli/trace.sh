#!/bin/sh
# --trace: where the time of every rank went. $1, $2: are MPI and SimGrid there (yes, no)?
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || skip "no python3 to read traces with"
check() { python3 "$here/trace_check.py" "$@" || fail "the trace $1"; }
here=$(cd "$(dirname "$0")" && pwd)

steps=step=fetch,get,compute,inc
phases=phase=load,train,epoch,clock,judge
works linear train --data part --optimizer adagrad --epochs 2 --workers 2 --servers 1 --topology ps --trace linear.json --quiet
check linear.json 3 $steps $phases call=plait_job_clock,plait_table_read,plait_comm_allreduce wait=wait
works keyed train --data part --epochs 1 --hash-bits 20 --workers 2 --topology ps --consistency ssp:1 --trace keyed.json --quiet
check keyed.json 2 $steps $phases
works lbfgs train --data part --epochs 3 --optimizer lbfgs --workers 2 --trace lbfgs.json --quiet
check lbfgs.json 2 phase=iteration
# Every op of a net's graph, forward and backward, whichever of its threads ran it.
works net train --model mlp --layers 16 --data part --epochs 1 --workers 2 --threads 2 --trace net.json --quiet
check net.json 2 step=fetch,get,compute $phases op=matmul,add,relu,row_loss,relu_gradient,sum_like,mul,inc

# A trace changes nothing.
works without train --data part --epochs 2 --workers 2 --servers 1 --topology ps --out without.model --quiet
works with train --data part --epochs 2 --workers 2 --servers 1 --topology ps --out with.model --trace with.json --quiet
cmp without.model with.model || fail "a traced run has another model"

exits 2 "not written to standard output" dash train --data part --trace -
exits 1 'nowhere/t: cannot be written \(--trace\)' nowhere train --data part --trace nowhere/t
exits 2 "trace" same train --data part --trace m --out m
works dry train --data part --trace dry.json --dry-run
[ ! -e dry.json ] || fail "a dry run left a trace"

# A full disk costs the trace, and not the model.
if [ -w /dev/full ]; then
    exits 1 'No space left' full train --data part --epochs 2 --batch 5 --workers 2 --trace /dev/full --out full.model --quiet
    [ -s full.model ] && [ -e full.model.done ] || fail "a trace that could not be written cost the model"
fi

if [ "$1" = yes ]; then
    if [ -w /dev/full ]; then # it is full before the others are asked for their spans: they are asked all the same
        code=0
        "$PLAIT" launch -n 3 -- "$PLAIT" train --data part --epochs 20 --batch 3 --trace /dev/full --out mpifull --quiet 2>full.err || code=$?
        [ "$code" -eq 1 ] && says full.err 'No space left' || fail "a full disk under MPI: exit $code, $(cat full.err)"
        [ -s mpifull ] && [ -e mpifull.done ] || fail "a trace that could not be written cost the model under MPI"
        [ "$(grep -c '^plait' full.err)" = 1 ] || fail "a full disk cost a rank: $(cat full.err)"
    fi
    works mpi launch -n 3 -- "$PLAIT" train --data part --optimizer adagrad --epochs 2 --servers 1 --trace mpi.json --quiet
    check mpi.json 3 $steps $phases call=plait_job_clock
    grep -q '"name": "server 2 (' mpi.json || fail "no server 2"
    # A run that fails leaves what each process has.
    code=0
    "$PLAIT" launch -n 2 -- "$PLAIT" train --model squared --data part --epochs 2 --learning-rate 1e38 --optimizer sgd --trace lost.json --quiet 2>err || code=$?
    [ "$code" -ne 0 ] || fail "steps of 1e38 converge"
    for rank in 0 1; do python3 -c "import json; json.load(open('lost.json.$rank'))" || fail "lost.json.$rank"; done
fi
if [ "$2" = yes ]; then
    for i in 1 2; do
        works sim$i train --transport sim --data part --epochs 1 --workers 5 --servers 2 --topology ps --consistency ssp:1 --trace sim$i.json --json --quiet
    done
    works simply train --transport sim --data part --epochs 1 --workers 5 --servers 2 --topology ps --consistency ssp:1 --json --quiet
    check sim1.json 7 $steps $phases wait=wait
    cmp sim1.json sim2.json || fail "traces of simulated runs differ"
    grep -q '"time": "simulated"' sim1.json || fail "not in simulated time"
    [ "$(field sim1 trace_hash)" = "$(field simply trace_hash)" ] || fail "a trace changes the simulated run"
fi
finish
