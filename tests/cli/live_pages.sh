#!/bin/sh
# The commands of the pages on serving and on dashboards (fences "sh live") do what the pages say. Only their ports change,
# since another program may have them; and what is started in the background is waited for, as a reader waits.
# usage: live_pages.sh ROOT
. "$(dirname "$0")/common.sh"
root=$1

"$PLAIT" version --json | grep -q '"http": {"found": true' || skip "the module http is not built"
command -v curl >/dev/null || skip "no curl"
command -v bash >/dev/null || skip "no bash"
mkdir -p tests/data/a9a
gzip -dc "$data/a9a/a9a.gz" | head -n 2000 | gzip >tests/data/a9a/a9a.gz
PATH=$(dirname "$PLAIT"):$PATH
export PATH

# free_port: one that nobody listens on now, below those that the system gives to whoever asks for any
free_port() {
    try=$((20000 + $$ % 10000))
    while :; do
        rm -f free.err
        "$PLAIT" serve --model-file free.model --port $try 2>free.err &
        free=$!
        serves_or_not() { gone $free || says free.err 'on http://127'; }
        until_holds 300 serves_or_not || fail "port $try: $(cat free.err)"
        ! says free.err 'on http://127' || break
        try=$((try + 1))
    done
    kill $free
    wait $free || true
    echo $try
}
# page NAME PORT: its live commands, as bash reads them; $pid in place of a job's number
page() {
    cat <<'EOF'
curl() { command curl -sS --retry-connrefused --retry 20 --retry-delay 1 -w '\n' "$@"; }
address() { sed -n 's/^plait: dashboard: //p' talk | sed 's/?/metrics?/'; }
shows_all() { grep -q dashboard talk && command curl -s "$(address)" | grep -q 'rank_clock{rank="3"}'; }
EOF
    awk '/^```sh live/ { in_it = 1; next } /^```/ { in_it = 0 } in_it' "$root/docs/$1" |
        sed "s/$2/$port/g; s/kill -HUP %1.*/kill -HUP \$pid; until grep -q 'SIGHUP: now' serving.err; do sleep 0.1; done/; s/&\$/\& pid=\$!/
            s/^sleep 3\$/until shows_all; do sleep 0.1; done/"
    # shellcheck disable=SC2016
    echo 'kill -TERM $pid; wait $pid || true'
}
# runs NAME: the page's commands end well
runs() {
    code=0
    timeout 600 bash -eu "$1.sh" >"$1.out" 2>"$1.err" </dev/null || code=$?
    [ $code -eq 0 ] || fail "$1: exit $code: $(tail -n 5 "$1.err")"
    [ "$(wc -l <"$1.sh")" -gt 5 ] || fail "$1 has no live commands"
}

works free train --data part --out free.model --quiet
port=$(free_port)
page serving.md 8642 >serving.sh
runs serving
grep -qx '{"predictions": \[[-+1, ]*\]}' serving.out || fail "no predictions as JSON: $(cat serving.out)"
[ "$(grep -cE '^(\+1|-1|1)$' serving.out)" -eq 3 ] || fail "no predictions as text: $(head -n 9 serving.out)"
[ "$(grep -cE '^0\.[0-9]+ 0\.[0-9]+$' serving.out)" -eq 3 ] || fail "no probabilities: $(head -n 9 serving.out)"
says serving.out '^plait_model_info{model="logistic"' || fail "no figures: $(tail serving.out)"
says serving.err 'SIGHUP: now the model logistic' || fail "no new model: $(cat serving.err)"

port=$(free_port)
page dashboard.md 8643 >dashboard.sh
runs dashboard
says dashboard.out "^plait: dashboard: http://127.0.0.1:$port/?token=" || fail "no address: $(cat dashboard.out)"
says dashboard.out '^plait_rank_clock{rank="3"} ' || fail "no figures: $(cat dashboard.out dashboard.err)"
finish
