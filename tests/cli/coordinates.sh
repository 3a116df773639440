#!/bin/sh
# Squared and logistic losses by coordinates (--optimizer cd), and a path of penalties (--path): the conditions of the
# optimum, computed here from the model and the rows; what the record says; what is refused.
. "$(dirname "$0")/common.sh"

# conditions MODEL L1: by which share of L1 the model misses them; rows of `part` hold ones, labels -1 and 1
conditions() {
    weights "$1" >w.tsv
    LC_ALL=C awk -v l1="$2" -v kind="$3" '
        function abs(v) { return v < 0 ? -v : v }
        NR == FNR { w[$1] = $2; next }
        {
            y = $1; s = w["(intercept)"]; n++
            for (i = 2; i <= NF; i++) { split($i, f, ":"); s += w[f[1]] * f[2] }
            r = kind == "squared" ? y - s : y / (1 + exp(y * s))
            b += r
            for (i = 2; i <= NF; i++) { split($i, f, ":"); g[f[1]] += r * f[2] }
        }
        END {
            most = abs(b / n)
            for (j in g) {
                off = w[j] != 0 ? abs(g[j] / n - (w[j] > 0 ? l1 : -l1)) : abs(g[j] / n) - l1
                if (w[j] != 0) used++
                if (off > most) most = off
            }
            if (used == 0) print "none"
            else printf "%.3g\n", most / l1
        }' w.tsv part
}

for model in squared logistic; do
    works one train --data part --model $model --optimizer cd --l1 0.01 --l2 0 --tolerance 1e-10 --out one --json --quiet
    [ "$(field one converged)" = true ] || fail "$model: not converged: $(cat one.out)"
    missed=$(conditions one 0.01 $model)
    awk -v m="$missed" 'BEGIN { exit !(m ~ /^[0-9]/ && m < 1e-3) }' || fail "$model: conditions are missed by $missed"
    [ "$(weights one | wc -l)" -lt 60 ] || fail "$model: few weights are 0" # inspect leaves zeros out

    # A path: all zeros first, more weights and a lower objective later; one object, one line of metrics each.
    works path train --data part --model $model --path 8 --l2 0 --json --quiet --metrics metrics --out last
    [ "$(field path optimizer)" = cd ] || fail "--path is not by cd: $(cat path.out)"
    [ "$(grep -c '"event": "penalty"' metrics)" -eq 8 ] || fail "metrics have no 8 penalties"
    tail -n 1 path.out | awk '{ print gsub(/"lambda":/, "") }' | grep -qx 8 || fail "the record has no 8 penalties: $(cat path.out)"
    sed -n 's/.*"event": "penalty".*"lambda": \([^,]*\), "nonzeros": \([^,]*\), "objective": \([^,]*\), "gap": \([^,]*\),.*/\1 \2 \3 \4/p' metrics |
        awk 'NR == 1 && $2 != 0 { exit 1 } NR > 1 && ($1 >= l || $3 > o || $4 > 1e-4) { exit 1 } { l = $1; o = $3 } END { exit NR != 8 }' ||
        fail "$model: the path is not monotone: $(cat metrics)"
    works text train --data part --model $model --path 8 --l2 0 --quiet
    grep -Eq '^ +8 ' text.out || fail "the path is not printed: $(cat text.out)"
done
[ "$(field one path)" = null ] || fail "a run without a path has one"

works best train --data part --path 12 --l2 0 --validation 0.3 --json --quiet
holds best validation_loss "< 0.6"

# Several workers take steps of several weights, as a schedule chooses them. The audit proves that no two of a step are
# too much alike, and refutes a run that did not look.
for words in "--workers 2" "--workers 4 --topology ps" "--workers 3 --topology allreduce"; do
    # shellcheck disable=SC2086
    works steps train --data part --optimizer cd --l1 0.02 --l2 0 --tolerance 1e-6 --events log --out steps --json --quiet $words
    [ "$(field steps converged)" = true ] || fail "$words: not converged: $(cat steps.out)"
    missed=$(conditions steps 0.02 logistic)
    awk -v m="$missed" 'BEGIN { exit !(m ~ /^[0-9]/ && m < 5e-2) }' || fail "$words: conditions are missed by $missed"
    works audit audit --schedule log
    works audit audit log
done
works elastic train --data part --optimizer cd --l1 0.02 --workers 2 --json --quiet
works elastic1 train --data part --optimizer cd --l1 0.02 --json --quiet --out start
holds elastic objective "< $(field elastic1 objective) * 1.0002"
# From a model of another penalty; by products, by passes and by steps.
for words in "--model squared" "--model logistic" "--model squared --together 2"; do
    # shellcheck disable=SC2086
    works start train --data part --optimizer cd --l1 0.05 --l2 0 --out start --quiet $words
    # shellcheck disable=SC2086
    works cold train --data part --optimizer cd --l1 0.03 --l2 0 --tolerance 1e-7 --json --quiet $words
    # shellcheck disable=SC2086
    works warm train --data part --optimizer cd --l1 0.03 --l2 0 --tolerance 1e-7 --json --quiet --init-model start $words
    holds warm objective "< $(field cold objective) * 1.000001"
    holds warm progressive_loss "< $(field cold progressive_loss)"
done
exits 2 "path begins at weights 0" start train --data part --model squared --path 4 --init-model start
# Columns 1 to 6 are alike; 7 to 12, too.
LC_ALL=C awk 'BEGIN { srand(5); for (i = 0; i < 200; i++) {
    a = rand(); b = rand(); line = ""
    for (j = 1; j <= 12; j++) { x = (j <= 6 ? a : b) + 0.1 * rand(); line = line " " j ":" x; if (j % 5 == 0) s = x }
    print a - b + s line } }' >alike
works checked train --data alike --model squared --optimizer cd --l1 0.001 --l2 0 --together 4 --events log --json --quiet
works audit audit --schedule log
run wild train --data alike --model squared --optimizer cd --l1 0.001 --l2 0 --together 4 --interference 100 --events log --quiet
run refuted audit --schedule log
[ $code -eq 4 ] || fail "audit of columns that are alike: $code"
grep -q "refuted (conflict)" refuted.out || fail "a step of columns that are alike is not refuted: $(cat refuted.out)"
exits 1 "drive each other up" apart train --data alike --model squared --optimizer cd --l1 0.001 --l2 0 --together 12 --interference 100 --order random
works note train --data part --optimizer lbfgs --together 4
grep -q "together has no effect" note.err || fail "--together is not noted: $(cat note.err)"

# Checkpoints: a run resumes at the penalty that it had reached, with other workers, over another topology.
path="train --data alike --model squared --path 8 --l2 0 --tolerance 1e-6 --quiet --json"
penalties() { tail -n 1 "$1.out" | tr '{' '\n' | sed -n 's/.*"lambda": \([^,]*\), "nonzeros": \([0-9]*\), "objective": \([^,]*\), .*/\1 \2 \3/p'; }
near() { # near A B: both lists of penalties are whole, and the same within the tolerance
    penalties "$1" >one && penalties "$2" >two && [ "$(wc -l <one)" = 8 ] && [ "$(wc -l <two)" = 8 ] || fail "$2: $(cat two)"
    paste -d ' ' one two | awk '{ d = ($3 - $6) / $3; if (d > 3e-6 || d < -3e-6 || $1 / $4 > 1 + 1e-9 || $4 / $1 > 1 + 1e-9) exit 1 }' ||
        fail "$2: $(paste one two)"
}
# shellcheck disable=SC2086
works whole $path
for setting in "1 2" "2 1" "3 4" "4 2"; do
    rm -rf kept
    # shellcheck disable=SC2086
    works part $path --workers ${setting% *} --epochs 10 --checkpoint kept --checkpoint-every 1
    [ "$(penalties part | wc -l)" -lt 8 ] || fail "ten epochs are the whole path: $(cat part.out)"
    # shellcheck disable=SC2086
    works rest $path --workers ${setting#* } --topology ps --resume kept
    near whole rest
    [ "$(field rest epochs)" -gt 10 ] || fail "resumed: $(cat rest.out)"
done
# shellcheck disable=SC2086
exits 2 "was made with '--path 8'" other $path --path 7 --resume kept
one="train --data part --model logistic --optimizer cd --l1 0.001 --tolerance 1e-7 --quiet --json"
# shellcheck disable=SC2086
works whole $one
rm -rf kept
# shellcheck disable=SC2086
works half $one --epochs 3 --checkpoint kept --checkpoint-every 1
# shellcheck disable=SC2086
works rest $one --workers 2 --resume kept
awk -v a="$(field whole objective)" -v b="$(field rest objective)" -v c="$(field half objective)" 'BEGIN { d = a - b
    exit !(d < 3e-7 && d > -3e-7 && c > a + 1e-6) }' || fail "resumed: $(field whole objective) $(field rest objective) $(field half objective)"

# What is asked for wrongly.
exits 2 "did you mean.*cd|cd" typo train --data part --optimizer cdd --l1 0.1
exits 2 "did you mean '--path'|--path" typo train --data part --pth 5
exits 2 "integer|number" word train --data part --path many
exits 2 "needs --l1 above 0" none train --data part --optimizer cd
for model in huber quantile; do
    exits 2 "knows hinge.*squared and logistic" loss train --data part --model $model --optimizer cd --l1 0.1 --label 1
done
exits 2 "path with model kmeans" kmeans train --data part --model kmeans --path 4
exits 2 "nearest is --optimizer cd" rule train --data part --optimizer adagrad --path 4
exits 2 "same coordinate" stale train --data part --optimizer cd --l1 0.01 --consistency async
exits 2 "path with model hinge: only squared and logistic" hinge train --data part --model hinge --path 4
# Equal labels: no penalty is needed, and slopes that are but rounding make none.
LC_ALL=C awk 'BEGIN { for (i = 0; i < 50; i++) print 3, "1:" i % 7, "2:5", "3:" i % 3 }' >same
works same train --data same --model squared --path 4 --l2 0 --quiet
[ "$(grep -cE '^ +[0-9]+ ' same.out)" = 1 ] || fail "a path of equal labels: $(cat same.out)"
grep -q warning same.err && fail "a path of equal labels warns: $(cat same.err)"
awk '{ $1 = NR % 3; print }' part >three
exits 2 "path is refused: it fits one score.*--l1 X --optimizer adagrad" three train --data three --path 4
works nearest train --data three --l1 0.01 --optimizer adagrad --epochs 2 --quiet
works short train --data part --path 4 --l1 100 --together 2
grep -q "one penalty, since all weights are 0 from l1" short.err || fail "a path of one penalty: $(cat short.err)"
grep -q "together on one worker" short.err || fail "--together on one worker: $(cat short.err)"
works note train --data part --optimizer cd --l1 0.01 --normalize none
grep -q "normalize has no effect" note.err || fail "--normalize is not noted: $(cat note.err)"
finish
