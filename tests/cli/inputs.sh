#!/bin/sh
# What --data takes besides files: pipes, several names; notes are told once.
. "$(dirname "$0")/common.sh"

# piped NAME words...: the same with part on the standard input
piped() {
    name=$1
    shift
    code=0
    "$PLAIT" "$@" <part >"$name.out" 2>"$name.err" || code=$?
    [ $code -eq 0 ] || { fail "exit $code of: plait $* <part"; tail -n 5 "$name.err"; }
}
piped alone train --data - --epochs 3 --json --quiet
for topology in local allreduce ps; do
    piped three train --data - --epochs 3 --json --quiet --workers 3 --topology $topology
    [ "$(field three rows)" = 300 ] || fail "$topology: $(field three rows) rows"
    [ "$(field three objective | cut -c 1-7)" = "$(field alone objective | cut -c 1-7)" ] ||
        fail "$topology: 3 workers on - end at $(field three objective), 1 at $(field alone objective)"
done
piped stream train --data - --epochs 1 --json --quiet --workers 2
mkfifo pipe
cat part >pipe &
works pipe train --data pipe --epochs 3 --json --quiet
[ "$(field pipe model_hash)" = "$(field alone model_hash)" ] || fail "a pipe gives another model than -"
exits 1 'standard input: empty' empty train --data - --workers 3

# Notes: once where all workers have the same, else by rank.
printf '4,2,no,yes\n1,2,0\n2,1,1\n3,1,0\n1,5,1\n' >sizes.csv
sed 's/ / qid:1 /' part >qid
works noted train --data sizes.csv --workers 3 --epochs 2
[ "$(grep -c 'left out' noted.err)" -eq 1 ] || fail "a note of all workers is told $(grep -c 'left out' noted.err) times"
works one train --data qid --epochs 2
[ "$(grep -c 'qid' one.err)" -eq 1 ] || fail "a note of one worker is told $(grep -c qid one.err) times"

# Images: four of 2 x 2, and their labels beside them.
printf '\000\000\010\003\000\000\000\004\000\000\000\002\000\000\000\002abcdeeggaicddmff' >x-images-idx3-ubyte
printf '\000\000\010\001\000\000\000\004\001\000\001\000' >x-labels-idx1-ubyte
gzip -c x-images-idx3-ubyte >x-images-idx3-ubyte.gz
works images train --data x-images-idx3-ubyte --epochs 2 --json --quiet --out x.model
works packed train --data x-images-idx3-ubyte.gz --label x-labels-idx1-ubyte --format idx --epochs 2 --json --quiet --workers 2 --reduce exact
[ "$(field images features)" = 4 ] || fail "2 x 2 images have $(field images features) features"
works told predict --model-file x.model --data x-images-idx3-ubyte
[ "$(wc -l <told.out)" -eq 4 ] || fail "4 images get $(wc -l <told.out) predictions"
# --label is the file for --data alone: other images have theirs beside them, and none takes another's place.
printf '\000\000\010\001\000\000\000\004\001\000\001\007' >y-labels-idx1-ubyte
printf '\000\000\010\001\000\000\000\003\001\000\001' >few
cp x-images-idx3-ubyte y-images-idx3-ubyte
cp x-images-idx3-ubyte z-images-idx3-ubyte
exits 1 'y-images-idx3-ubyte: row 4 has no label, or a label' beside train --data x-images-idx3-ubyte --label x-labels-idx1-ubyte \
    --test y-images-idx3-ubyte --epochs 2 --out untrained.model
[ -e untrained.model ] && fail "a test that cannot be judged is seen after the training"
exits 2 'z-images-idx3-ubyte: there is no file of labels beside these images' none train --data x-images-idx3-ubyte \
    --label x-labels-idx1-ubyte --test z-images-idx3-ubyte --epochs 2
exits 2 'few has 3 labels' mismatch train --data x-images-idx3-ubyte --label few --epochs 2
works itself train --data x-images-idx3-ubyte --label x-labels-idx1-ubyte --test x-images-idx3-ubyte --epochs 2 --json --quiet
works given eval --model-file x.model --data z-images-idx3-ubyte --label x-labels-idx1-ubyte --json
exits 1 'z-images-idx3-ubyte: row 4' unknown eval --model-file x.model --data z-images-idx3-ubyte --label y-labels-idx1-ubyte

# What has no meaning for images is refused, not passed over.
for option in --cache --weight-column=1 --window=4; do
    exits 2 "x-images-idx3-ubyte: ${option%=*} has no meaning for idx" "no${option%=*}" train --data x-images-idx3-ubyte $option --epochs 2
done
exits 2 'part: --window has no meaning for libsvm' nowindow train --data part --window 4 --epochs 2

# A net that goes on has the layers of its file; what is no model of plait is called by its name.
works net train --model mlp --layers 3 --data x-images-idx3-ubyte --epochs 2 --out net.model
works onward train --model mlp --data x-images-idx3-ubyte --epochs 2 --init-model net.model
exits 2 'has layers 3, not 4' other train --model mlp --layers 4 --data x-images-idx3-ubyte --epochs 2 --init-model net.model
printf '\010\010\022\005plait\072\000' >net.onnx
exits 1 'net.onnx: an ONNX file' onnx inspect net.onnx
exits 1 'smaller --layers' huge train --model mlp --layers 1000000,1000000 --data x-images-idx3-ubyte --epochs 2

# Text: a character that training never saw is told with file and row, before the training.
for i in 1 2 3 4 5 6; do echo "the quick brown fox jumps over the lazy dog"; done >fox.txt
echo "the quick brown fox jumps over 1 lazy dog" >one.txt
for model in logistic lstm; do
    exits 1 'one.txt: row [0-9]+ has a character' $model train --model $model --data fox.txt --test one.txt --format text --epochs 2
done
printf '%s\n' "It was a dark night" "and the rain fell in torrents" "except at times when it was checked" "by a gust of wind" >prose.txt
exits 1 'prose.txt: plain text: its lines have no labels.*--format text' prose train --data prose.txt
exits 1 'prose.txt: plain text' prose train --model mlp --data prose.txt --epochs 1
works prose train --model lstm --layers 2 --window 8 --data prose.txt --epochs 1
grep -q 'prose.txt: read as text, by characters' prose.err || fail "lstm does not say that it reads characters: $(cat prose.err)"
mv x-labels-idx1-ubyte elsewhere
exits 2 'name the file of labels by --label FILE' unlabelled train --data x-images-idx3-ubyte

exits 2 'write --data before each name' words train --data part part
exits 2 'above 0' rate train --data part --learning-rate 0
exits 2 'a file of labels goes with images in idx format' labels train --data sizes.csv --label part
works unused train --data part --optimizer lbfgs --epochs 3 --batch 10
grep -q 'batch has no effect' unused.err || fail "lbfgs does not say that --batch has no effect"

# A delimiter of its own is kept by the model, so that predict reads likewise.
printf 'y#a#b\n1#2,5#3\n0#4,5#6\n1#1,5#2\n0#5,5#1\n' >hash
works hash train --data hash --delimiter '#' --epochs 3 --out hash.model
grep -q 'numbers have decimal commas, as 2,5 in column "a"' hash.err || fail "decimal commas: $(cat hash.err)"
works asked predict --model-file hash.model --data hash --delimiter '#' --proba
works known predict --model-file hash.model --data hash --proba
grep -q 'numbers have decimal commas' known.err || fail "predict says nothing of decimal commas: $(cat known.err)"
grep -q 'text-columns' known.err && fail "predict advises an option that it does not have: $(cat known.err)"
cmp -s asked.out known.out || fail "predict does not know the delimiter of its model"
tr '#,' ',.' <hash >hash.csv
works other predict --model-file hash.model --data hash.csv --proba
cmp -s asked.out other.out || fail "predict takes another delimiter for the model's"
works judged eval --model-file hash.model --data hash --delimiter '#' --json
exits 2 'delimiter "7": expected tab' nodelimiter train --data hash --delimiter 7

# Files of other programs are named, through gzip and on the standard input too.
printf 'BZh91AY&SYabcdef' >packed.bz2
printf '\377\3761\000,\0002\000\n\000' >wide.csv
gzip -c wide.csv >wide.csv.gz
printf '1 |f a:1 b:2\n-1 |f a:3\n' >house.vw
exits 1 'packed.bz2: is bzip2: unpack it with .bunzip2 -k packed.bz2' bzip2 train --data packed.bz2
exits 1 'wide.csv.gz: is UTF-16 text' wide train --data wide.csv.gz --format csv
works vw train --data house.vw --epochs 2 --out vw.model
works vw-predict predict --model-file vw.model --data house.vw
exits 1 "house.vw:1: " vw-other predict --model-file hash.model --data house.vw
code=0
"$PLAIT" train --data - <wide.csv >wide-pipe.out 2>wide-pipe.err || code=$?
{ [ $code -eq 1 ] && grep -q 'standard input: is UTF-16' wide-pipe.err; } || fail "UTF-16 through a pipe: $(cat wide-pipe.err)"

# An index of any length is one: no other format.
{ printf '1 '; head -c 300000 /dev/zero | tr '\0' 9; printf ':1\n0 1:1\n'; } >long
exits 1 'long:1: expected an index below' long train --data long

# A file that is no data at all, as a list of names, is told for what it was taken.
printf 'ann\nbob\ncarl\nann\nbob\ncarl\n' >names
works names train --data names --epochs 1
grep -q 'names: read as a table of one column, the labels' names.err || fail "a list of names: $(cat names.err)"
works said train --data names --epochs 1 --format csv
grep -q 'read as' said.err && fail "what was asked for is told: $(cat said.err)"
finish
