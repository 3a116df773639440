#!/bin/sh
# Losses of numbers: quantile and poisson against scikit-learn's optimum, what predict and eval say, what is refused.
# The references are scikit-learn 1.7's QuantileRegressor(alpha=0, solver="highs") and PoissonRegressor(alpha=0.01,
# tol=1e-12) on iris.csv as it lies here, with the third column as the label.
. "$(dirname "$0")/common.sh"

iris="$data/small/iris.csv"
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { exit !(a - b <= t * b && b - a <= t * b) }'; }
set -- train --data "$iris" --label 3 --json

# Poisson: the optimum, by each solver and by steps, with any number of workers.
poisson=0.03254005853617409
works lbfgs "$@" --model poisson --l2 0.01 --optimizer lbfgs --tolerance 1e-9 --out p.model --test "$iris"
works newton "$@" --model poisson --l2 0.01 --optimizer newton --workers 3 --topology ps --consistency ssp:2
works steps "$@" --model poisson --l2 0.01 --optimizer adagrad --workers 2 --topology ps
near "$(field lbfgs objective)" $poisson 1e-6 || fail "poisson by lbfgs: $(field lbfgs objective), not $poisson"
near "$(field newton objective)" $poisson 1e-5 || fail "poisson by newton: $(field newton objective), not $poisson"
near "$(field steps objective)" $poisson 0.03 || fail "poisson by adagrad: $(field steps objective), not $poisson"

# Predictions, and the errors of the test set, are of the mean and not of its logarithm.
near "$(field lbfgs test_rmse)" 0.5031750411372538 1e-4 || fail "poisson's RMSE: $(field lbfgs test_rmse)"
works means predict --model-file p.model --data "$iris"
near "$(head -n 1 means.out)" 1.62227399 1e-4 || fail "poisson predicts $(head -n 1 means.out), not 1.622"
works judged eval --model-file p.model --data "$iris" --json
near "$(field judged test_rmse)" 0.5031750411372538 1e-4 || fail "poisson's RMSE by eval: $(field judged test_rmse)"

# Counts below 0 are refused before the training, streamed and in memory, as integers and as fractions.
for label in -2 -0.5; do
    awk -v y=$label 'BEGIN { for (i = 0; i < 999; i++) print i % 4, "1:" i % 7; print y, "1:3" }' >counts
    for how in "--epochs 2" "--epochs 1 --data -"; do
        file="--data counts"
        case $how in *-) file= ;; esac
        code=0
        # shellcheck disable=SC2086
        "$PLAIT" train --model poisson $file $how <counts >low.out 2>low.err || code=$?
        { [ $code -eq 1 ] && grep -q "poisson takes counts and other numbers of 0 or more, but there is $label" low.err; } ||
            fail "a count of $label with $how: exit $code, $(cat low.err)"
    done
done
sed '$d' counts >fine
exits 1 'counts: row 1000 has no label, or a label that the model does not know' test train --model poisson --data fine --test counts
works zeros train --model poisson --data fine --epochs 3

# Quantiles: the loss's optimum, and so many labels lie below.
for q in 0.5:0.1136458315430125:79 0.9:0.05342569101237235:135; do
    want=${q#*:}
    works q$q "$@" --model quantile --quantile "${q%%:*}" --l2 0 --out q.model
    near "$(field q$q objective)" "${want%:*}" 0.005 || fail "quantile ${q%%:*}: $(field q$q objective), not ${want%:*}"
    works below predict --model-file q.model --data "$iris"
    sed 1d "$iris" | cut -d , -f 3 | paste -d ' ' - below.out | awk '$1 <= $2' >under
    near "$(wc -l <under)" "${want#*:}" 0.08 || fail "quantile ${q%%:*}: $(wc -l <under) labels of 150 lie below"
done
# One pass: the labels' unit does not matter to a quantile, nor large counts to poisson (half the deviance is about 1/2).
LC_ALL=C awk 'BEGIN { srand(6); for (i = 0; i < 6000; i++) {
    line = ""; s = 0; g = -6
    for (j = 1; j <= 12; j++) if (rand() < 0.4) { x = rand() * 2 - 1; s += (j % 5 - 2) * 0.4 * x; line = line sprintf(" %d:%.6f", j, x) }
    for (k = 0; k < 12; k++) g += rand()
    y = 2 + s + 0.4 * g
    printf "%.9g%s\n", y * 1e-3, line >"small"; printf "%.9g%s\n", y, line >"plain"; printf "%.9g%s\n", y * 1e6, line >"large"
    mean = 1000 * exp(s); count = int(mean + sqrt(mean) * g); print (count > 0 ? count : 0) line >"counts" } }'
for q in 0.5 0.9; do
    for unit in small:1e-3 plain:1 large:1e6; do
        works one train --data ${unit%:*} --model quantile --quantile $q --epochs 1 --json
        [ "${unit%:*}" = small ] && first=$(awk -v a="$(field one progressive_loss)" 'BEGIN { printf "%.17g", a / 1e-3 }')
        near "$(awk -v a="$(field one progressive_loss)" -v u="${unit#*:}" 'BEGIN { printf "%.17g", a / u }')" "$first" 0.02 ||
            fail "quantile $q of labels in units of ${unit#*:}: $(field one progressive_loss), not $first times that"
    done
done
# Nor does it matter to the default penalty of quantile and huber; in the labels' unit it would hold them at a constant.
for model in quantile huber; do
    for unit in plain:1 large:1e6; do
        works free train --data ${unit%:*} --model $model --l2 0 --json
        works one train --data ${unit%:*} --model $model --json
        near "$(field one train_loss)" "$(field free train_loss)" 0.005 ||
            fail "$model of labels in units of ${unit#*:}: a loss of $(field one train_loss), without penalty $(field free train_loss)"
    done
done
near "$first" 0.075 0.1 || fail "one pass of quantile 0.9: a loss of $first, not about 0.07 to 0.08"
works one train --data counts --model poisson --epochs 1 --json
near "$(field one train_loss)" 0.55 0.2 || fail "one pass of large counts: a loss of $(field one train_loss), not about 0.55"
exits 2 'that loss has a kink' kink "$@" --model quantile --optimizer lbfgs
exits 2 'quantile' range "$@" --model quantile --quantile 1
exits 2 'quantile' nan "$@" --model quantile --quantile nan
exits 2 'linear models and trees' net "$@" --model mlp --loss poisson
works idle "$@" --model squared --epochs 2 --quantile 0.3
grep -q 'quantile has no effect without --model quantile' idle.err || fail "--quantile without effect: $(cat idle.err)"

# hinge on fewer rows than features is taken by rows, whose gap is certain, unless the features' units are far apart.
LC_ALL=C awk 'BEGIN { srand(8); for (i = 0; i < 40; i++) {
    line = ""; for (j = 1; j <= 60; j++) { x = rand() * 2 - 1; if (j == 1) y = x; line = line sprintf(" %d:%.4f", j, x * (j == 60 ? 1e4 : 1)) }
    print (y > 0) line >"units"; sub(/ 60:.*/, "", line); print (y > 0) line >"alike" } }'
works alike train --data alike --model hinge --json
[ "$(field alike optimizer)" = cd ] && [ "$(field alike converged)" = true ] || fail "hinge on alike features: $(field alike optimizer)"
works units train --data units --model hinge --json
[ "$(field units optimizer)" = lbfgs ] || fail "hinge on features in other units: $(field units optimizer)"
works named train --data units --model hinge --optimizer cd --epochs 40
grep -q 'cd is still far from the least objective after 40 passes' named.err || fail "cd in other units: $(tail -n 2 named.err)"
grep -q 'not converged: .* above the least objective' named.out || fail "cd in other units: $(grep clocks named.out)"
finish
