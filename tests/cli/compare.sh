#!/bin/sh
# compare: a row a pair, also one that is refused; JSON that parses; a page that asks for nothing; an interrupted
# comparison tells what was done. Argument: yes where SimGrid is there.
. "$(dirname "$0")/common.sh"

mkdir tmp
export TMPDIR="$PWD/tmp"
works few compare --data part --optimizer adagrad --workers 2 --epochs 3 --topology local,allreduce --consistency bsp,ssp:1 --report page.html --json
grep -q '^. local x ssp:1 ' few.out || fail "no row of local x ssp:1"
grep -q '^  allreduce x ssp:1 refused: [a-z]' few.out || fail "no reason why allreduce x ssp:1 is refused"
[ "$(ls -A tmp)" = "" ] || fail "left behind: $(ls -A tmp)"
json few.out 'len(o["pairs"]) == 4 and len(o["runs"]) == 10 and not o["interrupted"] and o["repeats"] == 3'
json few.out 'all(r["model_hash"] and r["objective"] > 0 and len(r["ranks"]) == 2 for r in o["runs"] if r["outcome"] == "ran")'
json few.out 'all(len(r["points"]["loss"]) == len(r["points"]["bytes"]) > 10 for r in o["runs"] if r["outcome"] == "ran")'
json few.out '[p["outcome"] for p in o["pairs"]] == ["ran", "ran", "ran", "refused"]'
json few.out 'o["pairs"][1]["audit"] == "proven" and o["pairs"][1]["staleness_max"] <= 1 and sum(o["pairs"][1]["staleness"]) > 0'
json few.out 'o["judgement"]["sentence"] and o["machine"]["cores"] > 0 and o["machine"]["plait"]'
json few.out 'o["runs"][0]["outcome"] == "refused" and o["runs"][0]["exit_code"] == 2'

# Where a topology has no servers their hosts work; who leaves the target again is marked.
works hosts compare --data part --workers 2 --servers 1 --epochs 2 --topology ps,allreduce --consistency bsp --repeats 1 --json
json hosts.out '[p["servers_that_work"] for p in o["pairs"]] == [0, 1] and [p["runs"] for p in o["pairs"]] == [1, 1]'
json hosts.out 'all(r["workers"] == (3 if r["topology"] == "allreduce" else 2) for r in o["runs"])'
grep -q '^allreduce x bsp has no servers: the 1 host of .* worked too, 3' hosts.out || fail "it is not told that servers work: $(cat hosts.out)"
works leaves compare --data part --workers 1 --epochs 9 --optimizer sgd --learning-rate 60 --schedule constant --topology ps --consistency bsp --repeats 1 --target 0.7 --json --quiet
json leaves.out 'o["pairs"][0]["reached"] and not o["pairs"][0]["stayed"]'
grep -q '^[* ]!ps x bsp' leaves.out || fail "who leaves the target is not marked: $(cat leaves.out)"
[ "$(sed '/^{/d' leaves.out | awk 'length($0) > 80' | wc -l)" -eq 0 ] || fail "lines are longer than 80 columns"

# auto may choose another optimizer for each pair: then there is a column, and else none.
works chosen compare --data part --workers 2 --epochs 40 --topology local,gossip:ring --consistency bsp --repeats 1 --json
json chosen.out '[p["optimizer"] for p in o["pairs"]] == ["lbfgs", "newton"]'
grep -q '^  setting  *optimizer  *time' chosen.out || fail "no column of optimizers: $(cat chosen.out)"
grep -q '^[* ][! ]local x bsp  *lbfgs ' chosen.out || fail "local's optimizer is not told: $(cat chosen.out)"
grep -q '^[* ][! ]gossip:ring x bsp  *newton ' chosen.out || fail "gossip's optimizer is not told: $(cat chosen.out)"
json few.out '[p["optimizer"] for p in o["pairs"]] == ["adagrad"] * 3 + [None]'
grep -q '^  setting.*optimizer' few.out && fail "a column of optimizers that are all the same: $(cat few.out)"

# The page: whole, with its data, and nothing in it that a browser would fetch.
is_page page.html
grep -q '"topology": "local"' page.html || fail "the page has no data"

# Names and options that are wrong are said before anything runs; what a run says is its row.
exits 2 'out.*is for a single run' out compare --data part --out model
exits 2 'no data' nothing compare --topology ps
exits 2 'cut is refused: compare draws' cut compare --data part --model mlp --workers 2 --cut 2
exits 2 'can be read only once' pipe compare --data -
exits 1 'nowhere/page' nowhere compare --data part --report nowhere/page.html
for words in "--data gone" "--data part --test gone" "--data gone/*.svm"; do
    exits 1 'gone' missing compare $words --topology local,ps --consistency bsp
    grep -q 'pairs' missing.out missing.err && fail "$words: pairs begin before the file is looked for: $(cat missing.err)"
done
printf '1 1:x\n' >wrong
run missing compare --data wrong --topology local --consistency bsp --quiet
[ $code -eq 1 ] || fail "exit $code where no run could read its data"
grep -q 'local x bsp failed: .*wrong' missing.out || fail "no reason: $(cat missing.out)"
# What stops all settings is said once, and nothing is repeated.
exits 1 '' all compare --data wrong --workers 2 --topology local,ps,allreduce --consistency bsp,bounded-delay:1
grep -q '^  all 6 settings failed: .*wrong' all.out || fail "what stops all settings: $(cat all.out)"
[ "$(grep -c wrong all.out)" -eq 1 ] || fail "said $(grep -c wrong all.out) times: $(cat all.out)"
grep -q 'repeat\|loss' all.out all.err && fail "repeats of what never ran: $(cat all.out all.err)"
works some compare --data part --workers 2 --epochs 1 --topology local,allreduce,ps --consistency bsp,ssp:1,essp:1 --repeats 1 --quiet
grep -q '^  allreduce x ssp:1 refused' some.out && grep -q '^  allreduce x essp:1 refused' some.out || fail "reasons of their own: $(cat some.out)"
exits 2 "unknown topology 'lokal'; did you mean 'local'" typo compare --data part --topology ps,lokal
exits 2 "unknown consistency 'spp:2'; did you mean 'ssp:S'" typo compare --data part --topology ps --consistency bsp,spp:2
exits 2 'needs a staleness bound' bound compare --data part --consistency ssp
exits 2 'gossip:ring|torus|exp' word compare --data part --topology gossip
exits 2 'take names' empty compare --data part --topology ''
exits 2 'ps x bsp is named twice' twice compare --data part --topology ps,local,ps --consistency bsp
[ "$(ls -A tmp)" = "" ] || fail "left behind: $(ls -A tmp)"

# Options of the job come from variables and a configuration, too; those of a run do not reach the runs.
printf 'epochs: 2\nout: model\nmetrics: m\n' >job.yaml
PLAIT_SEED=3 PLAIT_WORKERS=9 works from compare --config job.yaml --data part --workers 2 --topology ps --consistency bsp --repeats 1 --json
json from.out 'o["runs"][0]["epochs"] == 2 and o["runs"][0]["workers"] == 2 and "--seed 3" in o["settings"]'
[ ! -e model ] && [ ! -e m ] || fail "a run has written what the configuration names for a single one"

# A narrow terminal, and a target of one's own; who forgets the workers is told.
works alone compare --data part --epochs 1 --topology local --consistency bsp --repeats 1
grep -q 'note: a single worker has nobody' alone.err || fail "one worker is compared without a word: $(cat alone.err)"
works target compare --data part --epochs 2 --topology local --consistency bsp --repeats 1 --target 0.0001 --quiet
grep -q 'No setting reached an objective of 0.0001' target.out || fail "reached what cannot be reached"

# The first Ctrl-C: the run at hand ends, what was done is told.
"$PLAIT" compare --data part --epochs 100000 --batch 20 --topology local --consistency bsp --report cut.html --json >cut.out 2>cut.err &
pid=$!
until_holds 300 sh -c 'ls tmp/*/metrics' >ls.out 2>&1 || fail "it does not begin"
until_holds 300 sh -c 'grep -q clock tmp/*/metrics' || fail "no clock of a run"
kill -INT $pid
wait $pid && code=0 || code=$?
[ $code -eq 75 ] || fail "exit $code of an interrupted comparison: $(cat cut.err)"
json cut.out 'o["interrupted"] and o["runs"][-1]["outcome"] == "stopped" and "Interrupted" in o["judgement"]["sentence"]'
grep -q '</html>' cut.html || fail "an interrupted comparison has no page"
[ "$(ls -A tmp)" = "" ] || fail "left behind: $(ls -A tmp)"

if [ "${1:-}" = yes ]; then
    # In simulated time repeats differ by their seeds, and a slow rank is what the others wait for.
    printf 'version: 1\nhosts: [{count: 3}]\ncost: {entry: 1 us}\nevents: [{slow: {ranks: 1, factor: 3}}]\n' >slow.yaml
    works sim compare --data part --optimizer adagrad --epochs 3 --workers 3 --transport sim --cluster slow.yaml --topology ps,allreduce --consistency bsp --json
    json sim.out 'len({r["trace_hash"] for r in o["runs"]}) == 6 and all(r["virtual_seconds"] > 0 for r in o["runs"])'
    json sim.out 'all(r["ranks"][0]["wait_seconds"] > 1.5 * r["ranks"][0]["compute_seconds"] for r in o["runs"])'
    json sim.out 'all(r["ranks"][1]["wait_seconds"] < 0.1 * r["ranks"][1]["compute_seconds"] for r in o["runs"])'
    printf 'version: 1\nhosts: [{count: 3}]\ncost: {clock: 5 ms}\n' >clock.yaml
    works clock compare --data part --optimizer adagrad --epochs 3 --workers 3 --transport sim --cluster clock.yaml --topology ps,allreduce,gossip:ring --consistency bsp --repeats 1 --json
    json clock.out 'all(abs(k["compute_seconds"] - 0.005 * r["clocks"]) < 0.02 * k["compute_seconds"] for r in o["runs"] for k in r["ranks"])'
    json sim.out 'all(abs(sum(r["ranks"][k][t] for t in ("compute_seconds", "wait_seconds", "network_seconds")) - r["train_seconds"]) < 0.01 * r["train_seconds"] for r in o["runs"] for k in range(3))'
fi
finish
