#!/bin/sh
# A full disk, a limit on files, a reader who goes away: errors that lose nothing.
. "$(dirname "$0")/common.sh"

works first train --data part --epochs 1 --out model --quiet
cp model former
cp model.done former.done
[ -s model.done ] || fail "no model.done"

# A file may not grow: the former model stays, and no temporary file is left.
(
    ulimit -f 0
    code=0
    "$PLAIT" train --data part --epochs 2 --out model --quiet 2>limit.fifo || code=$?
    exit $code
) 2>/dev/null && fail "a model was saved beyond the limit"
cmp -s model former || fail "the former model is gone"
for file in model.*; do
    case $file in model.done | 'model.*') ;; *) fail "left over: $file" ;; esac
done
exits 1 'nowhere' nowhere train --data part --out nowhere/model

if [ -w /dev/full ]; then
    for words in "help" "inspect model" "inspect model --weights" "predict --model-file model --data part" \
        "eval --model-file model --data part" "config" "version" "train --data part --epochs 1 --json --quiet"; do
        code=0
        # shellcheck disable=SC2086
        "$PLAIT" $words >/dev/full 2>full.err || code=$?
        [ $code -eq 1 ] || fail "exit $code with a full disk behind stdout: plait $words"
        grep -q 'No space left' full.err || fail "a full disk is not named: plait $words: $(cat full.err)"
    done
    code=0
    "$PLAIT" train --data part --epochs 1 --metrics /dev/full --out kept --quiet 2>full.err || code=$?
    [ $code -eq 1 ] || fail "exit $code with metrics on a full disk"
    [ -s kept ] || fail "metrics on a full disk cost the model"
fi

# A reader who has enough.
awk 'BEGIN { for (i = 0; i < 100; i++) while ((getline line < "part") > 0) print line; }' >/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do cat part; done >some
for i in 1 2 3 4 5 6 7 8 9 10; do cat some; done >much
{
    code=0
    "$PLAIT" predict --model-file model --data much --proba 2>pipe.err || code=$?
    echo $code >pipe.code
} | head -n 1 >/dev/null
[ "$(cat pipe.code)" -eq 141 ] || fail "exit $(cat pipe.code) when the reader goes away"
[ -s pipe.err ] && fail "talk when the reader goes away: $(cat pipe.err)"
finish
