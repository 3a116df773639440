#!/bin/sh
# serve answers over HTTP what predict prints; it refuses what is wrong by name, and changes its model without a loss.
# usage: serve.sh [RELOADS CLIENTS]        under load; 6 and 2 unless given
. "$(dirname "$0")/common.sh"
reloads=${1:-6}
clients=${2:-2}
[ -n "${PLAIT_TEST_FULL:-}" ] && reloads=50 clients=4

works train train --data part --out model --quiet
if ! "$PLAIT" version --json | grep -q '"http": {"found": true'; then
    exits 1 'libmicrohttpd-dev' none serve --model-file model --port 0
    skip "the module http is not built"
fi
command -v curl >/dev/null || skip "no curl"

# start NAME words...: the server in the background; sets $url and $pid
start() {
    started=$1
    shift
    rm -f "$started.err"
    "$PLAIT" serve --port 0 "$@" >"$started.out" 2>"$started.err" &
    pid=$!
    until_holds 300 says "$started.err" 'serving .* on http://127' || fail "$started: $(cat "$started.err")"
    url=$(sed -n 's/^plait: serving .* on //p' "$started.err")
}
# stops SIGNAL: it ends well
stops() {
    kill "-$1" $pid
    code=0
    wait $pid || code=$?
    [ $code -eq 0 ] || fail "$started: exit $code after SIG$1: $(cat "$started.err")"
    says "$started.err" "SIG$1: the server has ended" || fail "$started says nothing at its end"
}
# post NAME PATH TYPE FILE [curl's words]: NAME.body, and the code in $http
post() {
    name=$1 path=$2 type=$3 file=$4
    shift 4
    http=$(curl -s -m 60 -o "$name.body" -w '%{http_code}' "$@" -H "Content-Type: $type" --data-binary "@$file" "$url$path") || true
}
# refused CODE TEXT NAME PATH TYPE FILE
refused() {
    want=$1 text=$2
    shift 2
    post "$@"
    [ "$http" = "$want" ] || fail "$1: $http instead of $want: $(cat "$1.body")"
    grep -q -- "$text" "$1.body" || fail "$1: it does not say '$text' but $(cat "$1.body")"
}

# A slow client: its body comes in pieces, the last ones behind twice --idle-timeout since the server has had the first; at four
# times the server would hang up. It goes on beside what follows.
start slow --model-file model --idle-timeout 5s
slow_url=$url slow_pid=$pid
(
    {
        head -n 1 part
        until curl -s "$slow_url/metrics" | grep -q '^plait_body_bytes [1-9]'; do sleep 0.1; done
        until=$(($(date +%s) + 12))
        while [ "$(date +%s)" -lt $until ]; do
            head -n 1 part
            sleep 0.2
        done
    } | curl -s -m 240 -o slow.body -w '%{http_code}' -X POST -T - -H 'Content-Type: text/plain' "$slow_url/predict" >slow.code
) &
slow=$!

# LIBSVM: the same bytes as predict prints; JSON lists and objects the same numbers.
start server --model-file model
for question in "" --proba; do
    # shellcheck disable=SC2086
    works want predict --model-file model --data part $question
    post text "/predict${question:+?proba=1}" text/plain part
    cmp -s text.body want.out || fail "text $question: $http: $(head -c 300 text.body)"
    awk '{ line = ""; for (i = 2; i <= NF; i++) { split($i, e, ":"); line = line (i > 2 ? "," : "") "\"" e[1] "\":" e[2] }
           print (NR > 1 ? "," : "[") "{" line "}" } END { print "]" }' part >objects
    post json "/predict${question:+?proba=1}" application/json objects
    [ "$http" = 200 ] || fail "json $question: $http: $(cat json.body)"
    sed 's/^{"predictions": \[//; s/\]}$//; s/\], \[/;/g; s/[][]//g' json.body | if [ -n "$question" ]; then
        tr ';' '\n' | tr -d ,
    else
        sed 's/, /\n/g'
    fi >lines
    cmp -s lines want.out || fail "json $question: $(head -c 300 json.body)"
done
post accepted /predict application/json objects -H 'Accept: text/plain'
works want predict --model-file model --data part
cmp -s accepted.body want.out || fail "Accept: text/plain: $(head -c 300 accepted.body)"

# What is wrong is said, and where.
printf '1 1:2\n1 2:x\n' >bad
refused 400 'body:2: ' bad /predict text/plain bad
echo '[[1, 2], [3, "x"]]' >bad
refused 400 'row 2, column 2: ' bad /predict application/json bad
printf '[[1, 2],\n[3, 4' >bad
refused 400 'body:2: row 2: no JSON' bad /predict application/json bad
refused 400 'did you mean proba' bad '/predict?prob=1' text/plain part
refused 400 'only models of trees' bad '/predict?contributions=1' text/plain part
refused 404 'did you mean /predict' bad /predct text/plain part
refused 405 'takes GET' bad /metrics text/plain part
: >empty
echo '[[1, 2]]' >one.json
refused 400 'the body is empty' bad /predict text/plain empty

refused 415 'Content-Type application/xml: /predict takes application/json, text/csv, and text/plain' bad /predict application/xml one.json
refused 415 'Content-Type text/plainer: ' bad /predict text/plainer part
for type in 'text/plain; charset=utf-8' TEXT/PLAIN application/x-www-form-urlencoded application/octet-stream ''; do
    post typed /predict "$type" part
    cmp -s typed.body want.out || fail "Content-Type '$type': $http: $(head -c 300 typed.body)"
done
echo '{"3": 1}' >object
refused 400 'expected a list of rows' typed /predict '' object
post typed /predict '' one.json
[ "$http" = 200 ] && says typed.body '^{"predictions": \[' || fail "JSON without a type: $http: $(cat typed.body)"

# Figures.
[ "$(curl -s "$url/healthz")" = ok ] || fail "healthz"
curl -s "$url/" | grep -q '^POST /predict' || fail "no list of paths"
curl -s "$url/metrics" >metrics
are_figures metrics || fail "metrics: $(cat why)"
says metrics '^plait_requests_total{code="400",path="/predict"} 7$' || fail "$(grep requests_total metrics)"
says metrics '^plait_rows_total 3001$' || fail "$(grep rows_total metrics)"
batches() { curl -s "$url/metrics" | sed -n 's/^plait_batches_total //p'; }
before=$(batches)
echo '[[1, 2]]' >one
post one /predict application/json one
[ "$(batches)" -eq $((before + 1)) ] || fail "one request counts as $before to $(batches) calls of the model"

# Two models in turn, under load: no request is lost. A bad file keeps the old one.
works other train --data part --l2 1 --out other --quiet
cp model first
i=0
while [ $i -lt "$clients" ]; do
    i=$((i + 1))
    : >"codes.$i"
    (
        while [ ! -e enough ]; do
            curl -s -o /dev/null -o /dev/null -o /dev/null -w '%{http_code}\n' -H 'Content-Type: text/plain' --data-binary @part \
                "$url/predict" "$url/predict" "$url/predict" >>"codes.$i" || echo lost >>"codes.$i"
        done
    ) &
    eval "client$i=\$!"
done
i=0
while [ $i -lt "$reloads" ]; do
    i=$((i + 1))
    if [ $((i % 2)) -eq 1 ]; then cp other next; else cp first next; fi
    mv next model
    kill -HUP $pid
    reloaded() { [ "$(grep -c 'SIGHUP: now the model' server.err)" -ge $i ]; }
    until_holds 120 reloaded || fail "reload $i: $(cat server.err)"
done
: >enough
i=0
while [ $i -lt "$clients" ]; do
    i=$((i + 1))
    eval "wait \$client$i"
done
grep -vx 200 codes.* >lost && fail "of $(cat codes.* | wc -l) requests over $reloads reloads: $(head -n 3 lost)"
[ "$(cat codes.* | wc -l)" -gt "$clients" ] || fail "there was no load"
head -c 100 first >next
mv next model
kill -HUP $pid
until_holds 120 says server.err 'SIGHUP: the old model stays' || fail "a bad model: $(cat server.err)"
post after /predict text/plain part
[ "$http" = 200 ] || fail "after a bad model: $http"
curl -s "$url/metrics" | grep -q '^plait_model_reloads_total{result="failed"} 1$' || fail "a failed reload is not counted"
cp first model

# The port is taken; a body that is too large, with and without its length said.
exits 1 'another program has it' taken serve --model-file model --port "${url##*:}"
stops TERM
start small --model-file model --max-body 2K --threads 1
refused 413 'max-body' large /predict text/plain part
post large /predict text/plain part -H 'Transfer-Encoding: chunked'
[ "$http" = 413 ] || fail "a chunked body that is too large: $http"
says large.body 'more than 2048 bytes' || fail "it does not say the limit: $(cat large.body)"

# Bodies that have not come whole hold memory: when they fill it, a further one is asked to come again. The same for a
# queue that is full.
holders=
for i in 1 2 3 4; do
    mkfifo body.$i
    curl -s -o /dev/null -m 60 -X POST -T body.$i -H 'Content-Type: text/plain' "$url/predict" &
    holders="$holders $!"
    eval "exec $((i + 3))>body.$i"
    head -c 2000 part >&$((i + 3))
done
held() { [ "$(curl -s "$url/metrics" | sed -n 's/^plait_body_bytes //p')" -eq 8000 ]; }
until_holds 120 held || fail "the held bodies are not counted: $(curl -s "$url/metrics" | grep body)"
head -c 900 part | sed '$d' >more
refused 503 '4 times --max-body 2048' more /predict text/plain more
curl -s -D head -o /dev/null -H 'Content-Type: text/plain' --data-binary @more "$url/predict"
grep -qi '^Retry-After: 1' head || fail "no Retry-After: $(cat head)"
exec 4>&- 5>&- 6>&- 7>&-
for holder in $holders; do wait "$holder"; done
post more /predict text/plain more
[ "$http" = 200 ] || fail "after the held bodies: $http: $(cat more.body)"
stops INT
start full --model-file model --queue 1 --threads 1
(sed '$d' objects && for i in 1 2 3 4 5 6 7 8 9; do sed '1s/^\[/,/; $d' objects; done && echo ']') >slow_rows
is_full() {
    set --
    while [ $# -lt 36 ]; do set -- "$@" -o full.$#.body "$url/predict"; done
    curl -s -Z -m 60 "$@" -H 'Content-Type: application/json' --data-binary @slow_rows || true
    grep -q 'too many requests wait (--queue 1)' full.*.body
}
until_holds 120 is_full || fail "no queue is full: $(head -c 200 full.0.body)"
grep -q '^{"predictions": \[' full.*.body || fail "no request is answered: $(head -c 200 full.0.body)"
stops INT

# A table: CSV as predict has it, JSON by names and in the columns' order, with texts and missing values.
printf 'age,city,label\n30,Rome,no\n40,"Bonn, Rhine",yes\n50,Rome,yes\n20,Oslo,no\n' >table
works table train --data table --label label --out table.model --quiet
works want predict --model-file table.model --data table --proba
start table --model-file table.model
post csv '/predict?proba=1' text/csv table
cmp -s csv.body want.out || fail "csv: $http $(cat csv.body)"
echo '[{"city": "Rome", "age": 30}, {"age": 40, "city": "Bonn, Rhine"}, {"age": 50, "city": "Rome"}, {"age": 20, "city": "Oslo"}]' >rows
post rows '/predict?proba=1' application/json rows -H 'Accept: text/plain'
cmp -s rows.body want.out || fail "objects of a table: $http $(cat rows.body)"
echo '[[30, "Rome"], [40, "Bonn, Rhine"], [50, "Rome"], [20, "Oslo"]]' >rows
post rows '/predict?proba=1' application/json rows -H 'Accept: text/csv'
cmp -s rows.body want.out || fail "lists of a table: $http $(cat rows.body)"
echo '[[30, "Rome"], [40]]' >rows
refused 400 'row 2: 1 values, expected 2' rows /predict application/json rows
echo '[{"age": 30, "city": "Rome"}, {"age": "x", "city": "Rome"}]' >rows
refused 400 'row 2' rows /predict application/json rows
echo '[{"age": null, "city": null}]' >rows
post rows /predict application/json rows
grep -q '^{"predictions": \["[a-z]*"\]}$' rows.body || fail "missing values: $(cat rows.body)"
stops TERM

# Columns without names: objects have them in any order, by the names that inspect shows.
printf '30,7,no\n40,1,yes\n50,4,yes\n20,9,no\n' >unnamed
works unnamed train --data unnamed --label -1 --out unnamed.model --quiet
works want predict --model-file unnamed.model --data unnamed --proba
start unnamed --model-file unnamed.model
echo '[{"c2": 7, "c1": 30}, {"c1": 40, "c2": 1}, {"c3": "yes", "c2": 4, "c1": 50}, {"c2": 9, "c1": 20}]' >rows
post rows '/predict?proba=1' application/json rows -H 'Accept: text/plain'
cmp -s rows.body want.out || fail "objects of columns without names: $http $(cat rows.body)"
echo '[{"c2": 7, "age": 30}]' >rows
refused 400 "row 1, column age: the model's columns have no names; call them c1, c2" rows /predict application/json rows
stops TERM

wait $slow || fail "the slow client ends with $?"
pid=$slow_pid started=slow
[ "$(cat slow.code)" = 408 ] || fail "a body that comes too slowly: $(cat slow.code) $(cat slow.body)"
says slow.body 'within 10 s (twice --idle-timeout)' || fail "it does not say the limit: $(cat slow.body)"
stops TERM

exits 2 'no model' none serve
exits 2 'max-body wants a number of bytes from 1024' none serve --model-file model --max-body 0
exits 2 'idle-timeout wants a time in seconds from 1' none serve --model-file model --idle-timeout 10ms
exits 1 'nowhere' none serve --model-file nowhere --port 0
exits 2 'prot' none serve --prot 1
finish
