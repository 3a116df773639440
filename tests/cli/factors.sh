#!/bin/sh
# Factorisation: ratings as text and as tables; als has the same bits with 1, 2 and 4 workers under every pair that it can
# have, and sgd under ssp:2 those of bsp; a run goes on with another number of workers; the audit certifies the rotation;
# cold rows, unknown users and mistakes are named; recommend leaves out what --data names.
. "$(dirname "$0")/common.sh"

# ratings FROM TO: three factors of 60 users and 40 items, each pair that the numbers choose
ratings() {
    awk -v from="$1" -v to="$2" 'BEGIN { for (k = from; k < to; k++) { u = (k * 7919) % 60; i = (k * 104729 + int(k / 60)) % 40;
        r = 3 + sin(u) + cos(i) + sin(u * 1.7) * cos(i * 2.3); printf "user%d item%d %.2f\n", u, i, r } }'
}
ratings 0 1500 >train
ratings 1500 1700 >test
train="train --model mf --data train --test test --json --quiet --components 6 --epochs 8"
hash_of() { field "$1" model_hash; }
alike() { [ "$(hash_of "$1")" = "$(hash_of "$2")" ] || fail "$3: another model than $1"; }
below() { awk -v x="$(field "$1" "$2")" -v y="$3" 'BEGIN { exit !(x < y) }' || fail "$1: $2 is $(field "$1" "$2"), not below $3"; }

# --- it learns, and workers do not matter to als ---------------------------------------------------------------------------
# shellcheck disable=SC2086
works sgd $train --epochs 40 --l2 0.01 --out model
below sgd test_rmse 0.35
# shellcheck disable=SC2086
works als $train --optimizer als --l2 0.01
below als test_rmse 0.15
for setting in "--workers 2" "--workers 4 --topology ps" "--workers 3 --topology allreduce" "--workers 2 --threads 2" \
    "--workers 4 --topology ps --consistency bounded-delay:0"; do
    # shellcheck disable=SC2086
    works other $train --optimizer als --l2 0.01 $setting
    alike als other "als $setting"
done
# shellcheck disable=SC2086
works implicit $train --loss implicit
# shellcheck disable=SC2086
works other $train --loss implicit --workers 4 --topology ps
alike implicit other "implicit, 4 workers"
[ "$(field implicit optimizer)" = als ] || fail "implicit: optimizer $(field implicit optimizer)"
awk 'BEGIN { for (u = 0; u < 60; u++) for (i = 0; i < 40; i++) if (i % 4 == u % 4) print "u" u, "i" i }' >liked
awk '{ u = substr($1, 2); i = int(substr($2, 2) / 4); print >((u + i) % 5 == 0 ? "liked.test" : "liked.train") }' liked
liked="train --model mf --format ratings --data liked.train --test liked.test --label none --json --quiet --components 8"
for loss in bpr implicit; do # users like a quarter of the items; some of those were held back
    # shellcheck disable=SC2086
    works $loss $liked --loss $loss --epochs 30 --workers 2 --out liked.model
    works measured eval --model-file liked.model --data liked.test --json
    [ "$(field measured test_auc)" = "$(field $loss test_auc)" ] || fail "$loss: eval says $(field measured test_auc)"
    awk -v x="$(field $loss test_auc)" 'BEGIN { exit !(x > 0.7 && x <= 1) }' || fail "$loss: auc $(field $loss test_auc)"
done

# --- the step size is found by trying: small where users have few ratings and there is much noise, large where there are many --
awk 'BEGIN { srand(5); for (k = 0; k < 4000; k++) { u = int(rand() * 1200); i = int(rand() * 200); n = rand() + rand() + rand() - 1.5
    printf "u%d i%d %.2f\n", u, i, 3 + 0.5 * sin(u) + 0.5 * cos(i) + 1.5 * n >(k % 8 ? "sparse" : "sparse.test") } }'
noisy="train --model mf --format ratings --data sparse --test sparse.test --json"
# shellcheck disable=SC2086
works found $noisy
# shellcheck disable=SC2086
works usual $noisy --learning-rate 0.1
says found.err 'learning rate: 0.0[125]*, which of 6 rates' || fail "sparse ratings: $(cat found.err)"
says usual.err 'learning rate' && fail "a rate that was given is tried: $(cat usual.err)"
awk -v a="$(field found test_rmse)" -v b="$(field usual test_rmse)" 'BEGIN { exit !(a < 0.99 * b) }' ||
    fail "RMSE $(field found test_rmse) at the rate found, $(field usual test_rmse) at 0.1"
# shellcheck disable=SC2086
works other $noisy --workers 3 --topology ps
[ "$(grep 'learning rate' found.err)" = "$(grep 'learning rate' other.err)" ] || fail "the rate depends on workers: $(cat other.err)"
works dense train --model mf --data train --components 6 --json
says dense.err 'learning rate: 0.[124], which' || fail "many ratings a user: $(cat dense.err)"
# twice as many passes, unless the least rate wins
[ "$(field found learning_rate)" != 0.0125 ] || [ "$(field found epochs)" = 40 ] || fail "the least rate has $(field found epochs) epochs"
[ "$(field dense epochs)" = 80 ] || fail "a rate of $(field dense learning_rate) has $(field dense epochs) epochs"
works dense train --model mf --data train --components 6 --schedule constant --json
[ "$(field dense epochs)" = 40 ] || fail "a constant rate has $(field dense epochs) epochs"

# --- rotation: with blocks enough, stale reads miss nothing; and it is certified ------------------------------------------
# shellcheck disable=SC2086
works four $train --workers 4 --topology ps
for setting in "ps ssp:2" "ps ssp:3" "local bsp" "allreduce bsp" "ps async"; do
    # shellcheck disable=SC2086
    works other $train --workers 4 --topology ${setting% *} --consistency ${setting#* }
    case $setting in
    *async) below other test_rmse 0.9 ;;
    *) alike four other "sgd $setting" ;;
    esac
done
# shellcheck disable=SC2086
works logged $train --workers 4 --topology ps --consistency ssp:2 --epochs 2 --events events
works certified audit --schedule events
works model_audit audit events
# shellcheck disable=SC2086
works logged $train --workers 4 --topology ps --consistency ssp:2 --epochs 2 --item-blocks 4 --events events
code=0
"$PLAIT" audit --schedule events >refuted 2>&1 || code=$?
[ $code = 4 ] || fail "too few blocks for ssp:2 are certified: $(cat refuted)"
says refuted conflict || fail "audit: $(cat refuted)"

# --- a slow worker gets fewer users: one of four hosts has half the speed ---------------------------------------------------
# shellcheck disable=SC2086
works moved $train --workers 3 --topology ps --consistency ssp:2 --balance dynamic --events events
works certified audit --schedule events
below moved test_rmse 0.9
printf 'version: 1\nhosts: [{count: 3}, {count: 1, speed: 0.5}]\ncost: {entry: 1us}\n' >half.yaml
ratings 0 12000 >more
if "$PLAIT" version | grep -q 'simgrid.*found\|sim .*found' || "$PLAIT" train --data part --transport sim --workers 2 --epochs 1 --quiet >sim.out 2>&1; then
    for balance in static dynamic; do
        works sim-$balance train --model mf --data more --components 8 --epochs 8 --learning-rate 0.1 --workers 4 --transport sim --cluster half.yaml \
            --balance $balance --metrics $balance.metrics --json --quiet
    done
    awk -v a="$(field sim-static virtual_seconds)" -v b="$(field sim-dynamic virtual_seconds)" 'BEGIN { exit !(b < 0.8 * a) }' ||
        fail "static took $(field sim-static virtual_seconds) simulated seconds, dynamic $(field sim-dynamic virtual_seconds)"
    grep shares dynamic.metrics | sed 's/.*rows": \[//; s/[],}]/ /g' >shares # of the last epoch: 3.5 workers' shares of 12000
    awk '{ if ($1 + $2 + $3 + $4 != 12000) exit 1; last = $4 } END { exit !(last > 1400 && last < 2100) }' shares || fail "shares: $(cat shares)"
    awk -v a="$(field sim-static train_loss)" -v b="$(field sim-dynamic train_loss)" 'BEGIN { exit !(b < 1.2 * a) }' || fail "dynamic: $(cat sim-dynamic.out)"
fi

# --- it goes on with another number of workers -----------------------------------------------------------------------------
# shellcheck disable=SC2086
works whole $train --optimizer als --workers 2
# shellcheck disable=SC2086
works part $train --optimizer als --epochs 3 --checkpoint kept --checkpoint-every 1 --workers 4
# shellcheck disable=SC2086
works rest $train --optimizer als --resume kept --workers 1
alike whole rest "als, resumed"
# shellcheck disable=SC2086
works whole $train --workers 2 --schedule constant
# shellcheck disable=SC2086
works part $train --schedule constant --epochs 3 --checkpoint steps --checkpoint-every 1 --workers 2
# shellcheck disable=SC2086
works rest $train --schedule constant --resume steps --workers 2
alike whole rest "sgd, resumed"
# shellcheck disable=SC2086
works rest $train --schedule constant --resume steps --workers 4 --topology ps
below rest test_rmse 0.9
# shellcheck disable=SC2086
exits 2 "made with '--schedule constant" none $train --learning-rate 0.2 --resume steps --workers 2

# --- tables: columns by name, in another order, with more --------------------------------------------------------------------
awk 'BEGIN { print "time,item,rating,user" } { print NR "," $2 "," $3 "," $1 }' train >named.csv
awk 'BEGIN { print "user,item" } { print $1 "," $2 }' test >pairs.csv
# shellcheck disable=SC2086
works table train --model mf --data named.csv --optimizer als --epochs 8 --components 6 --json --out byname
says table.err 'left out, from "time" on' || fail "named.csv: $(cat table.err)"
# shellcheck disable=SC2086
works same train --model mf --data train --optimizer als --epochs 8 --components 6 --json --out asis
works a predict --model-file byname --data pairs.csv
works b predict --model-file asis --data test
paste a.out b.out | awk '{ d = $1 - $2; if (d > 1e-4 || d < -1e-4) bad = 1 } END { exit bad }' || fail "a table gives other values"

works unused train --model mf --data train --epochs 1 --normalize none --tolerance 0.1
says unused.err 'normalize has no effect' || fail "--normalize is not noted: $(cat unused.err)"
says unused.err 'tolerance has no effect' || fail "--tolerance is not noted: $(cat unused.err)"

works shown train --model mf --data train --epochs 1 --quiet --out shown
says shown.out '^components  *32$' || fail "the record: $(cat shown.out)"
works shown inspect shown
says shown.out '^option	components 32$' || fail "inspect: $(cat shown.out)"
says shown.out '^option	item-blocks 16$' || fail "inspect: $(cat shown.out)"

# --- cold rows -----------------------------------------------------------------------------------------------------------------
printf 'nobody item3 3\nuser3 nothing 3\nnobody nothing 3\n' >cold
works cold predict --model-file model --data cold
says cold.err 'name users that the model does not know, first "nobody"' || fail "cold: $(cat cold.err)"
says cold.err 'name items that the model does not know, first "nothing"' || fail "cold: $(cat cold.err)"
[ "$(wc -l <cold.out)" = 3 ] || fail "cold: $(cat cold.out)"
works cold_eval eval --model-file model --data cold --json
awk -v x="$(field cold_eval test_rmse)" 'BEGIN { exit !(x > 0) }' || fail "cold: $(cat cold_eval.out)"

# --- recommend -------------------------------------------------------------------------------------------------------------------
works best recommend --model-file model --top 3
[ "$(wc -l <best.out)" = 180 ] || fail "recommend: $(wc -l <best.out) lines"
awk -F '\t' 'NF != 3 || ($1 == last && $3 > score) { exit 1 } { last = $1; score = $3 }' best.out || fail "recommend: not in order"
printf 'user5\nnobody\nuser2\n' >users
works some recommend --model-file model --top 2 --data users
[ "$(cut -f 1 some.out | uniq | tr '\n' ' ')" = "user5 user2 " ] || fail "recommend --data: $(cat some.out)"
says some.err 'first "nobody"' || fail "recommend: $(cat some.err)"
works fresh recommend --model-file model --top 3 --data train
cut -f 1,2 fresh.out | tr '\t' ' ' | while read -r user item; do ! grep -q "^$user $item " train || echo "$user $item"; done >again
[ ! -s again ] || fail "recommend names items that --data names: $(head -n 1 again)"
works written recommend --model-file model --top 3 --out best
cmp -s best best.out || fail "recommend --out writes something else"
works objects recommend --model-file model --top 3 --json
[ "$(wc -l <objects.out)" = 60 ] || fail "recommend --json: $(wc -l <objects.out) lines"
! command -v python3 >/dev/null || python3 - objects.out best.out <<'PYTHON' || fail "recommend --json: $(head -n 2 objects.out)"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
flat = [(o["user"], i["item"], "%.9g" % i["score"]) for o in lines for i in o["items"]]
assert len(lines) == 60 and flat == [tuple(line.rstrip("\n").split("\t")) for line in open(sys.argv[2])]
PYTHON
echo nobody >stranger
works stranger recommend --model-file model --top 3 --data stranger
says stranger.err 'so there are no lines' || fail "recommend, a stranger: $(cat stranger.err)"
exits 2 'top wants a whole number from 1' none recommend --model-file model --top 0
works linear train --model logistic --data part --epochs 1 --out other --quiet
exits 2 '^plait: recommend: model logistic is refused: only a factorisation' none recommend --model-file other --top 3
exits 2 '^plait: recommend: no model' none recommend --top 3
exits 2 "unknown option --topp; did you mean --top" none recommend --model-file model --topp 3

# --- mistakes ----------------------------------------------------------------------------------------------------------------------
mf="train --model mf --quiet"
# shellcheck disable=SC2086
exits 2 'needs a user, an item and a value' none $mf --data part
{ head -n 20 train && echo 'user1 item1 bad' && tail -n 20 train; } >bad
# shellcheck disable=SC2086
exits 1 '^plait: bad:21: column "c3": expected a value [(]a finite number[)], found "bad"$' none $mf --format ratings --data bad
{ head -n 20 train && echo 'user1 item1' && tail -n 20 train; } >bad
# shellcheck disable=SC2086
exits 1 '^plait: bad:21: expected 3 cells, found 2' none $mf --format ratings --data bad
{ echo 'user1 item1 x' && head -n 40 train; } >bad # it could be a header of other names: the user must say
# shellcheck disable=SC2086
exits 1 '^plait: bad:1: "x" is no number, but those below it are.*say --header yes' none $mf --format ratings --data bad
# shellcheck disable=SC2086
exits 1 'bad:1: .*found "x"' none $mf --format ratings --data bad --header no
# shellcheck disable=SC2086
works stars $mf --format ratings --data bad --header yes --epochs 1 --json
[ "$(field stars rows)" = 40 ] || fail "--header yes: $(cat stars.out)"
awk 'BEGIN { print "user_id,when,item_id,rating" } { print $1 "," NR "," $2 "," $3 }' train >order.csv
# shellcheck disable=SC2086
works order $mf --data order.csv --epochs 1 --json
[ "$(field order features)" = 100 ] || fail "columns by name: $(cat order.out)"
awk 'BEGIN { print "stars,user,item" } { print $3 "," $1 "," $2 }' train >order.csv # the one that is not named has values
# shellcheck disable=SC2086
works order $mf --data order.csv --epochs 1 --json
[ "$(field order features)" = 100 ] || fail "a value's column without a usual name: $(cat order.out)"
printf '1 1:2 3:4\n' >numbered
for format in auto libsvm; do
    exits 2 'numbered: these are libsvm rows.*user and an item in each line' none predict --model-file model --data numbered --format $format
done
# shellcheck disable=SC2086
exits 2 'without values take --loss implicit' none $mf --format ratings --data liked --label none
# shellcheck disable=SC2086
exits 1 'none of values' none $mf --format ratings --data liked
# shellcheck disable=SC2086
exits 2 'hinge' none $mf --data train --loss hinge
for words in '--init-model model' '--validation 0.2' '--layers 3' '--graph model' --no-intercept; do
    # shellcheck disable=SC2086
    exits 2 "with model mf is refused.*(nearest|leave it out)" none $mf --data train $words
done
# shellcheck disable=SC2086
exits 2 '--optimizer sgd and --loss implicit with model mf is refused.*nearest is --optimizer als' none $mf --data train --loss implicit --optimizer sgd
# shellcheck disable=SC2086
exits 2 'nearest is --optimizer sgd' none $mf --data train --optimizer adam
# shellcheck disable=SC2086
exits 2 'als.*nearest' none $mf --data train --optimizer als --topology ps --consistency ssp:2
# shellcheck disable=SC2086
exits 2 'nearest' none $mf --data train --topology gossip:ring --workers 3
exits 2 'written for factorisations' none train --model logistic --data part --optimizer als
finish
