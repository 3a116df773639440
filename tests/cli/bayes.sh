#!/bin/sh
# Naive Bayes counts: the same model, bit for bit, with 1, 2 and 4 workers under every pair whose workers do not average
# copies, on threads, simulated hosts and processes; of real numbers so under --reduce exact, and else but for rounding. It
# goes on from a checkpoint in the middle of its pass, and when a rank dies.
# usage: bayes.sh yes|no (is there a simulator?), or with the path of mpirun: where ranks are processes
. "$(dirname "$0")/common.sh"
way=$1
gzip -dc "$data/digits/digits.csv.gz" >digits.csv
gzip -dc "$data/a9a/a9a.gz" | head -n 2000 >words
awk '{ printf "%s", $1; for (i = 2; i <= NF; i++) { split($i, e, ":"); printf " %d:%s", e[1] * 3000000, e[2] } print "" }' words >wide
train="train --model bayes --json --quiet"
digits="--data digits.csv --label 65 --batch 100"
words="--data words --batch 150"
wide="--data wide --batch 150"
real="$digits --events-model gaussian"

hash_of() { field "$1" model_hash; }

# alike WANTED WHAT words...: the run has the bits of the run WANTED
alike() {
    wanted=$(hash_of "$1") about=$2
    shift 2
    works other "$@"
    [ "$(hash_of other)" = "$wanted" ] || fail "$about: another model"
}

# --- where ranks are processes ------------------------------------------------------------------------------------------

pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }

# dies RANK WAY...: that rank is killed in the middle of the pass, and the model is that of a run in which nobody died
dies() {
    victim=$1
    shift
    rm -rf m out err model model.done
    # shellcheck disable=SC2086
    works slow $train $slow "$@"
    # shellcheck disable=SC2086
    "$PLAIT" launch -n 4 -- "$PLAIT" $train $slow "$@" --replicas 2 --topology ps --metrics m --out model >out 2>err &
    pid=$!
    until_holds 300 says m '"event": "clock"' || fail "$*: no clock ends: $(cat err)"
    kill -KILL "$(pid_of "$victim")" 2>/dev/null || true
    until_holds 120 gone $pid || { fail "$*: does not end"; kill -9 $pid; }
    wait $pid || fail "$*: ends with $?: $(cat err)"
    hash=$(sed -n 's/.*"model_hash": "\([0-9a-f]*\)".*/\1/p' out)
    [ "$hash" = "$(hash_of slow)" ] || fail "$*, without rank $victim: model $hash, not $(hash_of slow)"
    grep -q '"ranks_lost": \[\]' model.done && return 1
    grep -q '"ranks_lost": \['"$victim"'\]' model.done || fail "$*: $(cat model.done)"
}

if [ "$way" != yes ] && [ "$way" != no ]; then
    PLAIT_MPIRUN=$way
    export PLAIT_MPIRUN
    for what in "$digits" "$wide" "$real --reduce exact"; do
        # shellcheck disable=SC2086
        works straight $train $what
        for setting in "--topology ps" "--topology allreduce"; do
            # shellcheck disable=SC2086
            alike straight "$what, processes, $setting" launch -n 3 -- "$PLAIT" $train $what $setting
        done
        case $what in *exact*) continue ;; esac
        # shellcheck disable=SC2086
        alike straight "$what, processes, async" launch -n 2 -- "$PLAIT" $train $what --topology ps --consistency async
    done
    # shellcheck disable=SC2086
    works first launch -n 2 -- "$PLAIT" $train $digits --topology ps --checkpoint d --checkpoint-every 7
    # shellcheck disable=SC2086
    alike first "from processes to threads" $train $digits --workers 3 --resume d
    gzip -dc "$data/a9a/a9a.gz" >many
    slow="--data many --batch 4"
    in_time dies 1
    in_time dies 0 --events-model bernoulli --hash-bits 12
    finish
fi

# --- every pair, and every number of workers -----------------------------------------------------------------------------

cat >pairs <<'END'
local bsp
local ssp:2
local asp:4:50
local bounded-delay:2
local sequential
local vap:1000
local async
allreduce bsp
allreduce bounded-delay:2
ps bsp
ps ssp:2
ps essp:2
ps asp:4:50
ps bounded-delay:2
ps sequential
ps vap:1000
ps vap:1000:weak
ps downpour:4:4
ps async
hybrid bsp
END
for what in "$digits" "$words --events-model bernoulli" "$wide --events-model complement"; do
    # shellcheck disable=SC2086
    works straight $train $what
    while read -r topology consistency; do
        for workers in 1 2 4; do
            # shellcheck disable=SC2086
            alike straight "$what, $workers workers, $topology $consistency" $train $what --workers $workers --topology "$topology" --consistency "$consistency"
        done
    done <pairs
done

# Real numbers: exactly, where their sums are.
# shellcheck disable=SC2086
works straight $train $real --reduce exact
for topology in local allreduce ps hybrid; do
    for workers in 1 2 4; do
        # shellcheck disable=SC2086
        alike straight "gaussian, exact, $workers workers, $topology" $train $real --reduce exact --workers $workers --topology $topology
    done
done
# shellcheck disable=SC2086
works plain $train $real
# shellcheck disable=SC2086
works other $train $real --workers 4 --topology ps --consistency async --threads 3
awk -v a="$(field plain train_loss)" -v b="$(field other train_loss)" 'BEGIN { d = a > b ? a - b : b - a; exit !(d <= 1e-12 * a) }' || fail "gaussian, async: $(field other train_loss), not $(field plain train_loss)"
# shellcheck disable=SC2086
works other $train $real --threads 3
[ "$(hash_of other)" = "$(hash_of plain)" ] || fail "gaussian: the number of threads shows"

# --- from a checkpoint in the middle of the pass ---------------------------------------------------------------------------

for what in "$digits" "$wide" "$real --reduce exact"; do
    # shellcheck disable=SC2086
    works straight $train $what
    for topology in local ps allreduce; do
        rm -rf d
        # shellcheck disable=SC2086
        alike straight "$what with checkpoints, $topology" $train $what --workers 3 --topology $topology --checkpoint d --checkpoint-every 5
        "$PLAIT" checkpoint list d | tail -n 1 | grep -q "clock [0-9]" || fail "$what, $topology: no checkpoint"
        # shellcheck disable=SC2086
        alike straight "$what resumed, $topology" $train $what --workers 2 --topology $topology --resume d
    done
done

# --- a stream, and blocks that change hands --------------------------------------------------------------------------------

mkdir folder
for part in 1 2 3; do sed -n "$((part * 600 - 599)),$((part * 600))p" digits.csv >folder/part$part.csv; done
stream="--data folder --label 65 --epochs 1 --batch 100"
cat folder/*.csv >same.csv
# shellcheck disable=SC2086
{
    works straight $train --data same.csv --label 65 --batch 100 --events-model multinomial
    alike straight "a stream" $train $stream --events-model multinomial --workers 3 --topology ps --consistency async
    for topology in ps allreduce; do
        rm -rf d
        alike straight "a stream with checkpoints, $topology" $train $stream --events-model multinomial --workers 3 --topology $topology --checkpoint d --checkpoint-every 4
        rm -rf "$(ls -d d/* | sort | tail -n 1)"
        alike straight "a stream resumed, $topology" $train $stream --events-model multinomial --workers 2 --topology $topology --resume d
    done
    "$PLAIT" $train --data - --label 65 --batch 100 --events-model multinomial <same.csv >piped.out 2>piped.err || fail "from a pipe: $(cat piped.err)"
    [ "$(hash_of piped)" = "$(hash_of straight)" ] || fail "from a pipe: another model"
    for what in "$digits" "$wide" "$words"; do
        works straight $train $what
        for pair in "local bsp" "ps bsp" "ps async" "allreduce bsp"; do
            alike straight "$what, blocks that change hands, $pair" $train $what --workers 4 --balance dynamic --topology ${pair% *} --consistency ${pair#* }
        done
    done
}

# --- simulated hosts --------------------------------------------------------------------------------------------------------

if [ "$way" = yes ]; then
    # What is parsed and what is counted takes simulated time.
    seconds=0
    for cost in "parsed: 0 ns, entry: 0 ns" "parsed: 1 us, entry: 0 ns" "parsed: 1 us, entry: 1 us"; do
        printf 'version: 1\nhosts: [{count: 2}]\ncost: {%s}\n' "$cost" >c.yaml
        # shellcheck disable=SC2086
        works simulated $train $stream --transport sim --cluster c.yaml --workers 2 --topology ps
        awk -v now="$(field simulated virtual_seconds)" -v before="$seconds" 'BEGIN { exit !(now > before + 0.02) }' ||
            [ "$seconds" = 0 ] || fail "a stream at $cost: $(field simulated virtual_seconds) s, not above $seconds s"
        seconds=$(field simulated virtual_seconds)
    done
    # A slow host is given fewer rows.
    printf 'version: 1\nhosts: [{count: 1}, {count: 1, speed: 0.25}]\ncost: {entry: 2us}\n' >c.yaml
    # shellcheck disable=SC2086
    alike straight "a slow host" $train $words --transport sim --cluster c.yaml --workers 2 --topology ps --balance dynamic
    for what in "$digits" "$wide"; do
        # shellcheck disable=SC2086
        works straight $train $what
        for setting in "ps ssp:2" "ps async" "allreduce bsp"; do
            # shellcheck disable=SC2086
            alike straight "$what, simulated, $setting" $train $what --transport sim --workers 4 --topology ${setting% *} --consistency ${setting#* }
        done
        for at in "2 ms" "3 ms" "5 ms"; do
            printf 'version: 1\nhosts: [{count: 5}]\nevents:\n  - kill: {ranks: 1, at: %s}\n' "$at" >c.yaml
            # shellcheck disable=SC2086
            alike straight "$what, simulated, a death after $at" $train $what --batch 20 --transport sim --cluster c.yaml --workers 5 --spares 1 --topology ps --replicas 2 --metrics m
            grep -q '"event": "rank_lost"' m || fail "$what: nobody was lost after $at"
        done
    done
fi

# --- used ------------------------------------------------------------------------------------------------------------------

for kind in multinomial complement bernoulli gaussian; do
    # shellcheck disable=SC2086
    works trained $train $digits --events-model $kind --test digits.csv --out model
    works judged eval --model-file model --data digits.csv --json
    [ "$(field judged test_loss)" = "$(field trained test_loss)" ] || fail "$kind: saved, another loss"
    works told inspect model
    grep -q "\"events\": \"$kind\"" told.out || fail "$kind: inspect does not tell"
    works weights inspect model --weights
    works said predict --model-file model --data digits.csv --proba
    awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i; if (NF != 10 || s < 1 - 1e-7 || s > 1 + 1e-7) exit 1 }' said.out || fail "$kind: no probabilities"
done
# An event log named as a kind of features is hardly meant.
"$PLAIT" train --model bayes $digits --events gaussian >meant.out 2>meant.err || fail "--events gaussian: $(cat meant.err)"
grep -q 'note: --events gaussian writes an event log to the file gaussian; the kind of features is --events-model gaussian' meant.err ||
    fail "--events gaussian: no hint: $(cat meant.err)"
"$PLAIT" train --model bayes $digits --events log --events-model gaussian >meant.out 2>meant.err || fail "--events log: $(cat meant.err)"
grep -q 'writes an event log' meant.err && fail "--events log: $(cat meant.err)"
# A part of the rows is held back, and tells what the model is worth.
# shellcheck disable=SC2086
works held $train $digits --validation 0.2
awk -v x="$(field held validation_loss)" 'BEGIN { exit !(x > 0.5 && x < 10) }' || fail "validation: $(field held validation_loss)"
# Two rows are one of weight 2; a class that weighs 2 has each of its rows twice.
head -n 500 words >once
awk '{ print; if ($1 > 0) print }' once >twice
works straight $train --data twice
alike straight "a class that weighs 2" $train --data once --class-weight 1:2
awk '{ print ($1 > 0 ? 2 : 1) }' once >once.weight
alike straight "rows that weigh 2" $train --data once
rm once.weight

# --- refused by name -----------------------------------------------------------------------------------------------------------

sed 's/:1/:-1/' words >negative
# shellcheck disable=SC2086
{
    exits 2 "it needs one copy of its values" averaged $train $digits --workers 2 --topology gossip:ring
    exits 2 "is refused" averaged $train $digits --workers 2 --consistency local-sgd:2 --topology ps
    exits 2 "backup" late $train $digits --workers 3 --topology ps --backup 1
    exits 2 "epochs above 1 with model bayes is refused: one pass is all" again $train $digits --epochs 2
    exits 2 "no-intercept with model bayes is refused" bare $train $digits --no-intercept
    exits 2 "filter fixed8" rounded $train $digits --workers 2 --topology ps --filter fixed8
    exits 1 "row 1 has the value -1, .* take --events-model gaussian" negative $train --data negative --events-model multinomial
    exits 2 "gaussian with .* features .* is refused" grown $train $wide --events-model gaussian
}
works chosen train --model bayes --data negative
grep -q "events-model: gaussian, since values are negative" chosen.err || fail "the choice is not told: $(cat chosen.err)"
finish
