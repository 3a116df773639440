#!/bin/sh
# Vowpal Wabbit text on the command line: recognised by content, through gzip and pipes, streamed and cached; products
# and n-grams that a model keeps; importance; the names behind hashes.
. "$(dirname "$0")/common.sh"

# Rows of two namespaces: words of a text, and a number.
awk 'BEGIN {
    for (i = 0; i < 400; i++) {
        y = i % 3 == 0 ? 1 : -1
        printf "%d %s|text%s |size n:%.2f%s\n", y, i % 7 == 0 ? "2 " : "", (i % 3 == 0 ? " good" : " bad") " w" i % 17 " w" i % 5, \
               i % 10 / 10, i % 4 == 0 ? " big" : ""
    }
}' >rows.vw
works plain train --data rows.vw --epochs 4 --out plain.model --json
[ "$(field plain features)" = 262144 ] || fail "features are not hashed to 2^18: $(field plain features)"
works named inspect plain.model --weights
for name in 'text^good' 'text^bad' 'text^w16' 'size^n' 'size^big' '(intercept)'; do
    cut -f 1 named.out | grep -qxF "$name" || fail "inspect does not name $name: $(head -n 3 named.out)"
done
[ "$(grep -c . named.out)" -eq 22 ] || fail "$(grep -c . named.out) weights, expected 22: those that are not zero"
grep -q "$(printf '\t')0\$" named.out && fail "inspect prints a weight of zero"

works nameless train --data rows.vw --epochs 4 --names 0 --out nameless.model --json
[ "$(field plain model_hash)" = "$(field nameless model_hash)" ] || fail "names change the weights"
works nameless inspect nameless.model --weights
[ "$(cut -f 1 nameless.out | grep -c '^hash:')" -eq 21 ] || fail "--names 0 has names: $(head -n 3 nameless.out)"
works idle train --data rows.vw --epochs 1 --names 1M
grep -q 'names has no effect without --out' idle.err || fail "--names without --out: $(cat idle.err)"

# However the text comes and whoever reads it, the rows are the same, and so is the model.
gzip -c rows.vw >packed
works gzip train --data packed --epochs 4 --out gzip.model --json
works cached train --data rows.vw --epochs 4 --cache --out cached.model --json
works again train --data rows.vw --epochs 4 --cache --out again.model --json
for how in gzip cached again; do
    cmp -s plain.model $how.model || fail "$how: another model file"
done
works one train --data rows.vw --epochs 4 --reduce exact --json
works three train --data rows.vw --epochs 4 --reduce exact --json --workers 3 --topology ps --out three.model
[ "$(field one model_hash)" = "$(field three model_hash)" ] || fail "three workers have another model"
works three-named inspect three.model --weights
cut -f 1 named.out >names
cut -f 1 three-named.out | cmp -s - names || fail "three workers have other names"
"$PLAIT" train --data - --epochs 1 --out piped.model --quiet <rows.vw >piped.out || fail "the standard input"
works piped inspect piped.model --weights
cut -f 1 piped.out | cmp -s - names || fail "a stream has other names: $(head -n 3 piped.out)"

# An importance counts as often as the row would.
awk '{ print } $2 == "2" { print }' rows.vw | sed -E 's/^(-?1) 2 /\1 /' >twice.vw
works heavy train --data rows.vw --optimizer lbfgs --l2 0.01 --json
works twice train --data twice.vw --optimizer lbfgs --l2 0.01 --json
holds heavy train_loss "> 0"
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { exit !(a - b <= t && b - a <= t) }'; }
works weighed eval --model-file plain.model --data rows.vw --json
works counted eval --model-file plain.model --data twice.vw --json
near "$(field weighed test_loss)" "$(field counted test_loss)" 1e-12 || fail "importance 2 is not a row that stands there twice"

# Products and n-grams are kept by the model: predict makes them from rows without labels, too.
works crossed train --data rows.vw --interactions ts --ngram t2 --epochs 4 --out crossed.model
works crossed-named inspect crossed.model --weights
for name in 'text^good^w0' 'size^big*text^good' 'size^n*text^bad^w1'; do
    cut -f 1 crossed-named.out | grep -qxF "$name" || fail "inspect does not name $name"
done
sed -E "s/^[^|]*/ex'1 /; s/^ex/'/" rows.vw >bare.vw
works labelled predict --model-file crossed.model --data rows.vw --proba
works bare predict --model-file crossed.model --data bare.vw --proba
cmp -s labelled.out bare.out || fail "rows without labels are predicted otherwise: $(head -n 1 bare.out)"
works judged eval --model-file crossed.model --data rows.vw --json
holds judged test_accuracy "> 0.99"
exits 1 'bare.vw:1: expected a label in front of' bare-train train --data bare.vw --epochs 2
works none train --model kmeans --clusters 2 --label none --data bare.vw --hash-bits 8 --epochs 2
exits 2 'no namespace begins with "x", but with "s", "t"' absent train --data rows.vw --interactions tx
exits 2 'interactions has no meaning for libsvm data' other train --data part --interactions ab
exits 2 'trained with ts' onward train --data rows.vw --init-model crossed.model --interactions tt

# Classes, and numbers.
sed -E 's/^1 /7 /; s/^-1 2/3 2/' rows.vw >classes.vw
works classes train --data classes.vw --epochs 4 --json
[ "$(field classes classes)" = 3 ] || fail "classes: $(field classes classes)"
works numbers train --model squared --data classes.vw --epochs 4 --json --test rows.vw
holds numbers test_rmse "> 0"

# Other formats name what they hash as well.
printf 'y,city,n\n1,Rome,2\n0,Oslo,3\n1,Rome,1\n' >cities.csv
works cities train --data cities.csv --hash-bits 10 --epochs 3 --out cities.model
works cities inspect cities.model --weights
for name in city=Rome city=Oslo n; do
    cut -f 1 cities.out | grep -qx "$name" || fail "inspect does not name $name of hashed csv: $(cat cities.out)"
done
printf '1 5000000007:1 3:2 # 9:1\n-1 qid:4 3:1\n' >wide
works wide train --data wide --hash-bits 12 --epochs 3 --out wide.model
works wide inspect wide.model --weights
[ "$(cut -f 1 wide.out | sort | tr '\n' ' ')" = "(intercept) 3 5000000007 " ] || fail "hashed libsvm: $(cat wide.out)"

# Weights of far-away sizes and workers that run apart: a solver, though hashing makes far more weights than values.
LC_ALL=C awk 'BEGIN { srand(9); for (i = 0; i < 300; i++) { a = rand() * 2 - 1; b = rand() * 2 - 1
    printf "%d %.2f |f a:%.4f b:%.4f\n", (a - b / 2 + rand() - 0.5 > 0) ? 1 : -1, i % 7 == 0 ? 20 : 0.1 + rand() * 3, a, b } }' >apart.vw
works apart train --data apart.vw --hash-bits 16 --workers 2 --consistency async --json
[ "$(field apart optimizer)" = newton ] && [ "$(field apart converged)" = true ] || fail "weights apart: $(field apart optimizer)"
finish
