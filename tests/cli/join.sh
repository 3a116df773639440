#!/bin/sh
# predict --join: each line of the data, and behind it what predict alone prints.
. "$(dirname "$0")/common.sh"
small=$PLAIT_SOURCE_DIR/tests/data/small

# LIBSVM: a tab and the answer; comments and blank lines are no rows.
works train train --data part --out model --quiet
works labels predict --model-file model --data part
works joined predict --model-file model --data part --join
paste part labels.out | cmp -s - joined.out || fail "libsvm: $(head -n 1 joined.out)"
{ echo '# nothing'; sed -n 1p part; echo; sed -n '2,$p' part; } | "$PLAIT" predict --model-file model --data - --join >piped.out
cmp -s joined.out piped.out || fail "a pipe with blank lines: $(head -n 2 piped.out)"
gzip -c part >part.gz
works packed predict --model-file model --data part.gz --join --out packed.file
cmp -s joined.out packed.file || fail "gzip with --out"
works proba predict --model-file model --data part --proba
works both predict --model-file model --data part --proba --join
tr ' ' '\t' <proba.out | paste part - | cmp -s - both.out || fail "--proba: $(head -n 1 both.out)"
works two predict --model-file model --data part --data part.gz --join
cat joined.out joined.out | cmp -s - two.out || fail "two files are not one after the other"

# CSV: further cells, whose names the header gets; without a header there is none.
works iris train --data "$small/iris.csv" --out iris.model --quiet
works flowers predict --model-file iris.model --data "$small/iris.csv"
works joined predict --model-file iris.model --data "$small/iris.csv" --join
sed 1d "$small/iris.csv" | tr -d '\r' | paste -d , - flowers.out >want
cmp -s want joined.out || fail "iris: $(head -n 2 joined.out)"
cat >people.csv <<'END'
age,"job, title",class
70,a,"old, er"
20,a,young
75,b,"old, er"
25,b,young
72,"c ""c""","old, er"
21,a,young
END
works people train --data people.csv --l2 0.01 --out people.model --quiet
works joined predict --model-file people.model --data people.csv --join
sed '1s/$/,predicted/; 2,$s/,\([^,]*\|"[^"]*"\)$/,\1,\1/' people.csv | cmp -s - joined.out || fail "people: $(cat joined.out)"
works again predict --model-file people.model --data joined.out --join
head -n 1 again.out | grep -qx 'age,"job, title",class,predicted,predicted_2' || fail "a name comes twice: $(head -n 1 again.out)"
works proba predict --model-file people.model --data people.csv --join --proba
head -n 1 proba.out | grep -qx 'age,"job, title",class,"p_old, er",p_young' || fail "names of classes: $(head -n 1 proba.out)"
[ "$(sed 's/"[^"]*"/x/g' proba.out | awk -F , '{ print NF }' | sort -u)" = 5 ] || fail "rows have other cells: $(cat proba.out)"
tr ',' '\t' <<'END' >plain.tsv
x,y,class
END
awk 'BEGIN { OFS = "\t"; for (i = 0; i < 40; i++) print i, i * 7 % 11, (i > 20 ? "b" : "a") }' >>plain.tsv
works tsv train --data plain.tsv --model gbdt --epochs 2 --min-rows 2 --out tsv.model --quiet
works joined predict --model-file tsv.model --data plain.tsv --join --contributions
head -n 1 joined.out | grep -qP '^x\ty\tclass\tadds_x\tadds_y\tadds_mean$' || fail "contributions: $(head -n 1 joined.out)"
[ "$(awk -F '\t' '{ print NF }' joined.out | sort -u)" = 6 ] || fail "contributions: $(head -n 3 joined.out)"

# Without lines there is nothing to join.
printf '\0\0\10\2\0\0\0\4\0\0\0\2\1\2\3\4\5\6\7\10' >my-images-idx3
printf '\0\0\10\1\0\0\0\4\0\1\0\1' >my-labels-idx1
works idx train --data my-images-idx3 --out idx.model --quiet
exits 2 'my-images-idx3: idx data are no lines of text' none predict --model-file idx.model --data my-images-idx3 --join
exits 2 'unknown option --join' none transform --model-file model --data part --join
finish
