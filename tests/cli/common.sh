# shellcheck shell=sh
# Sourced by the tests of the commands, on top of what the acceptance tests have.
. "$(dirname "$0")/../acceptance/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 300 >part

# until_holds SECONDS words...: polls a condition until it holds; false at the deadline
until_holds() {
    tries=$(($1 * 20))
    shift
    while [ $tries -gt 0 ]; do
        if "$@"; then return 0; fi
        tries=$((tries - 1))
        sleep 0.05
    done
    return 1
}

# in_time words...: a death that must come within a run: the words make the run, kill a process of it and judge how it ended,
# and return 1 if it had ended before, as it may where other programs have the processor. Then it is tried anew, ten times, and
# `at N` is 1, not N: the process is killed sooner.
in_time() {
    for try in 1 2 3 4 5 6 7 8 9 10; do
        if "$@"; then return 0; fi
    done
    fail "$*: ten times the run had ended before its process was killed"
}
at() { if [ "${try:-1}" -eq 1 ]; then echo "$1"; else echo 1; fi; }

says() { grep -q -- "$2" "$1" 2>/dev/null; }                # says FILE PATTERN
gone() { ! kill -0 "$1" 2>/dev/null; }                      # gone PID

json() { # json FILE EXPRESSION: the expression must hold of the object `o` that is the file's last line
    command -v python3 >/dev/null || return 0
    tail -n 1 "$1" | python3 -c "import json, sys
o = json.load(sys.stdin)
assert $2, o" 2>json.err || fail "not so in $1: $2: $(tail -n 3 json.err)"
}

# is_page FILE: it is whole, and has nothing in it that a browser would fetch.
is_page() {
    grep -q '</html>' "$1" || fail "$1 has no end"
    if grep -n '@[A-Z]*@\|https\{0,1\}://\|//[a-z]*\.\|<script[^>]*src\|<link[^>]*href="[^d]\|@import\|url(' "$1"; then
        fail "$1 refers to something outside"
    fi
}

# are_figures FILE: is it what Prometheus reads? In a strict reading: a type before each sample, cumulative buckets, the
# sum at the end; and promtool has nothing against it, where it is there (apt-get install prometheus). false: why says it.
are_figures() {
    awk '/^# HELP [a-z_]+ ./ { next }
         /^# TYPE [a-z_]+ (counter|gauge|histogram)$/ { if ($3 in type) bad = "type twice: " $0; type[$3] = $4; next }
         !/^[a-z_]+(\{([a-z_]+="[^"\\]*",?)+\})? [0-9.e+-]+$/ { bad = $0; next }
         { base = name = $1; sub(/\{.*/, "", base); sub(/\{.*/, "", name); sub(/_(bucket|sum|count)$/, "", base)
           if (!(name in type) && type[base] != "histogram") bad = "no type: " $0
           if (name ~ /_bucket$/) { if ($2 + 0 < last) bad = "falls: " $0; last = $2 + 0 }
           if (name ~ /_count$/ && $2 + 0 != last) bad = "count: " $0 }
         END { if (bad != "") { print bad; exit 1 } }' "$1" >why || return 1
    if command -v promtool >/dev/null; then promtool check metrics <"$1" >why 2>&1; else echo "skipped: promtool is not there"; fi
}

skip() {
    echo "skipped: $*"
    exit 77
}
