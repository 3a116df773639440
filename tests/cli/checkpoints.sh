#!/bin/sh
# A run goes on from a checkpoint: with any number of workers to the model of a run that was never interrupted, for
# every topology, form of weights, optimizer and model; from a signal; with what validation remembers; and what is not
# this run's is refused by name.
# usage: checkpoints.sh yes|no (is there a simulator?), or with a path: where ranks are processes
. "$(dirname "$0")/common.sh"
simgrid=$1
gzip -dc "$data/a9a/a9a.gz" | head -n 200 >few
# Indices that are too many for an array: rows grow by key.
awk '{ printf "%s", $1; for (i = 2; i <= NF; i++) { split($i, e, ":"); printf " %d:%s", e[1] * 3000000, e[2] } print "" }' few >wide

hash_of() { field "$1" model_hash; }
last_of() { ls "$1" | sort | tail -n 1; }

# same NAME OTHER WHAT: the same model, and the same progressive loss, which is of all clocks
same() {
    got="$(hash_of "$1") $(field "$1" progressive_loss) $(field "$1" clocks)"
    want="$(hash_of "$2") $(field "$2" progressive_loss) $(field "$2" clocks)"
    [ "$got" = "$want" ] || fail "$3: $got, not $want"
}

# --- where ranks are processes ----------------------------------------------------------------------------------------

if [ "$simgrid" != yes ] && [ "$simgrid" != no ]; then
    rm -rf d
    set -- --data few --epochs 2 --batch 20 --optimizer adam --reduce exact --json --quiet
    works straight train "$@"
    for topology in ps allreduce; do
        rm -rf d
        works first launch -n 2 -- "$PLAIT" train "$@" --topology $topology --checkpoint d --checkpoint-every 7
        same first straight "processes, $topology"
        works second launch -n 3 -- "$PLAIT" train "$@" --topology $topology --resume d
        same second straight "from 2 processes to 3, $topology"
        works second train "$@" --workers 2 --resume d
        same second straight "from processes to threads"
    done
    works first launch -n 3 -- "$PLAIT" train "$@" --topology ps --servers 1 --checkpoint d --checkpoint-every 9
    works second train "$@" --resume d
    same second straight "from a server apart"
    finish
fi

# --- each row once an epoch, though the run resumes for more epochs, or fewer --------------------------------------------

# Row i has feature i alone and the label 1, so its weight says how often it was learnt.
awk 'BEGIN { for (i = 1; i <= 640; i++) print 1, i ":1" }' >own
# counts N: by sgd, w = 1 - (1 - rate / rows of the clock)^N; clocks have 63 to 67 rows.
counts() {
    works weights inspect second.model --weights
    awk -F '\t' -v n="$1" '$2 != 0 { k = log(1 - $2) / log(1 - 2 / 64); rows++; bad += (k - n) ^ 2 > 0.1 }
        END { exit !(rows == 640 && bad == 0) }' weights.out || fail "$2: rows were not learnt $1 times each: $(head -n 4 weights.out)"
}
for setting in "--workers 1" "--workers 2 --topology ps"; do
    set -- --model squared --data own --optimizer sgd --schedule constant --learning-rate 2 --batch 64 --l2 0 --no-intercept --normalize none $setting
    for epochs in "1 3" "2 1"; do # each has 10 clocks
        rm -rf d
        works first train "$@" --epochs ${epochs% *} --checkpoint d --checkpoint-every 8
        [ "$epochs" = "1 3" ] || rm -rf "d/$(last_of d)"
        [ "$(last_of d)" = checkpoint-000000000008 ] || fail "$setting: no checkpoint within the first epoch: $(ls d)"
        works second train "$@" --epochs ${epochs#* } --resume d --out second.model
        counts ${epochs#* } "$setting, from $epochs epochs"
    done
done

# --- any number of workers, every topology, under exact sums ----------------------------------------------------------

# matrix words...: all 1 <= N, M <= 4
matrix() {
    works straight train "$@" --reduce exact --json --quiet
    for n in $counts; do
        rm -rf d
        works first train "$@" --reduce exact --json --quiet --workers $n --checkpoint d --checkpoint-every 7
        same first straight "$*: $n workers with checkpoints"
        [ "$(ls d | wc -l)" -eq 2 ] || fail "$*: not two checkpoints are kept: $(ls d)"
        for m in $counts; do
            works second train "$@" --reduce exact --json --quiet --workers $m --resume d
            same second straight "$*: from $n workers to $m"
        done
    done
}
for topology in local ps allreduce hybrid; do
    # Of one that lies as another does, a part.
    case "$topology ${PLAIT_TEST_FULL:-}" in
    "local " | "hybrid ") counts="2 3" ;;
    *) counts="1 2 3 4" ;;
    esac
    matrix --data few --epochs 2 --batch 20 --optimizer adam --topology $topology
done
counts="2 3"
matrix --data few --epochs 2 --batch 20 --optimizer adagrad --topology ps --hash-bits 14
matrix --data wide --epochs 2 --batch 20 --optimizer ftrl --topology hybrid
matrix --data wide --epochs 2 --batch 20 --optimizer sgd --topology allreduce
matrix --data few --epochs 2 --batch 20 --model mlp --layers 6 --topology hybrid
# Blocks that change hands: who asks for leases behind the checkpoint asks where those that ran before would have.
matrix --data few --epochs 2 --batch 20 --optimizer adam --topology ps --balance dynamic
works straight train --data few --epochs 2 --batch 20 --optimizer adam --reduce exact --json --quiet
rm -rf d
works first train --data few --epochs 2 --batch 20 --optimizer adam --reduce exact --json --quiet --workers 3 --topology allreduce --replicas 2 --balance dynamic --checkpoint d --checkpoint-every 7
works second train --data few --epochs 2 --batch 20 --optimizer adam --reduce exact --json --quiet --workers 2 --topology ps --replicas 2 --balance dynamic --resume d
same second straight "blocks that change hands, with two replicas"
# A rule's state in slices, which end in the middle of rows: kept by row, whole.
matrix --data few --epochs 2 --batch 20 --model mlp --layers 6 --optimizer adam --topology allreduce --optimizer-state sharded
# The same in slices that several workers hold, and from as many holders to others.
works straight train --data few --epochs 2 --batch 20 --model mlp --layers 6 --optimizer adam --reduce exact --json --quiet
for from in "--workers 3 --replicas 2" "--workers 4 --replicas 3" "--workers 3"; do
    rm -rf d
    set -- --data few --epochs 2 --batch 20 --model mlp --layers 6 --optimizer adam --reduce exact --json --quiet --topology allreduce --optimizer-state sharded
    works first train "$@" $from --checkpoint d --checkpoint-every 7
    same first straight "slices, $from, with checkpoints"
    for way in "--workers 4 --replicas 2" "--workers 2 --replicas 2" "--workers 3"; do
        works second train "$@" --resume d $way
        same second straight "slices, from $from to $way"
    done
done

# --- from one topology to another, and to servers apart ---------------------------------------------------------------

works straight train --data wide --epochs 2 --batch 20 --optimizer momentum --reduce exact --json --quiet
rm -rf d
works first train --data wide --epochs 2 --batch 20 --optimizer momentum --reduce exact --json --quiet --topology ps --workers 2 --servers 3 --checkpoint d --checkpoint-every 9
for way in "--topology local" "--topology allreduce --workers 3" "--topology ps --workers 1 --servers 2"; do
    works second train --data wide --epochs 2 --batch 20 --optimizer momentum --reduce exact --json --quiet --resume d $way
    same second straight "from servers apart to $way"
done

works straight train --data few --epochs 2 --batch 20 --model mlp --layers 7 --optimizer adam --reduce exact --json --quiet
set -- --data few --epochs 2 --batch 20 --model mlp --layers 7 --optimizer adam --reduce exact --json --quiet
for from in "--workers 3 --topology allreduce --optimizer-state sharded" "--workers 2 --topology ps"; do
    rm -rf d
    works first train "$@" $from --checkpoint d --checkpoint-every 9
    for way in "--workers 4 --topology hybrid --optimizer-state sharded" "--workers 2 --topology allreduce --optimizer-state sharded" "--topology local"; do
        works second train "$@" --resume d $way
        same second straight "from $from to $way"
    done
done

# --- as many workers, plain sums --------------------------------------------------------------------------------------

# alike words...: a run that goes on with as many workers
alike() {
    rm -rf d
    works straight train "$@" --json --quiet
    works first train "$@" --json --quiet --checkpoint d --checkpoint-every 7
    works second train "$@" --json --quiet --resume d/
    same second straight "$*"
}
for optimizer in sgd momentum adagrad adam ftrl; do
    alike --data few --epochs 2 --batch 20 --workers 2 --topology ps --optimizer $optimizer --hash-bits 14
done
alike --data few --epochs 2 --batch 20 --workers 2 --topology allreduce --optimizer adam --backup 0 --schedule invsqrt
alike --data few --epochs 1 --batch 20 --workers 2 --optimizer adam
alike --data few --epochs 2 --batch 20 --topology ps --consistency async --optimizer adam
alike --data few --epochs 2 --batch 20 --topology ps --consistency ssp:2 --filter key-cache,zstd
alike --data few --epochs 2 --batch 20 --workers 2 --topology ps --filter topk:0.05
alike --data few --epochs 2 --batch 20 --workers 3 --topology ps --filter key-cache,onebit --optimizer ftrl --hash-bits 14
alike --data few --epochs 2 --batch 20 --workers 3 --topology allreduce --filter topk:0.1,onebit
alike --data few --epochs 2 --batch 20 --workers 4 --topology ps --filter topk:0.1 --model mlp --layers 6 --columns 2
exits 2 "was made with '--filter topk:0.1', but this run has 'no --filter'" nofilter train --data few --epochs 2 --batch 20 --workers 4 --topology ps --model mlp --layers 6 --columns 2 --resume d
gzip -dc "$data/digits/digits.csv.gz" | head -n 200 >digits.csv
alike --data digits.csv --label 65 --model cnn --layers 2,3,4 --epochs 2 --batch 20 --workers 2 --topology allreduce
tr 'a-z' 'b-za' <"$PLAIT_SOURCE_DIR/README.md" | head -c 3000 >text
alike --data text --format text --model lstm --layers 5 --epochs 2 --batch 4 --workers 2 --topology hybrid

# --- what validation remembers ----------------------------------------------------------------------------------------

# A rate at which the loss rises soon: the best weights are those of an early epoch, from before the checkpoint.
for patience in 3 0; do
    set -- --data few --epochs 9 --batch 20 --optimizer sgd --learning-rate 8 --schedule constant --validation 0.3 --patience $patience --workers 2
    alike "$@"
    [ "$(field second validation_loss)" = "$(field straight validation_loss)" ] || fail "patience $patience: validation's best is forgotten"
    [ "$(field second epochs)" = "$(field straight epochs)" ] || fail "patience $patience: $(field second epochs) epochs, not $(field straight epochs)"
done
[ "$(field straight epochs)" = 9 ] || fail "without patience $(field straight epochs) epochs are done"

# --- by time, and told in the metrics ---------------------------------------------------------------------------------

rm -rf d m
works timed train --data few --epochs 900 --batch 20 --workers 2 --checkpoint d --checkpoint-every 20ms --metrics m --json --quiet
[ "$(grep -c '"event": "checkpoint", "clock": [0-9]*, "folder": "checkpoint-' m)" -gt 1 ] || fail "checkpoints are not completed while the run goes on"
works listed checkpoint verify d
works untimed train --data few --epochs 900 --batch 20 --workers 2 --json --quiet
same timed untimed "with checkpoints beside the training"
works gone_on train --data few --epochs 900 --batch 20 --workers 2 --json --quiet --resume d
same gone_on untimed "from a checkpoint by time"

# None was due: who looks for one is told why there is none.
works none train --data few --epochs 1 --batch 20 --checkpoint none
grep -q 'note: the run was too short for a checkpoint: --checkpoint-every is 300s$' none.err || fail "no word of no checkpoint: $(cat none.err)"
works none train --data few --epochs 1 --batch 20 --checkpoint none --checkpoint-every 500
grep -q 'checkpoint-every is 500 clocks$' none.err || fail "no word of no checkpoint: $(cat none.err)"
for words in "--checkpoint-every 3" "--dry-run" "--quiet"; do
    # shellcheck disable=SC2086
    works some train --data few --epochs 1 --batch 20 --checkpoint none $words
    grep -q 'no checkpoint was due' some.err && fail "$words: $(cat some.err)"
done

# --- signals ----------------------------------------------------------------------------------------------------------

for signal in TERM INT; do
    for way in "--workers 1" "--workers 2 --topology allreduce" "--workers 3 --topology ps --consistency ssp:1"; do
        rm -rf d m m.2 err out
        "$PLAIT" train --metrics m --data few --epochs 100000 --batch 20 --schedule constant $way --checkpoint d --resume d >out 2>err &
        pid=$!
        until_holds 300 says m '"epoch"' || fail "no epoch ends"
        kill -$signal $pid
        code=0
        wait $pid || code=$?
        [ $code -eq 75 ] || fail "SIG$signal, $way: exit $code, not 75: $(tail -n 3 err)"
        grep -q "d holds no checkpoint: the run starts from the beginning" err || fail "it is not told that the run begins"
        clock=$(sed -n 's/.*interrupted after clock \([0-9]*\),.*/\1/p' err)
        [ "$(last_of d)" = "$(printf 'checkpoint-%012d' "$clock")" ] || fail "SIG$signal, $way: no checkpoint of clock $clock: $(ls d)"
        command=$(sed -n 's/.*to go on from the checkpoint: plait \(.*\)/\1/p' err)
        [ "$command" = "train --data few --epochs 100000 --batch 20 --schedule constant $way --checkpoint d --resume d --metrics m.2" ] ||
            fail "SIG$signal, $way: the command that goes on is '$command'"
        # What is told works: a little more of it, with as many epochs as were begun, and one.
        epochs=$((clock / 10 + 1))
        # shellcheck disable=SC2086
        works onward $command --epochs $epochs --json
        grep -q "going on from d/checkpoint-.*after clock $clock" onward.err || fail "it is not told where the run goes on"
        [ "$(field onward clocks)" = $((epochs * 10)) ] || fail "it goes on for $(field onward clocks) clocks"
        case $way in
        *ssp*) ;;
        *)
            # shellcheck disable=SC2086
            works straight train --data few --epochs $epochs --batch 20 --schedule constant $way --json --quiet
            same onward straight "SIG$signal, $way"
            ;;
        esac
    done
done

# --- stale policies: all workers are cut at one clock -----------------------------------------------------------------

for consistency in ssp:1 essp:2 asp:2:20 async downpour:2:3 bounded-delay:1 sequential vap:0.5; do
    rm -rf d
    works first train --data few --epochs 3 --batch 20 --workers 3 --topology ps --consistency $consistency --checkpoint d --checkpoint-every 9 --quiet --json
    works second train --data few --epochs 3 --batch 20 --workers 2 --topology ps --consistency $consistency --resume d --quiet --json
    [ "$(field second clocks)" = 30 ] || fail "$consistency: $(field second clocks) clocks"
    holds second train_loss "< 0.6"
done

# --- a newer one that is not good is passed over, and told ------------------------------------------------------------

rm -rf d
set -- --data few --epochs 2 --batch 20 --workers 2 --json --quiet
works straight train "$@"
works first train "$@" --checkpoint d --checkpoint-every 7
newest=$(last_of d)
part=$(ls -S d/"$newest"/part-* | head -n 1)
printf 'x' | dd of="$part" bs=1 seek=$(($(wc -c <"$part") - 3)) conv=notrunc 2>dd.err
run second train --data few --epochs 2 --batch 20 --workers 2 --json --resume d
[ $code -eq 0 ] || fail "an older checkpoint is not used: $(tail -n 2 second.err)"
same second straight "from the older checkpoint"
grep -q "is skipped.*$newest.*w\." second.err || fail "the altered tensor is not named: $(cat second.err)"

# --- refusals ---------------------------------------------------------------------------------------------------------

rm -rf d empty
mkdir empty
works first train "$@" --checkpoint d --checkpoint-every 7
base="--data few --epochs 2 --batch 20 --workers 2 --resume d"
other() { # TEXT words...: another option than the checkpoint's
    text=$1
    shift
    # shellcheck disable=SC2086
    exits 2 "$text" refused train $base "$@"
}
other "made with '--batch 20', but this run has '--batch 25'" --batch 25
other "'--optimizer adagrad', but this run has '--optimizer adam'" --optimizer adam
other "'--learning-rate 1', but this run has '--learning-rate 0.5'" --learning-rate 0.5
other "this run has '--l2 0.5'" --l2 0.5
other "this run has '--seed 3'" --seed 3
other "this run has '--model hinge'" --model hinge
other "this run has '--consistency ssp:1'" --consistency ssp:1
other "this run has '--reduce exact'" --reduce exact
other "'--epochs 2', but this run has '--epochs 3'" --epochs 3
head -n 150 few >fewer
other "'data of 200 rows in [0-9]* blocks', but this run has 'data of 350 rows" --data fewer
exits 2 "empty.*no checkpoint" refused train --data few --resume empty
exits 1 "nowhere" refused train --data few --resume nowhere
exits 2 "checkpoint-every 0" refused train --data few --checkpoint d --checkpoint-every 0
exits 2 "checkpoint-every 30x" refused train --data few --checkpoint d --checkpoint-every 30x
exits 2 "standard input is refused" refused train --data - --checkpoint d
exits 2 "table w under local x async is refused.*nearest" refused train --data few --checkpoint d --consistency async
touch file
exits 1 "file" refused train --data few --epochs 2 --checkpoint file/d --checkpoint-every 5

# --- the event log of a run that goes on ------------------------------------------------------------------------------

for pair in ps/bsp ps/ssp:2 ps/async allreduce/bsp local/bsp "ps/bsp/--replicas 2" "ps/ssp:1/--replicas 2 --spares 1" "ps/bsp/--filter topk:0.2" "allreduce/bsp/--optimizer-state sharded" "allreduce/bsp/--optimizer-state sharded --replicas 2" \
    gossip:ring/bsp gossip:exp/async gossip:torus/local-sgd:3 ps/local-sgd:3 allreduce/local-sgd:5 "allreduce/local-sgd:3/--replicas 2"; do
    rm -rf d events
    with="--topology ${pair%%/*}"
    rest=${pair#*/}
    with="$with --consistency ${rest%%/*}"
    [ "${rest#*/}" = "$rest" ] || with="$with ${rest#*/}"
    works first train --data few --epochs 2 --batch 20 --optimizer adam --workers 3 --quiet $with --checkpoint d --checkpoint-every 7
    works second train --data few --epochs 2 --batch 20 --optimizer adam --workers 3 --quiet $with --resume d --events events
    works proof audit events
    checksum=$(sed -n 's/.*"checksum":"\([0-9a-f]*\)".*/\1/p' "d/$(last_of d)/manifest.json")
    grep -q ', from clock 14 on' proof.out && grep -q "it goes on from $(last_of d), checksum $checksum$" proof.out ||
        fail "$pair: the audit does not say where the run goes on: $(head -n 2 proof.out)"
done

# --- simulated --------------------------------------------------------------------------------------------------------

if [ "$simgrid" = yes ]; then
    rm -rf d
    set -- --data few --epochs 2 --batch 20 --optimizer adam --reduce exact --topology ps --json --quiet
    works straight train "$@"
    works first train "$@" --transport sim --workers 4 --checkpoint d --checkpoint-every 7
    works second train "$@" --transport sim --workers 3 --resume d
    same second straight "simulated"
fi

finish
