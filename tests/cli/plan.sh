#!/bin/sh
# plait plan: what it says of a whole job is what train reports of it under --transport sim, which also exchanges what its
# ranks have read; of some clocks it reckons the rest; what cannot be simulated is named; signals end it.
# usage: plan.sh yes|no      is there a simulator?
. "$(dirname "$0")/common.sh"

refused() { # refused WHY words...
    why=$1
    shift
    code=0
    "$PLAIT" plan "$@" >out 2>err || code=$?
    [ $code -eq 2 ] || fail "plan $*: exit $code"
    grep -q -- "$why" err || fail "plan $*: $(cat err)"
}
refused 'no data; say --data D' --sizes 2
refused "unknown topology 'pss'; did you mean 'ps'" --data part --topology ps,pss
refused 'expected numbers of workers' --data part --sizes 2,x
refused 'give one of them' --data part --sizes 2 --workers 2
refused 'a plan simulates' --data part --transport threads
refused '--out is for a single run' --data part --out model
refused 'did you mean --sizes' --data part --size 2
exits 1 '^plait: gone.yaml: ' gone plan --data part --cluster gone.yaml
# A wrong file of a cluster is told once, and not by each setting.
printf 'version: 1\nhosts: [{count: 0}]\n' >wrong.yaml
code=0
"$PLAIT" plan --data part --cluster wrong.yaml >out 2>err || code=$?
[ $code -ne 0 ] && [ ! -s out ] && [ "$(grep -c 'wrong.yaml:2' err)" = 1 ] || fail "a wrong cluster: exit $code: $(cat out err)"
if [ "$1" = no ]; then
    code=0
    "$PLAIT" plan --data part >out 2>err || code=$?
    [ $code -ne 0 ] && grep -q 'libsimgrid' out || fail "without a simulator: exit $code: $(cat out err)"
    finish
    exit 0
fi

# near KEY PLAN RUN_KEY SHARE: the plan's figure is at most so much off that of the run
near() {
    awk -v a="$(field "$2" "$1")" -v b="$(field run "$3")" -v s="$4" \
        'BEGIN { d = a > b ? a - b : b - a; exit !(a != "" && b > 0 && d <= s * b) }' ||
        fail "$setting: $1 $(field "$2" "$1"), of the run $(field run "$3")"
}
# of KEY: the values of a key of the settings, in order, a line each
of() { grep -o "\"$2\": [^,}]*" "$1.out" | sed 's/.*: //'; }

job="--data part --optimizer adagrad --epochs 3 --seed 5"
# shellcheck disable=SC2086
for setting in 'ps bsp 3' 'allreduce bsp 2' 'ps async 4'; do
    # shellcheck disable=SC2086
    set -- $setting
    works whole plan $job --json --clocks 0 --seeds 1 --topology "$1" --consistency "$2" --workers "$3"
    works run train $job --json --quiet --transport sim --topology "$1" --consistency "$2" --workers "$3"
    [ "$(field whole clocks)" = "$(field run clocks)" ] || fail "$setting: $(field whole clocks) clocks"
    near seconds whole train_seconds 0.03
    near bytes whole bytes_sent 0.03
    near idle_share whole idle_share 0.01
    near objective whole objective 0.02
    # The first of ten epochs foretell the whole.
    works some plan $job --epochs 30 --json --clocks 20 --seeds 1 --topology "$1" --consistency "$2" --workers "$3"
    works run train $job --epochs 30 --json --quiet --transport sim --topology "$1" --consistency "$2" --workers "$3"
    [ "$(field some ended)" = false ] && [ "$(field some clocks)" = "$(field run clocks)" ] || fail "$setting: $(cat some.out)"
    [ "$(field some clocks_simulated)" -le $(($(field run clocks) / 2)) ] || fail "$setting: too many clocks were simulated"
    near seconds some train_seconds 0.2
    near bytes some bytes_sent 0.1
done

# Sizes, costs, and a cluster that has no room; what is refused has its reason, once.
printf 'version: 1\nhosts: [{count: 4}]\nevents: [{jitter: {sigma: 0.5}}]\n' >four.yaml
# shellcheck disable=SC2086
works sizes plan $job --json --cluster four.yaml --sizes 2,4,8 --price 3600 --consistency bsp,async
[ "$(of sizes workers | wc -l)" = 12 ] || fail "settings: $(of sizes workers | tr '\n' ' ')"
tr '{' '\n' <sizes.out | grep '"cost": [0-9]' | tr -d '",' >costs
[ "$(wc -l <costs)" = 6 ] || fail "simulated: $(cat costs)"
awk '{ for (i = 1; i < NF; i++) v[$i] = $(i + 1); d = v["cost:"] / (v["seconds:"] * v["workers:"]) - 1
       low = v["clock_seconds_low:"]; high = v["clock_seconds_high:"]; c = v["clock_seconds:"]
       if (d > 1e-9 || d < -1e-9 || low >= c || high <= c) exit 1
       if (v["seconds:"] < last) exit 1
       last = v["seconds:"] }' costs || fail "costs, ranges or order: $(cat costs)"
grep -q 'allreduce x async is refused' sizes.out || fail "no reason: $(cat sizes.out)"
grep -q 'its 4 hosts have 4 cores, but there are 8 ranks' sizes.out || fail "no room is not told: $(cat sizes.out)"
# shellcheck disable=SC2086
works text plan $job --cluster four.yaml --sizes 2,8 --consistency bsp
grep -q '^shortest: .* 2 workers: .* clocks' text.out && grep -q '^not simulated: .* 8 workers, and 1 more: ' text.out || fail "$(cat text.out)"
# What nobody has named, and is refused, is not there. The table fits the window, and is no narrower than it need be.
# shellcheck disable=SC2086
works usual plan $job --cluster four.yaml --sizes 2 --clocks 5 --seeds 1 --price 1
! grep -q 'not simulated\|allreduce x async' usual.out && grep -q '^ps x async, 2 ' usual.out || fail "refused pairs: $(cat usual.out)"
for columns in 40 60 80 100; do
    # shellcheck disable=SC2086
    COLUMNS=$columns works fits plan $job --cluster four.yaml --sizes 2,8 --clocks 5 --seeds 1 --price 1
    awk -v most=$columns 'length > most { exit 1 }' fits.out || fail "wider than $columns: $(cat fits.out)"
    grep -q 'the job .* cost' fits.out || fail "$columns columns: what a job takes is left out: $(cat fits.out)"
    case $columns in
    60) grep -q 'a clock .* sent' fits.out && ! grep -q 'a rank' fits.out ;;
    80) grep -q 'sent .* idle .* a rank' fits.out && ! grep -q between fits.out ;;
    100) grep -q 'between .* a rank' fits.out ;;
    esac || fail "$columns columns: $(head -n 1 fits.out)"
done

# --search finds that what rows cost is better shared by more workers than 8, and keeps what was given.
printf 'version: 1\nhosts: [{count: 20, bandwidth: 100 Mb/s}]\ncost: {entry: 1 ms}\n' >many.yaml
search="--cluster many.yaml --topology ps --consistency bsp --clocks 6 --seeds 1 --price 1"
# shellcheck disable=SC2086
works narrow plan $job $search --json
# shellcheck disable=SC2086
works searched plan $job $search --json --search
awk -v a="$(of narrow seconds | head -n 1)" -v b="$(of searched seconds | head -n 1)" 'BEGIN { exit !(b < 0.99 * a) }' ||
    fail "the search finds nothing shorter: $(cat searched.out)"
grep -q '"servers": 1,' searched.out && grep -q '"filter": "key-cache"' searched.out || fail "servers and filters are not tried: $(cat searched.out)"
# shellcheck disable=SC2086
works given plan $job $search --json --search --workers 2 --filter fp16
[ "$(of given workers | sort -u)" = 2 ] && [ "$(of given filter | sort -u)" = '"fp16"' ] || fail "what was given does not stay: $(cat given.out)"
# shellcheck disable=SC2086
works words plan $job $search --search
grep -q '^ps x bsp, [0-9]* + 1 server' words.out && grep -q '^cheapest: ' words.out || fail "$(cat words.out)"

# Three hosts that are parts of one machine with one core compute one after the other.
printf 'version: 1\nhosts: [{count: 3}]\ncost: {clock: 20 ms}\nmachine: {cores: 1}\n' >parts.yaml
# shellcheck disable=SC2086
works parts plan $job --json --cluster parts.yaml --sizes 3 --seeds 1 --clocks 8 --topology ps --consistency bsp
awk -v a="$(field parts clock_seconds)" 'BEGIN { exit !(a > 0.06 && a < 0.066) }' || fail "one core for three hosts: $(cat parts.out)"

# Their systems' work for bytes takes that core as well.
sed 's/clock: 20 ms/clock: 20 ms, kernel: 1 us/' parts.yaml >kernel.yaml
# shellcheck disable=SC2086
works kernel plan $job --json --cluster kernel.yaml --sizes 3 --seeds 1 --clocks 8 --topology ps --consistency bsp
awk -v a="$(field parts clock_seconds)" -v b="$(field kernel clock_seconds)" 'BEGIN { exit !(b > a * 1.01) }' || fail "the kernel's work: $(cat kernel.out)"

# Real runs whose clocks took twice as long correct what is foretold; a seed of three is the range.
printf 'version: 1\nhosts: [{count: 4}]\ncost: {clock: 20 ms}\n' >told.yaml
sed 's/20 ms/40 ms/' told.yaml >real.yaml
for workers in 2 4; do
    # shellcheck disable=SC2086
    works real train $job --json --quiet --transport sim --cluster real.yaml --topology ps --workers $workers
    tail -n 1 real.out >>runs
done
# shellcheck disable=SC2086
works naive plan $job --json --cluster told.yaml --sizes 3 --seeds 1 --topology ps --consistency bsp
# shellcheck disable=SC2086
works taught plan $job --json --cluster told.yaml --sizes 3 --seeds 1 --topology ps --consistency bsp --runs runs
awk -v a="$(field naive clock_seconds)" -v b="$(field taught clock_seconds)" -v l="$(field taught clock_seconds_low)" \
    -v h="$(field taught clock_seconds_high)" 'BEGIN { r = b / a; exit !(r > 1.9 && r < 2.1 && l <= b && b <= h && h < 2.2 * a) }' ||
    fail "two runs taught: $(cat naive.out taught.out)"
[ "$(field taught runs)" = 2 ] || fail "how many runs: $(cat taught.out)"
echo '{"topology": "ps"}' >>runs
# shellcheck disable=SC2086
exits 2 'runs:3: expected the record of a run' broken plan $job --cluster told.yaml --runs runs
exits 1 '^plait: gone: ' lost plan --data part --runs gone

code=0
# shellcheck disable=SC2086
"$PLAIT" plan $job --topology allreduce --consistency async >out 2>err || code=$?
[ $code -eq 2 ] || fail "nothing could be simulated: exit $code"
tr '\n' ' ' <out | grep -q 'not simulated: allreduce x async, 2 workers, and 2 more: .*is refused' || fail "nothing could be simulated: $(cat out)"

# A signal: what is finished is shown.
"$PLAIT" plan --data part --optimizer adagrad --epochs 100000 --clocks 0 --sizes 2 --seeds 1 >out 2>err &
pid=$!
until_holds 120 sh -c "[ -n \"\$(ps -o pid= --ppid $pid)\" ]" || fail "no simulation begins"
kill -INT $pid
until_holds 120 gone $pid || { fail "it does not end"; kill -9 $pid; }
code=0
wait $pid || code=$?
[ $code -eq 75 ] && grep -q '^interrupted: [0-9]* of 6 settings' out || fail "interrupted: exit $code: $(cat out err)"
finish
