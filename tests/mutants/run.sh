#!/bin/sh
# Mutants of every kind of file that the program reads, through the program: it ends with 0 and the right result, or with
# 1 or 2 and one printable line; by no signal, with no other code, and no sanitizer speaks.
#
#   run.sh MUTATE COUNT [FIRST]       PLAIT: the program; mutants FIRST .. FIRST + COUNT - 1, two side by side. Without FIRST
#                                     PLAIT_TEST_FULL makes them 5,000
#
# What is right is known from elsewhere: a packed file gives what gzip or zstd unpack, text the same model with one worker
# and with three and as many rows as lines, a cache or a checkpoint the model that it was of, a model file its own words.
# A mutant that fails is kept in MUTANTS_KEPT (mutants.kept), with the command that shows it.
set -u
PLAIT=${PLAIT:?the program}
data=${PLAIT_SOURCE_DIR:?the tree}/tests/data
mutate=$1
count=$2
if [ -n "${PLAIT_TEST_FULL:-}" ] && [ $# -eq 2 ]; then count=5000; fi
first=${3:-1}
kept=${MUTANTS_KEPT:-$PWD/mutants.kept}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
kinds="libsvm csv tsv idx text gz zst cache model init checkpoint shard graph onnx events cluster config weights csvgz"
n_kinds=19
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}allocator_may_return_null=1:detect_leaks=0"

die() {
    echo "FAILED: $*"
    exit 1
}

# plait words...: into out and err; the exit code into $code
plait() {
    code=0
    timeout -s KILL 60 "$PLAIT" "$@" >out 2>err </dev/null || code=$?
}
good() {
    plait "$@"
    [ $code -eq 0 ] || die "exit $code of: plait $*: $(tail -n 3 err)"
}
field() { sed -n "s/.*\"$1\": \"\{0,1\}\([^,\"}]*\).*/\1/p" "${2:-out}" | head -n 1; }
train() { plait train --epochs 2 --batch 20 --threads 1 --quiet --json "$@"; }

# --- the files that are mutated, as the program writes or reads them ----------------------------------------------------

cd "$scratch" || exit 1
gzip -dc "$data/a9a/a9a.gz" | head -n 40 >svm
awk '{ printf "%d,%d.5,%s,%d\n", NR % 2, NR, (NR % 3 ? "red" : "blue"), NR * 7 % 11 }' svm >rows
{ echo 'y,size,color,n'; cat rows; } >csv
tr ',' '\t' <csv >tsv
printf '\000\000\010\003\000\000\000\014\000\000\000\002\000\000\000\002abcdeeggaicddmffabcdeeggaicddmffabcdeeggaicddmff' >idx
printf '\000\000\010\001\000\000\000\014\001\000\001\000\001\000\001\000\001\000\001\000' >idx-labels
head -n 12 "$data/../../README.md" >text
awk '{ print NR % 3, "1:" NR % 4, "2:" NR % 5 / 2, "3:1", "4:" NR % 7 }' svm >four
gzip -n -c svm >gz
gzip -n -c svm >>gz
missing=
if command -v zstd >/dev/null; then
    zstd -q -c svm >zst
else
    missing=zst
    echo "skipped: mutants of kind zst: there is no program zstd to pack and unpack them (script/bootstrap --all)"
fi
gzip -n -c csv >csvgz
awk '{ print NR % 5 / 2 }' svm >weights
cp svm cached
cat >cluster <<'END'
version: 1
racks:
  - {name: a, bandwidth: 40 Gb/s, latency: 5 us}
hosts:
  - {count: 2, cores: 2, speed: 1, rack: a}
  - {count: 1, speed: 0.5, bandwidth: 1 Gb/s, latency: 50 us}
cost: {entry: 2 ns, message: 3 us, clock: 100 ms}
events:
  - jitter: {sigma: 0.5}
  - slow: {ranks: 1, factor: 3, from: 2 s}
END
printf 'model: logistic\nepochs: 2\nbatch: 20\nl2: 0.5\noptimizer: adagrad\nworkers: 2\n' >config
good train --data csv --epochs 2 --batch 20 --threads 1 --quiet --out model
good inspect model
cp out model.said
good train --data cached --cache --epochs 2 --batch 20 --threads 1 --quiet --json
cache_hash=$(field model_hash)
cp -p cached.plait-cache cache
for epochs in 2 3; do
    good train --data svm --epochs $epochs --batch 20 --optimizer adagrad --threads 1 --quiet --json \
        --checkpoint kept --checkpoint-every 2
done
resumed_hash=$(field model_hash)
newest=$(find kept -name 'checkpoint-*' | sort | tail -n 1)
cp "$newest/manifest.json" checkpoint
cp "$(find "$newest" -name 'part-*' | head -n 1)" shard
good train --model mlp --layers 3 --data svm --epochs 1 --batch 20 --threads 1 --quiet --out net.model
good export --model-file net.model --format onnx --out onnx
cp "$PLAIT_SOURCE_DIR/tests/fuzz/corpus/graph.form.json_read/mlp.json" graph
good train --data svm --workers 2 --topology ps --consistency ssp:1 --epochs 1 --batch 20 --threads 1 --quiet --events events
cp model init

# --- one mutant ----------------------------------------------------------------------------------------------------------

wrong() {
    mkdir -p "$kept"
    cp mutant "$kept/$kind.$seed"
    echo "FAILED: mutant $seed ($kind): $1"
    head -c 600 err
    echo "  kept: $kept/$kind.$seed"
    echo "  again: PLAIT=$PLAIT PLAIT_SOURCE_DIR=$PLAIT_SOURCE_DIR sh $PLAIT_SOURCE_DIR/tests/mutants/run.sh $mutate 1 $seed"
    echo x >>../failures
}

# What holds of every end.
judge() {
    if grep -q 'Sanitizer\|runtime error' err; then wrong "a sanitizer speaks"; return 1; fi
    case $code in
    0) ;;
    1 | 2)
        [ "$(wc -l <err)" -eq 1 ] || { wrong "exit $code with $(wc -l <err) lines on stderr"; return 1; }
        ;;
    4) [ "$kind" = events ] || { wrong "exit 4"; return 1; } ;;
    *) wrong "exit $code"; return 1 ;;
    esac
    for stream in out err; do
        [ "$(LC_ALL=C tr -d '\n\t -~\200-\377' <$stream | wc -c)" -eq 0 ] || { wrong "control bytes in $stream"; return 1; }
        iconv -f UTF-8 -t UTF-8 $stream >/dev/null 2>&1 || { wrong "$stream is not UTF-8"; return 1; }
    done
    return 0
}

# Trained by one worker: three give the same bits, and no number is none.
same_by_three() {
    judge || return 0
    [ $code -eq 0 ] || return 0
    grep -qi '[ :-]nan\|[ :-]inf[,}]' out && wrong "a number of the record is none"
    one=$(field model_hash) rows=$(field rows)
    train --reduce exact --workers 3 "$@"
    judge || return 0
    [ $code -eq 0 ] || { wrong "exit $code with three workers, 0 with one"; return 0; }
    [ "$(field model_hash)" = "$one" ] || wrong "three workers: model $(field model_hash), one: $one"
    [ "$(field rows)" = "$rows" ] || wrong "three workers: $(field rows) rows, one: $rows"
}

# gzip or zstd unpack it: the same model as of what they say. They refuse it, or say a warning: so do we.
as_unpacked() {
    tool=$1
    shift
    judge || return 0
    [ $code -eq 0 ] || return 0
    packed=$(field model_hash)
    case $(head -c 4 mutant | od -An -tx1 | tr -d ' ') in
    1f8b* | 28b52ffd | 5?2a4d18) ;;
    *) return 0 ;; # no longer packed, and text by chance
    esac
    $tool <mutant >plain 2>/dev/null || { wrong "$tool refuses what is taken"; return 0; }
    train --reduce exact "$@" --data plain
    [ "$(field model_hash)" = "$packed" ] || wrong "packed: model $packed, unpacked: $(field model_hash)"
}

one() {
    case $kind in
    libsvm)
        train --reduce exact --data mutant --format libsvm
        if [ $code -eq 0 ]; then
            lines=$(LC_ALL=C awk '{ sub(/#.*/, ""); sub(/\r$/, "") } /[^ \t]/ { n++ } END { print n + 0 }' mutant)
            [ "$(field rows)" = "$lines" ] || wrong "$(field rows) rows of $lines lines"
        fi
        same_by_three --data mutant --format libsvm
        ;;
    csv | tsv)
        train --reduce exact --data mutant --format "$kind"
        if [ $code -eq 0 ]; then
            lines=$(LC_ALL=C awk '{ sub(/\r$/, "") } /[^ \t]/ { n++ } END { print n + 0 }' mutant)
            rows=$(field rows)
            if [ "$rows" -gt "$lines" ] || [ "$rows" -lt $((lines - 2)) ]; then wrong "$rows rows of $lines lines"; fi
        fi
        same_by_three --data mutant --format "$kind"
        ;;
    idx)
        train --reduce exact --data mutant --label ../idx-labels
        same_by_three --data mutant --label ../idx-labels
        ;;
    text)
        train --reduce exact --data mutant --format text --window 2
        same_by_three --data mutant --format text --window 2
        ;;
    gz) train --reduce exact --data mutant && as_unpacked "gzip -dc" ;;
    csvgz) train --reduce exact --data mutant && as_unpacked "gzip -dc" ;;
    zst) train --reduce exact --data mutant && as_unpacked "zstd -dcq" ;;
    cache)
        cp mutant cached.plait-cache
        plait train --data cached --cache --epochs 2 --batch 20 --threads 1 --quiet --json
        judge && { [ $code -eq 0 ] || wrong "exit $code: a damaged cache is written anew"; }
        [ "$(field model_hash)" = "$cache_hash" ] || wrong "another model: $(field model_hash)"
        ;;
    model)
        plait inspect mutant
        judge && { [ $code -ne 0 ] || cmp -s mutant ../model || cmp -s out ../model.said || wrong "another model"; }
        ;;
    init)
        train --data ../csv --init-model mutant
        judge
        ;;
    checkpoint | shard)
        rm -rf kept && cp -r ../kept kept
        if [ $kind = checkpoint ]; then cp mutant "$newest/manifest.json"; else cp mutant "$newest/$(basename "$newest"/part-*)"; fi
        plait train --data ../svm --epochs 3 --batch 20 --optimizer adagrad --threads 1 --quiet --json --resume kept
        judge && { [ $code -ne 0 ] || [ "$(field model_hash)" = "$resumed_hash" ] || wrong "another model: $(field model_hash)"; }
        ;;
    graph)
        plait train --data ../four --graph mutant --dry-run --quiet
        judge
        ;;
    onnx)
        plait train --data ../svm --graph mutant --dry-run --quiet
        judge
        ;;
    events)
        plait audit mutant
        judge
        ;;
    cluster)
        plait train --data ../svm --transport sim --topology ps --workers 2 --threads 1 --cluster mutant --dry-run --quiet
        judge
        ;;
    config)
        plait train --data ../svm --config mutant --dry-run --quiet
        judge
        ;;
    weights)
        cp mutant weighed.weight
        train --reduce exact --data weighed
        same_by_three --data weighed
        ;;
    esac
}

enter() {
    mkdir "$1" && cd "$1" || exit 1
    cp -p ../cached . && cp ../svm weighed
}

origin_of() { if [ "$1" = libsvm ]; then echo svm; else echo "$1"; fi; }

# Each kind as it is: what is said of mutants means nothing where these fail.
whole() {
    enter whole
    seed=0
    for kind in $kinds; do
        [ "$kind" != "$missing" ] || continue
        cp "../$(origin_of "$kind")" mutant
        one
        [ $code -eq 0 ] || die "$kind as it is: exit $code: $(head -c 300 err)"
    done
}

# lane NUMBER: every second mutant
lane() {
    enter "lane$1"
    seed=$((first + $1))
    while [ $seed -lt $((first + count)) ]; do
        # shellcheck disable=SC2086
        set -- $kinds
        shift $((seed % n_kinds))
        kind=$1
        if [ "$kind" = "$missing" ]; then
            echo "$kind skipped" >>../ends
            seed=$((seed + 2))
            continue
        fi
        "$mutate" $seed "../$(origin_of "$kind")" ../svm >mutant
        one
        seed=$((seed + 2))
        echo "$kind $code" >>../ends
    done
}

: >ends
: >failures
(whole) || exit 1
lane 0 &
other=$!
(lane 1)
wait $other
echo "mutants: $(grep -vc ' skipped$' ends), exit 0: $(grep -c ' 0$' ends), 1 or 2: $(grep -c ' [12]$' ends), failed: $(wc -l <failures)"
[ "$(wc -l <ends)" -eq "$count" ] || die "only $(wc -l <ends) of $count ran"
[ ! -s failures ]
