#!/bin/sh
# Columns that lie far from 0 for their spread, such as times: 32-bit numbers would lose their digits, so they are read
# less a constant, which the model remembers. Models agree with those of the same columns less that constant.
. "$(dirname "$0")/common.sh"

# rows FAR FORMAT: x1 lies near 10^7 or 0, x2 near 1764172800 or 0, x3 near 0. All differences are exact in 32 bits.
rows() {
    awk -v far="$1" -v format="$2" 'BEGIN {
        if (format == "csv") print "label,x1,x2,x3"
        for (i = 0; i < 600; i++) {
            a = (i * 37 % 101 - 50) / 32; b = i * 53 % 89 - 44; c = (i * 17 % 23 - 11) / 16
            y = a - b / 20 + c / 2 + (i * 29 % 61 - 30) / 12 > 0
            if (far) { a += 10000000; b += 1764172800 }
            printf format == "csv" ? "%d,%.5f,%.0f,%.4f\n" : "%d 1:%.5f 2:%.0f 3:%.4f\n", y, a, b, c
        }
    }'
}
rows 1 csv >far.csv
rows 0 csv >near.csv
rows 1 svm >far.svm

# near_enough A B: numbers of two files agree to 1e-4, place by place.
near_enough() {
    paste -d ' ' "$1" "$2" | awk '{ for (i = 1; 2 * i <= NF; i++) { d = $i - $(i + NF / 2); if (d > 1e-4 || d < -1e-4) bad++ } }
        END { exit NR == 0 || bad > 0 }' || fail "$1 differs from $2: $(head -n 1 "$1") and $(head -n 1 "$2")"
}

for options in "" "--workers 4 --topology ps --consistency ssp:2" "--workers 3 --consistency async" "--epochs 1" \
               "--model mlp --layers 4 --epochs 3" "--model gbdt --epochs 5" "--model forest --epochs 3"; do
    case $options in --model*) more= ;; --epochs*) more= ;; *) more="--tolerance 1e-8" ;; esac
    # shellcheck disable=SC2086
    works near train --data near.csv $options $more --out near.model --json
    works near_out predict --proba --model-file near.model --data near.csv
    for data in far.csv far.svm; do
        # shellcheck disable=SC2086
        works far train --data $data $options $more --out far.model --json
        works far_out predict --proba --model-file far.model --data $data
        grep -q 'are read less' far.err || fail "$data $options: nothing says how columns are read: $(cat far.err)"
        limit=1e-5 # a net's batches follow the blocks, and so the length of the text
        case $options in *mlp*) limit=0.02 ;; *async*) ;; *) near_enough far_out.out near_out.out ;; esac
        awk -v a="$(field near objective)" -v b="$(field far objective)" -v limit=$limit \
            'BEGIN { d = a / b - 1; exit d > limit || d < -limit }' ||
            fail "$data $options: objective $(field far objective), expected $(field near objective)"
    done
done

# The model's weights are those of the columns as they are, and the intercept too.
works far train --data far.csv --out far.model --tolerance 1e-8
works near train --data near.csv --out near.model --tolerance 1e-8
works far_weights inspect far.model --weights
works near_weights inspect near.model --weights
paste near_weights.out far_weights.out | awk -F '\t' '
    $1 == "(intercept)" { b = $2; far = $4; next }
    { d = $2 - $4; if (d > 1e-4 || d < -1e-4) exit 1 }
    $1 == "x1" { less += $4 * 10000000 } $1 == "x2" { less += $4 * 1764172800 }
    END { d = b - less - far; exit d > 0.01 || d < -0.01 }' || fail "weights: $(cat near_weights.out far_weights.out)"
works trees train --data far.csv --model gbdt --epochs 2 --out trees.model
works tree inspect trees.model --trees 1
grep -q '^tree 1' tree.out && grep -Eq 'x1 <= (9999999|1000000[0-2])|x2 <= 17641[0-9]{5}' tree.out || fail "cuts: $(cat tree.out)"
exits 2 'xgboost-json is refused' xgb export --model-file trees.model --format xgboost-json --out trees.json

# Training goes on from a model in the model's own terms, and so does one from a checkpoint, a cache, a stream.
works on train --data far.csv --init-model far.model --tolerance 1e-8 --out on.model --json
works on_out predict --proba --model-file on.model --data far.csv
works far_out predict --proba --model-file far.model --data far.csv
near_enough on_out.out far_out.out
works cache train --data far.svm --cache --tolerance 1e-8 --out cache.model
works again train --data far.svm --cache --tolerance 1e-8 --out again.model
works plain train --data far.svm --tolerance 1e-8 --out plain.model
cmp -s cache.model again.model && cmp -s cache.model plain.model || fail "a cache makes another model"
exits 2 'without an intercept is refused' bare train --data far.csv --init-model far.model --no-intercept

# A libsvm row that does not give such a feature has 0 there, and an empty cell has the column's mean.
(cat far.svm; printf '1 1:10000001 3:0.5\n') >sparse.svm
works sparse train --data sparse.svm --tolerance 1e-8 --out sparse.model
printf '1 1:10000001 2:0 3:0.5\n1 1:10000001 3:0.5\n' >two.svm
works two predict --proba --model-file sparse.model --data two.svm
[ "$(sort -u two.out | grep -c .)" -eq 1 ] || fail "a feature that is not given is not 0: $(cat two.out)"
sed '5s/,[^,]*,/,,/' far.csv >holes.csv
sed '5s/,[^,]*,/,,/' near.csv >near_holes.csv
works holes train --data holes.csv --tolerance 1e-8 --out holes.model --json
works near_holes train --data near_holes.csv --tolerance 1e-8 --json
awk -v a="$(field near_holes objective)" -v b="$(field holes objective)" \
    'BEGIN { d = a / b - 1; exit d > 1e-5 || d < -1e-5 }' || fail "empty cells: $(field holes objective)"

# A feature beyond 2^32 that a row does not give is 0 as well, where all that the row gives lies below.
awk 'BEGIN { for (i = 0; i < 400; i++) printf "%d 2:%.3f 3:%.3f 5000000000:%d\n", (i * 37 % 101 > 50), i % 17 / 16,
    i * 29 % 61 / 60, 1000000 + i * 53 % 900 }' >wide.svm
works wide train --data wide.svm --tolerance 1e-8 --out wide.model
printf '1 2:0.5 3:0.1\n1 2:0.25 3:0.75\n' >short.svm
printf '1 2:0.5 3:0.1 5000000000:0\n1 2:0.25 3:0.75 5000000000:0\n' >long.svm
works short predict --proba --model-file wide.model --data short.svm
works long predict --proba --model-file wide.model --data long.svm
cmp -s short.out long.out || fail "a feature beyond 2^32 that is not given is not 0: $(cat short.out long.out)"

# Rows that lack a time, the first two among them, do not hide from the others how close its values lie.
awk 'BEGIN { for (i = 0; i < 1000; i++) { t = i * 7 % 101; printf "%d 1:%.3f", (t > 50), i % 17 / 16
    if (i % 20 != 7 && i > 1) printf " 3:%d", 1764172800 + t; print "" } }' >unknown.svm
works unknown train --data unknown.svm --model gbdt --epochs 10 --json
grep -q 'feature 3 has values, but for a few others, .* read less 17641728' unknown.err || fail "rows without a time: $(cat unknown.err)"
holds unknown objective "< 0.3"
works warned train --data unknown.svm --model kmeans --clusters 2
grep -q 'warning: feature 3 has values, but for a few others' warned.err || fail "kmeans, rows without a time: $(cat warned.err)"

# Models that read columns as they are say what to do.
works kmeans train --data far.csv --model kmeans --clusters 2
grep -q 'warning: column "x1" has values .*subtract' kmeans.err || fail "kmeans: $(cat kmeans.err)"
works raw train --data far.csv --no-intercept
grep -q 'warning: column "x1"' raw.err || fail "no intercept, no warning: $(cat raw.err)"
finish
