#!/bin/sh
# What the labels are taken for: told, recorded, and refused where they can be no classes; what rows weigh.
. "$(dirname "$0")/common.sh"

# told NAME TEXT: the talk and the record say so
told() {
    grep -qF "plait: label: $2" "$1.err" || fail "$1 does not say 'label: $2': $(cat "$1.err")"
    label=$(tail -n 1 "$1.out" | sed -n 's/.*"label": "\([^"]*\)".*/\1/p')
    [ "$label" = "$2" ] || fail "$1: the record's label is '$label'"
}

awk 'BEGIN { print "id,rooms,area,price"
    for (i = 0; i < 1200; i++) printf "%d,%d,%d,%d\n", i, i % 7, i % 11, 100 * (i % 300) + 15000 }' >houses.csv
cut -d , -f 2- houses.csv >prices.csv
works price train --data houses.csv --label price --model squared --epochs 1 --json
told price 'price (last column), numbers'
works rooms train --data houses.csv --label rooms --epochs 1 --json
told rooms 'rooms (column 2), 7 classes'
works first train --data prices.csv --epochs 1 --json --dry-run
told first 'rooms (first column), 7 classes'
works libsvm train --data part --epochs 1 --json --workers 2 --topology ps
told libsvm 'first number of each line, 2 classes'
[ "$(grep -c 'label:' libsvm.err)" -eq 1 ] || fail "two workers tell the label $(grep -c 'label:' libsvm.err) times"
printf '\000\000\010\003\000\000\000\004\000\000\000\002\000\000\000\002abcdeeggaicddmff' >x-images-idx3-ubyte
printf '\000\000\010\001\000\000\000\004\001\000\001\000' >x-labels-idx1-ubyte
works images train --data x-images-idx3-ubyte --epochs 1 --json
told images 'x-labels-idx1-ubyte, 2 classes'
for _ in 1 2 3 4 5 6; do echo "the quick brown fox jumps over the lazy dog"; done >fox.txt
works text train --data fox.txt --format text --epochs 1 --json
told text 'next character, 28 classes'
works quiet train --data part --epochs 1 --json --quiet
[ -s quiet.err ] && fail "--quiet tells the label"

# What has no effect on the format is noted once by each command, from a cache too.
idle() { # NAME words...: with --label 3, which is nothing to libsvm data
    works "$@" --label 3
    [ "$(grep -c 'note: --label has no effect on libsvm data' "$1.err")" -eq 1 ] || fail "$1: notes on --label: $(cat "$1.err")"
}
cp part cached
idle first train --data cached --cache --epochs 1 --out libsvm.model
idle second train --data cached --cache --epochs 1
idle tested train --data part --test part --validation part --epochs 1
idle predicted predict --model-file libsvm.model --data part --header yes
grep -q 'note: --header has no effect on libsvm data' predicted.err || fail "predict: $(cat predicted.err)"
idle judged eval --model-file libsvm.model --data part
works model train --data houses.csv --label rooms --epochs 1 --quiet --out model
works eval eval --model-file model --data houses.csv --json
[ "$(tail -n 1 eval.out | sed -n 's/.*"label": "\([^"]*\)".*/\1/p')" = 'rooms (column 2), 7 classes' ] ||
    fail "eval's label is $(field eval label)"

# What can be no classes: a row's own name or number, and prices, which are many and far apart.
exits 1 'label: id \(first column\): 1,200 classes in 1,200 rows are refused; for numbers take --model squared; --label COLUMN' \
    ids train --data houses.csv
exits 1 'label: id \(first column\): 1,200 classes' ids-dry train --data houses.csv --dry-run
awk 'NR == 1 || NR <= 601' houses.csv | sed 's/^\([0-9]\)/n\1/' >names.csv
exits 1 'label: id .*: 600 classes in 600 rows are refused; --label COLUMN names another column' names train --data names.csv
exits 1 'price .*: 300 classes in 1,200 rows, far apart, are refused; for numbers take --model squared' \
    prices train --data houses.csv --label price
exits 1 'take --loss squared' net train --data houses.csv --label price --model mlp --loss logistic --layers 2
works chosen train --data houses.csv --label price --model mlp --layers 2 --epochs 1
grep -q 'label: price (last column), numbers, so the loss is squared' chosen.err || fail "mlp: $(cat chosen.err)"
works forced train --data houses.csv --label price --text-columns price --epochs 1 --json
told forced 'price (last column), 300 classes'
awk 'BEGIN { for (i = 0; i < 400; i++) printf "%g 1:%d\n", i * 1.5, i % 5 }' >real
exits 1 'label: first number of each line: its numbers cannot be classes: not all are integers below 2\^53, or there are more than 65,536 different ones; for numbers take --model squared' \
    real train --data real
exits 1 'its cells are texts, but model squared learns numbers' texts train --data names.csv --model squared
# Prices that are not written as numbers are: refused as classes, with an example and the remedy, unless asked for.
odd() { # NAME PRICE: a table whose prices are written by the awk expression PRICE, 450 of them in 1,200 rows
    awk 'function parted(n) { return sprintf("%d,%03d", n / 1000, n % 1000) }
        BEGIN { print "rooms,price"
        for (i = 0; i < 1200; i++) { p = 347200 + 125 * (i % 450); print i % 7 "," ('"$2"') } }' >"$1.csv"
}
odd quoted '"\"" parted(p) "\""'
odd dollars '"\"$" parted(p) "\""'
odd german '"\"" int(p / 1000) "." p % 1000 ",50\""'
odd euros '"€" p'
odd mixed 'i % 3 == 0 ? "\"1," parted(p) "\"" : i % 3 == 1 ? p " %" : p'
example=347,200
for file in quoted dollars german euros mixed; do
    case $file in quoted) example=347,200 ;; dollars) example='\$347,200' ;; *) example= ;; esac
    exits 1 "label: price \(last column\): [0-9,]+ classes in 1,200 rows are refused; cells such as $example.* look like numbers: write them like 1234.5, with a point, without separated thousands and without a unit, and take --model squared; --label COLUMN names another column; --text-columns price reads them as names" \
        $file train --data $file.csv --label price
    exits 1 'price.* such as .* are not written like 1234.5' $file-squared train --data $file.csv --label price --model squared
    works $file-asked train --data $file.csv --label price --text-columns 2 --epochs 1 --workers 2 --topology ps
done
exits 1 'take --loss squared' $file-net train --data quoted.csv --label price --model mlp --layers 2
exits 1 'are refused; cells such as' $file-cached train --data quoted.csv --label price --cache
works $file-cached train --data quoted.csv --label price --text-columns price --cache --epochs 1
works $file-cached train --data quoted.csv --label price --text-columns price --cache --epochs 1 --out odd.model
works $file-known train --data quoted.csv --label price --init-model odd.model --epochs 1
# A few such texts may be classes, and so may names.
awk 'BEGIN { print "rooms,share"; for (i = 0; i < 1200; i++) print i % 7 "," 5 * (i % 20) "%" }' >shares.csv
works shares train --data shares.csv --label share --epochs 1 --json
told shares 'share (last column), 20 classes'
awk 'BEGIN { print "rooms,plate"; for (i = 0; i < 1200; i++) print i % 7 ",p" i % 450 }' >plates.csv
works plates train --data plates.csv --label plate --epochs 1 --json
told plates 'plate (last column), 450 classes'
awk 'BEGIN { print "x,name"; for (i = 0; i < 140000; i++) print i % 7 ",n" i % 70000 }' >names.csv
exits 1 'label: name .*: more than 65,536 classes in 140,000 rows are refused; --label COLUMN' names train --data names.csv --label name
# Close numbers are classes, and few rows of what a model knows are no doubt about it.
awk 'BEGIN { for (i = 0; i < 600; i++) printf "%d 1:%d\n", i % 150, i % 5 }' >close
works close train --data close --epochs 1 --json --out close.model
told close 'first number of each line, 150 classes'

# From 2^53 on two labels may be one double.
printf '9007199254740992 1:1\n9007199254740993 2:1\n' >wide
exits 1 'not all are integers below 2\^53' wide train --data wide
printf '9007199254740990 1:1\n9007199254740991 2:1\n' >widest
works widest train --data widest --epochs 1 --out widest.model --quiet
works widest-labels inspect widest.model
[ "$(grep -c '^label.900719925474099[01]$' widest-labels.out)" -eq 2 ] || fail "labels below 2^53: $(grep label widest-labels.out)"

# The highest index there is.
printf '1 9223372036854775807:1\n0 2:1\n' >high
for base in 0 1; do
    for how in '--topology local' '--topology ps --workers 2' '--consistency async' '--curve 2 --metrics m.json'; do
        # shellcheck disable=SC2086
        works high train --data high --index-base $base $how --epochs 4 --quiet --out high.model
    done
    works known predict --model-file high.model --data high
    [ "$(tr '\n' ' ' <known.out)" = '1 0 ' ] || fail "base $base: the highest index is lost: $(cat known.out)"
done

# Rows without labels: models that learn from labels refuse them by name, predict does not ask.
printf '1 1:1\n0 2:1\n1:1 2:1\n' >bare
exits 2 'model logistic needs labels, but .* leave out --label none' bare train --data bare --label none
exits 2 'model mlp needs labels' bare-net train --model mlp --layers 2 --data bare --label none --workers 2 --topology ps
printf '1 1:1\n0 2:1\n' >light
works labelled train --data light --epochs 2 --out labelled.model --quiet
works bare-predict predict --model-file labelled.model --data bare --label none
[ "$(wc -l <bare-predict.out)" -eq 3 ] || fail "predict without labels: $(cat bare-predict.out)"
exits 2 'model logistic needs labels' bare-eval eval --model-file labelled.model --data light --label none

# Rows that weigh nothing have no loss, whatever is asked for.
printf '1 1:1\n0 2:1\n' >none
printf '0\n0\n' >none.weight
printf 'y,x,w\n1,2,0\n0,3,0\n' >none.csv
zero='the sum of weights must be above 0'
exits 1 "all rows to train on have weight 0: $zero" zero train --data none
exits 1 "$zero" zero-column train --data none.csv --weight-column w --model squared
exits 1 "$zero" zero-lbfgs train --data none --optimizer lbfgs --workers 2
exits 1 'weight 0 by their class' zero-class train --data light --class-weight 1:0,0:0
exits 1 "all rows of the test set have weight 0" zero-test train --data light --test none --epochs 1 --out light.model
exits 1 "$zero" zero-validation train --data light --validation none --epochs 1
exits 1 "$zero" zero-eval eval --model-file light.model --data none
mkfifo pipe
cat none.csv >pipe &
exits 1 "$zero" zero-stream train --data pipe --epochs 1 --weight-column w
printf '0\n1\n' >none.weight
works part-light train --data none --batch 1 --epochs 3 --metrics light.json
grep -qi nan part-light.err part-light.out light.json && fail "NaN is told: $(cat part-light.err)"
# The scale of features is that of the rows with a weight: what the others hold is not seen.
for x in 5 900000; do
    awk -v x=$x 'BEGIN { for (i = 0; i < 40; i++) printf "%d,%d,%d,%d\n", i % 2, i % 3 + 4, i % 7 + i % 2, i != 20
                         print "1," x "," 2 * x ",0" }' >"scale$x.csv"
    for options in "--model mlp --layers 3 --batch 41" "--optimizer adagrad --batch 41" "--optimizer lbfgs"; do
        # shellcheck disable=SC2086
        works scale train --data "scale$x.csv" --label 1 --weight-column 4 --epochs 3 $options --json
        printf '%.5f\n' "$(field scale objective)"
    done >"scale$x.objective"
done
[ "$(sort -u scale5.objective | wc -l)" -eq 3 ] || fail "no objective: $(cat scale5.objective)"
cmp -s scale5.objective scale900000.objective || fail "rows of weight 0 are seen: $(cat scale5.objective scale900000.objective)"
# The weights of a test set and of a file for validation count with any number of workers.
awk 'BEGIN { for (i = 0; i < 200; i++) printf "%d 1:%d\n", i % 3 == 0, i % 5 }' >heavy
awk 'BEGIN { for (i = 0; i < 200; i++) print i % 7 }' >heavy.weight
for w in 1 2 3; do
    works "heavy$w" train --data light --test heavy --validation heavy --epochs 1 --optimizer adagrad --workers "$w" --json
    tail -n 1 "heavy$w.out" | grep -o '"\(test\|validation\)_loss": [^,}]*' >"heavy$w.loss"
    [ "$(wc -l <"heavy$w.loss")" -ge 1 ] || fail "heavy$w.out: no test loss"
    cmp -s heavy1.loss "heavy$w.loss" || fail "$w workers: $(cat "heavy$w.loss"), one: $(cat heavy1.loss)"
done
# Workers that see other labels than the rest: said where updates are applied as they come, and the steps decide the end.
awk 'BEGIN { srand(5); for (i = 0; i < 6400; i++) {
    printf "%d 1:%.3f 2:%.3f\n", int(i / 100) % 2, rand(), rand() >"period"
    printf "%d 1:%.3f 2:%.3f\n", int(i / 3200), rand(), rand() >"halves"
    printf "%d 1:%.3f 2:%.3f\n", rand() < 0.03, rand(), rand() >"random"
    printf "%.3f 1:%.3f 2:%.3f\n", 1 + int(i / 100) % 2 + rand() / 10, rand(), rand() >"numbers"
} }'
worker='note: worker 0 has other labels than the rest'
works shares train --data period --optimizer sgd --workers 2 --topology ps --consistency async
says shares.err "$worker: 100 % of its rows have label 0, and 50 % of all rows; under async this may harm: shuffle the rows of the file, or take --consistency bsp$" || fail "other labels are not told: $(cat shares.err)"
works shares train --data numbers --model squared --optimizer sgd --workers 4 --topology ps --consistency ssp:2
says shares.err "$worker: the mean of its labels is 1[.]0[45][0-9]*, and 1[.]55 of all; under ssp:2" || fail "another mean is not told: $(cat shares.err)"
for options in "--data period --optimizer sgd --workers 2 --consistency bsp" "--data period --workers 2 --consistency async" \
    "--data period --optimizer sgd --workers 1 --consistency async" "--data halves --optimizer sgd --workers 2 --consistency async" \
    "--data halves --optimizer sgd --workers 3 --consistency async" "--data random --optimizer sgd --workers 16 --consistency async"; do
    # shellcheck disable=SC2086
    works shares train --topology ps $options
    says shares.err 'has other labels' && fail "$options: $(grep 'other labels' shares.err)"
done
finish
