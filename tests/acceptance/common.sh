# Sourced by the tests of the program: they run it as a user would and look at exit code, stdout and stderr.
# PLAIT is the program; the current folder is a scratch folder that is removed at the end.

set -eu
PLAIT=${PLAIT:?the program}
data=${PLAIT_SOURCE_DIR:?the tree}/tests/data
scratch=$(mktemp -d)
cd "$scratch"
failures=0 finished=no

# A script that ends without `finish` would pass whatever `fail` has counted.
leave() {
    code=$?
    rm -rf "$scratch"
    [ $code -ne 0 ] || [ $finished = yes ] || { echo "FAILED: the test does not end with finish"; exit 1; }
}
trap leave EXIT

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

finish() {
    finished=yes
    if [ $failures -ne 0 ]; then
        exit 1
    fi
    echo "passed"
    exit 0
}

# run NAME words...: the program with these words; leaves NAME.out, NAME.err and the exit code in $code
run() {
    name=$1
    shift
    code=0
    "$PLAIT" "$@" >"$name.out" 2>"$name.err" </dev/null || code=$?
    if grep -q 'Sanitizer' "$name.err"; then
        fail "a sanitizer speaks in: plait $*"
        grep -A 20 'Sanitizer' "$name.err" | head -n 40
    fi
}

# works NAME words...: it must exit 0
works() {
    run "$@"
    if [ $code -ne 0 ]; then
        fail "exit $code of: plait $*"
        tail -n 5 "$1.err"
    fi
}

# exits CODE TEXT NAME words...: it must exit CODE and say TEXT (a regular expression) on stderr
exits() {
    want=$1 text=$2
    shift 2
    run "$@"
    if [ $code -ne "$want" ]; then
        fail "exit $code instead of $want of: plait $*"
        tail -n 20 "$1.err"
    fi
    if ! grep -Eqi -- "$text" "$1.err"; then
        fail "stderr does not say '$text' of: plait $*"
        tail -n 5 "$1.err"
    fi
}

# field NAME KEY: the value of a key in the JSON object on the last line of NAME.out
field() {
    tail -n 1 "$1.out" | awk -v key="\"$2\":" '{
        at = index($0, key)
        if (at == 0) { print "missing"; exit }
        rest = substr($0, at + length(key))
        sub(/^[ \t]*/, "", rest)
        sub(/[,}].*$/, "", rest)
        gsub(/"/, "", rest)
        print rest
    }'
}

# holds NAME KEY "< 0.5": a comparison of a number in the JSON object
holds() {
    value=$(field "$1" "$2")
    if ! awk -v v="$value" "BEGIN { exit !(v ~ /^[-+0-9.]/ && v + 0 $3) }"; then
        fail "$1: $2 is $value, it must be $3"
    fi
}

# weights MODEL_FILE: name and weight a line, sorted by name
weights() { "$PLAIT" inspect "$1" --weights | LC_ALL=C sort; }

# distance A B: the 2-norm of the difference of two models' weights, relative to A's
distance() {
    weights "$1" >a.tsv
    weights "$2" >b.tsv
    awk -F '\t' '
        NR == FNR { for (i = 2; i <= NF; i++) a[$1, i] = $i; norm += row2($0); names++; next }
        { for (i = 2; i <= NF; i++) { d = a[$1, i] - $i; diff += d * d } seen++ }
        function row2(line,    n, i, f, s) { n = split(line, f, "\t"); for (i = 2; i <= n; i++) s += f[i] * f[i]; return s }
        END {
            if (names == 0 || seen != names) print "none"
            else printf "%.3g\n", sqrt(diff / (norm > 0 ? norm : 1))
        }' a.tsv b.tsv
}

# same A B BOUND
same() {
    far=$(distance "$1" "$2")
    if ! awk -v far="$far" -v bound="$3" 'BEGIN { exit !(far != "none" && far + 0 <= bound + 0) }'; then
        fail "$1 and $2 differ by $far, at most $3"
    fi
}
