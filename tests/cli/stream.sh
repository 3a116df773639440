#!/bin/sh
# A single streamed pass (a folder always is one) knows the units of values and labels from a sample of its rows: it ends
# near what data in memory give, for numbers in any unit, and does not depend on workers.
. "$(dirname "$0")/common.sh"

mkdir dense sparse twoclass
LC_ALL=C awk 'BEGIN {
    srand(3)
    print "y,a,b,c" >"dense/part.csv"
    for (i = 0; i < 20000; i++) {
        a = 500 + 100 * rand(); b = rand() / 1000; c = 2 * rand() - 1
        printf "%.4f,%.3f,%.7f,%.4f\n", 5000 + 3 * a + 40000 * b - 10 * c + rand(), a, b, c >>"dense/part.csv"
        line = sprintf("%.4f", 7000 + 40 * (i % 7))
        for (k = 0; k < 5; k++) line = line sprintf(" %d:%.1f", 1 + 50 * k + int(50 * rand()), 1000 * rand())
        print line >>"sparse/part.svm"
        x = 20000 * rand()
        printf "%d 1:%.2f 7:%.5f\n", (x > 9000), x, rand() >>"twoclass/part.svm"
    }
}'

for optimizer in online adagrad sgd momentum adam ftrl; do
    works dense train --model squared --data dense --test dense/part.csv --epochs 1 --l2 0 --optimizer $optimizer --json
    holds dense test_rmse "< 5"
done
works dense train --model squared --data dense --test dense/part.csv --epochs 1 --l2 0 --consistency async --json
holds dense test_rmse "< 5"
works huber train --model huber --data dense --test dense/part.csv --epochs 1 --l2 0 --json
holds huber test_rmse "< 13"
# The labels of these do not follow from the values: near their own spread (80) is all there is, far from 0 though they are.
for optimizer in online adagrad sgd; do
    works sparse train --model squared --data sparse --test sparse/part.svm --epochs 1 --optimizer $optimizer --json
    holds sparse test_rmse "< 95"
done
for optimizer in online adagrad sgd; do
    works class train --data twoclass --test twoclass/part.svm --epochs 1 --optimizer $optimizer --json
    holds class test_accuracy "> 0.93"
done

works one train --model squared --data dense --epochs 1 --optimizer adagrad --out one --quiet
works three train --model squared --data dense --epochs 1 --optimizer adagrad --workers 3 --topology ps --out three --quiet
same one three 1e-5
works none train --model squared --data dense --test dense/part.csv --epochs 1 --l2 0 --normalize none --json
holds none test_rmse "> 10"
# A command that waits for a pipe says so after a second; one that is given its data says nothing.
works model train --data part --epochs 1 --out waited --quiet
mkfifo slow
# waits TEXT words...: with a pipe that nobody writes to yet, as the file slow or as standard input. (Opening the pipe to
# write meets the command's own opening of it: what is written before may be gone when the command comes to read.)
waits() {
    text=$1
    shift
    input=/dev/null
    [ "$text" = "the standard input" ] && input=slow
    rm -f waits.err # the command before said the same
    "$PLAIT" "$@" <$input 2>waits.err >waits.out &
    pid=$!
    exec 3>slow
    until_holds 120 says waits.err "^plait: waiting for more data from $text$" || fail "plait $*: $(cat waits.err)"
    cat part >&3
    exec 3>&-
    wait $pid || fail "plait $* does not go on: $(cat waits.err)"
    [ "$(grep -c 'waiting for more data' waits.err)" -eq 1 ] || fail "plait $*: $(cat waits.err)"
}
waits 'the standard input' train --data - --epochs 1
waits 'the pipe slow' train --data part --test slow --epochs 1
waits 'the pipe slow' predict --model-file waited --data slow
waits 'the standard input' eval --model-file waited --data -
"$PLAIT" train --data - --epochs 1 <part 2>given.err >given.out || fail "data from standard input: $(cat given.err)"
(sleep 1.5; cat part) | "$PLAIT" eval --model-file waited --data - --quiet 2>quiet.err >quiet.out || fail "data from standard input: $(cat quiet.err)"
grep 'waiting for more data' given.err quiet.err && fail "waiting is told where nobody waits, or talk is quiet"
# The means of columns, which replace missing numbers in predict, are added up by a single pass over rows of numbers; a
# test set, which is read before, makes the pass before it parse. (Directories are streamed, however small.)
mkdir means odd gap
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 3000; i++) print i * 37 % 101 / 8 "," i * 53 % 89 "," (i * 29 % 61 > 30) }' >means/rows.csv
printf 'a,b,y\n1,,0\n,2,1\n' >holes.csv
works added train --data means --label y --epochs 1 --out added.model --json
works parsed train --data means --label y --epochs 1 --test means/rows.csv --out parsed.model --json
cmp added.model parsed.model || fail "a pass that adds up the means makes another model"
works means predict --proba --model-file added.model --data holes.csv
awk 'NF != 2 || $1 + $2 < 0.99 { bad++ } END { exit NR != 2 || bad > 0 }' means.out || fail "missing cells: $(cat means.out)"
sed '2001s/,[0-9]*,/,,/' means/rows.csv >gap/rows.csv # one cell is missing: means are needed at once
works gap train --data gap --label y --epochs 1 --out gap.model --json
works gap_parsed train --data gap --label y --epochs 1 --test means/rows.csv --out gap_parsed.model --json
cmp gap.model gap_parsed.model || fail "a missing cell is not its column's mean in a pass"
sed '2001s/,[0-9]*,/,7.7.7,/' means/rows.csv >odd/rows.csv
exits 1 'rows.csv:2001: column "b": expected a finite number' odd train --data odd --label y --epochs 1 --out odd.model
[ ! -e odd.model ] || fail "a malformed line leaves a model"
finish
