#!/bin/sh
# --dashboard: the page and the figures of a run, for those who have its token. $1: mpirun, then what holds of processes: the
# page stays when the leading rank dies.
. "$(dirname "$0")/common.sh"
mpirun=${1:-}

if [ -z "$mpirun" ]; then
    mkdir alone
    cp "$PLAIT" alone/plait
    code=0
    PLAIT_MODULES='' alone/plait train --data part --dashboard 0 --out refused --quiet 2>err || code=$?
    [ $code -ne 0 ] && says err 'apt-get install libmicrohttpd-dev' || fail "without its module: exit $code, $(cat err)"
    [ ! -e refused ] || fail "a refused run made a model"
    exits 2 'dashboard wants' none train --data part --dashboard 65536
    exits 2 'dashbord' none train --data part --dashbord 0
    exits 2 'single run' none cv --data part --dashboard 0
fi
"$PLAIT" version --json | grep -q '"http": {"found": true' || skip "the module http is not built"
command -v curl >/dev/null || skip "no curl"

# begin NAME words...: a run in the background; sets $pid, $base and $token when it has said its address
begin() {
    name=$1
    shift
    rm -f "$name.err"
    "$@" >"$name.out" 2>"$name.err" &
    pid=$!
    until_holds 300 says "$name.err" 'dashboard: http://127.0.0.1:' || fail "$name: no address: $(cat "$name.err")"
    base=$(sed -n 's/.*dashboard: \(.*\)?token=.*/\1/p' "$name.err")
    token=$(sed -n 's/.*dashboard: .*?token=//p' "$name.err")
}
get() { curl -s -m 60 -o "$2" -w '%{http_code}' "$base$1?token=$token"; } # get PATH FILE: prints the code
# shows PATTERN: do the figures have such a line?
shows() { get metrics figures >/dev/null && says figures "$1"; }
value() { sed -n "s/^plait_$1 //p" figures; }
train="train --data part --topology ps --consistency ssp:2 --optimizer sgd --epochs 1000000"

if [ -z "$mpirun" ]; then
    works dry train --data part --dashboard 0 --dry-run
    says dry.err 'dashboard has no effect on a dry run' || fail "a dry run does not note it: $(cat dry.err)"
    # shellcheck disable=SC2086
    begin run "$PLAIT" $train --workers 3 --validation 0.2 --checkpoint kept --checkpoint-every 1s --quiet --dashboard 0
    [ "$(grep -c dashboard: run.err)" -eq 1 ] || fail "the address is not said once: $(cat run.err)"
    port=${base##*:} port=${port%/}
    if [ -r /proc/net/tcp ]; then
        grep -q "0100007F:$(printf %04X "$port") 00000000:0000 0A" /proc/net/tcp || fail "it does not listen on 127.0.0.1 alone"
    fi

    # Nobody gets anything without the token, not even what is there.
    for words in "" "?token=" "?token=0123456789abcdef0123456789abcdef" "?token=${token}0" "?Token=$token"; do
        for path in "" data metrics other; do
            code=$(curl -s -o answer -w '%{http_code}' "$base$path$words")
            [ "$code" = 403 ] && says answer 'open the address that plait printed' || fail "$path$words: $code $(cat answer)"
        done
    done
    [ "$(get other answer)" = 404 ] || fail "another path: $(cat answer)"
    [ "$(get metric answer)" = 404 ] && says answer 'did you mean /metrics' || fail "no nearest path: $(cat answer)"
    [ "$(curl -s -o answer -w '%{http_code}' -d x "$base?token=$token")" = 405 ] || fail "POST: $(cat answer)"

    [ "$(get "" page)" = 200 ] || fail "the page: $(head -c 300 page)"
    grep -oE '(https?:)?//[a-z0-9.]+' page | grep -v '//www.w3.org' >others && fail "the page names other hosts: $(cat others)"
    until_holds 300 shows '^plait_checkpoint_clock [1-9]' || fail "no checkpoint is shown: $(cat figures)"
    [ "$(value checkpoint_bytes)" -gt 500 ] || fail "a checkpoint of $(value checkpoint_bytes) bytes"
    until_holds 300 shows '^plait_validation_loss 0' || fail "no loss is shown: $(cat figures)"
    are_figures figures || fail "figures: $(cat why)"
    for metric in epoch_loss clock clock_age_seconds rows_per_second staleness_clocks 'rank_up{rank="2",host="[^"]*",role="worker"}' \
        'rank_compute_seconds_total{rank="2"}' 'rank_wait_seconds_total{rank="1"}' 'rank_network_seconds_total{rank="0"}' \
        'rank_sent_bytes_total{rank="1",kind="to servers"}' 'rank_behind_clocks{rank="1"}' deaths_total; do
        says figures "^plait_$metric [0-9]" || fail "no $metric: $(cat figures)"
    done
    says figures 'model="logistic".*topology="ps",consistency="ssp:2"' || fail "the run is not described"
    # The workers' clocks are read one after the other: where that was interrupted they are further apart than they were.
    close() { shows '^plait_staleness_clocks ' && [ "$(value staleness_clocks)" -le 3 ]; }
    until_holds 300 close || fail "ssp:2 is $(value staleness_clocks) clocks apart"
    [ "$(get data data)" = 200 ] || fail "data: $(head -c 300 data)"
    says data '"kind": "checkpoint", "text": "checkpoint of clock' || fail "no event of a checkpoint"
    says data '"does": "rank 0 ' || fail "it is not shown what ranks do"
    if command -v python3 >/dev/null; then
        python3 -c 'import json; d = json.load(open("data")); assert len(d["ranks"]) == 3 and len(d["epochs"]) > 0, d' || fail "the data"
    fi
    before=$(value clock)
    further() { shows '^plait_clock ' && [ "$(value clock)" -gt "$before" ]; }
    until_holds 300 further || fail "the figures stand still at clock $before"
    exits 1 'another program has it.*choose another --dashboard' taken train --data part --dashboard "$port"
    kill -TERM $pid
    code=0
    wait $pid || code=$?
    [ $code -eq 75 ] || fail "exit $code after SIGTERM: $(cat run.err)"
    curl -s -m 5 "$base" >/dev/null && fail "somebody still listens"
    begin chosen "$PLAIT" train --data part --model mlp --workers 2 --balance dynamic --epochs 1000000 --dashboard 0
    until_holds 300 shows '^plait_run_info{.*topology="[a-z].*optimizer="[a-z]' ||
        fail "what was chosen is not shown: $(cat figures)"
    says figures 'optimizer="auto"' && fail "optimizer auto is shown"
    kill -TERM $pid
    wait $pid || true
    finish
fi

# Under launch: all ranks, and the leading one dies.
exits 2 "with 'sleep 1' is refused: only train tells a dashboard" none launch -n 2 --dashboard 0 -- sleep 1
exits 2 'give it only to launch' none launch -n 2 --dashboard 0 -- plait train --data part --dashboard 0
pid_of() { tr '{' '\n' <data | sed -n "s/^\"rank\": $1, .*\"pid\": \([0-9]*\), \"up\": true.*/\1/p"; }
# dies: kills the leading rank; its dashboard must show that, and that the run goes on
dies() {
    until_holds 300 shows '^plait_clock [1-9]' || fail "$name does not begin: $(cat "$name.err")"
    get data data >/dev/null
    kill -KILL "$(pid_of 0)" || fail "$name: no process of rank 0: $(cat data)"
    until_holds 300 shows "$1" || fail "$name: the death does not show: $(cat figures "$name.err")"
    before=$(value clock)
    further() { shows '^plait_rank_clock{rank="2"}' && [ "$(value clock)" -gt "${before:-0}" ]; }
    until_holds 300 further || fail "$name stands still: $(cat figures)"
    are_figures figures || fail "$name: figures: $(cat why)"
    get data data >/dev/null
    kill -TERM $pid
    wait $pid || true
}
# shellcheck disable=SC2086
begin launched "$PLAIT" launch -n 3 --dashboard 0 -- plait $train --replicas 2 --quiet
until_holds 300 shows '^plait_rank_up{rank="2",.*} 1' || fail "not all ranks show: $(cat figures)"
dies '^plait_rank_up{rank="0",.*} 0'
[ "$(grep -o '"kind": "death"' data | wc -l)" -eq 1 ] || fail "the death is listed otherwise: $(cat data)"
says figures '^plait_deaths_total 1$' || fail "the death is counted otherwise: $(grep deaths figures)"

# The leading rank cannot reach launch, as if it ran on another machine: samples have its progress.
cat >away <<'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-0}" != 0 ] || export PLAIT_DASHBOARD_LINK=nobody
exec "$PLAIT" "$@"
END
chmod +x away
# shellcheck disable=SC2086
begin distant "$PLAIT" launch -n 2 --dashboard 0 -- ./away $train --quiet
until_holds 300 shows '^plait_clock [1-9]' || fail "no progress of a distant leading rank: $(cat figures distant.err)"
says figures '^plait_loss 0' && says figures '^plait_rank_clock{rank="0"} ' || fail "the distant rank does not show: $(cat figures)"
kill -TERM $pid
wait $pid || true

# Under another launcher the next rank takes the page up, at the same address.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
# shellcheck disable=SC2086
begin followed "$mpirun" --with-ft ulfm --map-by :oversubscribe --bind-to none -n 3 "$PLAIT" $train --replicas 2 --quiet --dashboard 0
dies '^plait_deaths_total 1$'
for rank in 1 2; do
    says figures "^plait_rank_up{rank=\"$rank\",host=\"..*\",role=\"worker\"} 1" ||
        fail "rank $rank is not up: $(cat figures)"
done
says figures '^plait_rank_up{rank="0",host="..*",role="worker"} 0' ||
    fail "rank 0 is not down: $(cat figures)"
says followed.err 'this rank shows the dashboard now' || fail "the next rank does not say that it shows the page: $(cat followed.err)"
finish
