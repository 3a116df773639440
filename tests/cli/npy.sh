#!/bin/sh
# Arrays of NumPy: the same answers as CSV, labels in a column or a file, pipes, several workers; what is refused.
. "$(dirname "$0")/common.sh"

# npy FILE SHAPE: an array of bytes from lines of numbers on stdin
npy() {
    header="{'descr': '|u1', 'fortran_order': False, 'shape': $2, }"
    { printf '\223NUMPY\1\0\166\0%-117s\n' "$header"; tr ', \n' '\n\n\n' | sed '/^$/d' | awk '{ printf "\\%03o", $1 }' | xargs -0 printf '%b'; } >"$1"
}
awk 'BEGIN { for (i = 0; i < 400; i++) { a = i * 7 % 13; b = i * 11 % 17; print (a > b ? 3 : a == 0 ? 2 : 1) "," a "," b "," i % 5 } }' >rows.csv
npy rows.npy '(400, 4)' <rows.csv
cut -d , -f 2- rows.csv | npy X_all.npy '(400, 3)'
cut -d , -f 1 rows.csv | npy labels.npy '(400,)'
set -- --model gbdt --epochs 5 --min-rows 5 --json --quiet
works csv train --data rows.csv "$@" --out csv.model
works npy train --data rows.npy --label 1 "$@" --out npy.model
works file train --data X_all.npy --label labels.npy "$@" --out file.model
cp labels.npy y_all.npy
works beside train --data X_all.npy "$@"
works four train --data X_all.npy "$@" --workers 4 --topology ps
"$PLAIT" train --data - --label 1 "$@" <rows.npy >piped.out || fail "no array from a pipe"
gzip -k rows.npy
works packed train --data rows.npy.gz --label c1 "$@"
works twice train --data rows.npy --data rows.npy.gz --label 1 "$@"
for name in npy file beside four packed; do
    [ "$(field $name train_loss)" = "$(field csv train_loss)" ] || fail "$name: loss $(field $name train_loss), of csv $(field csv train_loss)"
done
# A directory is streamed, since nobody knows how large it is: a single pass of one worker, which adds up the means.
mkdir folder
cp rows.npy folder
works streamed train --data folder --label 1 --model logistic --optimizer online --epochs 1 --json --quiet
works read train --data rows.npy --label 1 --model logistic --optimizer online --epochs 1 --json --quiet
[ "$(field streamed rows) $(field streamed model_hash)" = "400 $(field read model_hash)" ] || fail "streamed: $(cat streamed.out)"
[ "$(field piped rows) $(field twice rows)" = "400 800" ] || fail "rows: $(field piped rows), $(field twice rows)"
[ "$(field npy model_hash)" = "$(field csv model_hash)" ] || fail "the models of an array and of a table differ"
works told train --data X_all.npy --model gbdt --epochs 1 --dry-run
grep -q 'X_all.npy: the labels are those of .*y_all.npy beside it' told.err || fail "nobody says whose labels: $(cat told.err)"

# One model for both formats; with and without labels.
works want predict --model-file csv.model --data rows.csv
for words in 'npy.model --data rows.csv' 'csv.model --data rows.npy' 'npy.model --data rows.npy --label none' \
    'npy.model --data X_all.npy --label none' 'file.model --data rows.npy --label 1' 'file.model --data X_all.npy'; do
    # shellcheck disable=SC2086
    works got predict --model-file $words
    cmp -s want.out got.out || fail "predict by $words differs"
done
works eval eval --model-file csv.model --data X_all.npy --label labels.npy --json
works judged eval --model-file csv.model --data rows.csv --json
[ "$(field eval test_loss)" = "$(field judged test_loss)" ] || fail "eval: $(field eval test_loss), $(field judged test_loss)"
works tested train --data X_all.npy --test X_all.npy --label labels.npy "$@"
[ "$(field tested test_loss)" = "$(field csv train_loss)" ] || fail "--test: $(field tested test_loss)"
works means train --model kmeans --clusters 3 --data X_all.npy --label none --quiet
works weighted train --data rows.npy --label 1 --weight-column -1 --model logistic --quiet --json
works weighed train --data rows.csv --weight-column 4 --model logistic --quiet --json
awk "BEGIN { d = $(field weighted train_loss) - $(field weighed train_loss); exit !(d * d < 1e-16) }" || fail "weights: $(field weighted train_loss), $(field weighed train_loss)"

# What is wrong is said with the place and what helps.
exits 2 'rows.npy: an array has no names, so say where the label is: --label -1' none train --data rows.npy
exits 2 'no column and no file "lables.npy"' none train --data X_all.npy --label lables.npy
exits 2 'rows.npy: no column 5 for the label: expected 1 to 4' none train --data rows.npy --label 5
exits 2 'cache has no meaning for npy data' none train --data rows.npy --label 1 --cache
exits 2 'delimiter has no meaning for npy data' none train --data rows.npy --label 1 --delimiter ,
exits 2 'rows.npy: npy data are no lines of text' none predict --model-file npy.model --data rows.npy --join
exits 2 'which are not hashed' none train --data rows.npy --label 1 --hash-bits 8
exits 2 'users and items by their names' none train --model mf --data rows.npy
exits 2 'here it is npy, one array in each file' none train --data rows.npy --format npz
exits 1 'rows.csv: expected an npy file' none train --data rows.csv --format npy
exits 1 'found 4' none eval --model-file file.model --data rows.npy
head -c 1000 rows.npy >cut.npy
exits 1 'cut.npy: cut short: its header promises 400 x 4 numbers of 1 bytes from byte 128 on' none train --data cut.npy --label 1
{ cat rows.npy; echo; } >long.npy
exits 1 'long.npy: byte 1728: 1 bytes follow the array' none train --data long.npy --label 1
printf 'PK\3\4\24\0\0\0\0\0xxxxxxxxxxxxxxxxxxxxarr_0.npyxxxxxxx' >arrays.npz
exits 1 'arrays.npz: is NumPy arrays .npz.: save each in a file of its own, as .numpy.save' none train --data arrays.npz
printf 'PAR1\25\4\25\0\0\0\0\0\0\0\0\0' >rows.parquet
exits 1 'rows.parquet: is a Parquet table: write it as CSV, as .import pyarrow.csv' none train --data rows.parquet
finish
