#!/bin/sh
# shellcheck disable=SC2086
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

# What cannot be written is told at the start, by a dry run as well, with the remedy; and nothing is left there.
t="train --data part --epochs 1 --quiet"
cannot() { # TEXT OPTION VALUE
    for way in "" --dry-run; do
        # shellcheck disable=SC2086
        exits 1 "$3: cannot be written.*$1" cannot $t $2 "$3" $way
        [ "$(wc -l <cannot.err)" -eq 1 ] || fail "$2 $3 says $(cat cannot.err)"
    done
}
each="--checkpoint --out --metrics --events --trace --tensorboard"
[ -e "$(dirname "$PLAIT")/modules/plait-tensorboard.so" ] || each="--checkpoint --out --metrics --events --trace"
touch file
for option in $each; do
    cannot "make its directory first" $option nowhere/d
    # shellcheck disable=SC2086
    exits 2 "$option is empty: expected" empty $t $option ''
done
cannot "name a directory" --checkpoint file
cannot "name a directory" --checkpoint file/d
works made $t --checkpoint new --dry-run
[ -e new ] && fail "a dry run has made a directory of checkpoints"
trap 'umount "$scratch/disk" 2>/dev/null || true; rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
mkdir disk
if mount -t tmpfs -o size=64k none disk 2>/dev/null; then
    mkdir disk/there
    dd if=/dev/zero of=disk/full bs=1024 count=100 2>/dev/null || true
    for option in $each; do cannot "No space left.*free some space" $option disk/m; done
    cannot "No space left.*free some space" --checkpoint disk/there
    [ "$(ls disk)" = "$(printf 'full\nthere')" ] || fail "a probe has left $(ls disk)"
    rm disk/full
    exits 1 "disk/there: a checkpoint needs at least 0.6 MB" large $t --model mlp --layers 1200 --checkpoint disk/there --dry-run
    mount -o remount,ro disk
    for option in $each; do cannot "name a place that you may write to" $option disk/m; done
    umount disk
else
    echo "skipped: full and read-only disks: tmpfs cannot be mounted here, which needs root"
fi

# A checkpoint that fails in the middle costs neither the run nor the model: no file may be as large as a checkpoint of adam.
limited() { # FILE words...: in the background, its talk in FILE
    said=$1
    rm -f "$said"
    shift
    # shellcheck disable=SC2016
    sh -c 'ulimit -f 100; exec "$0" "$@"' "$PLAIT" train --data part --model mlp --layers 90 "$@" >out 2>"$said" &
    pid=$!
}
unkept='checkpoint of clock [0-9]* could not be written: .*File too large'
rm -rf d kept kept.done
limited whole.err --epochs 5 --checkpoint d --checkpoint-every 20 --out kept
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "exit $code where no checkpoint could be written: $(tail -n 1 whole.err)"
[ -s kept.done ] || fail "a checkpoint that fails costs the model"
grep -q '^train loss' out || fail "a checkpoint that fails costs the record: $(cat out)"
[ "$(grep -c "warning: .*$unkept.*goes on" whole.err)" -eq 1 ] || fail "it is not warned once: $(cat whole.err)"
tail -n 1 whole.err | grep -q "^plait: the $unkept" || fail "it is not told at the end: $(tail -n 1 whole.err)"
for words in "--out kept" ""; do
    rm -rf d kept kept.done
    # shellcheck disable=SC2086
    limited cut.err --epochs 1000000 --checkpoint d --checkpoint-every 20 $words
    until_holds 300 says cut.err "warning: .*$unkept" || fail "no checkpoint fails: $(cat cut.err)"
    kill -TERM $pid
    code=0
    wait $pid || code=$?
    if [ -n "$words" ]; then
        [ $code -eq 75 ] && [ -s kept ] || fail "exit $code, and $(ls kept) where the last checkpoint fails"
        grep -q 'to go on from the saved weights' cut.err || fail "it is not told how to go on: $(tail -n 2 cut.err)"
    else
        [ $code -eq 1 ] || fail "exit $code where nothing could be saved"
    fi
done
[ -z "$(ls d)" ] || fail "a checkpoint that failed is left: $(ls d)"

# What a killed process has left goes at the next start: of this model, of a dead process, that nobody writes.
sh -c 'echo $$' >dead
dead=$(cat dead)
touch "model.tmp.$dead" "model.tmp.$dead.1" "model.tmp.$$" "model.tmp.x" "model2.tmp.$dead" "model.tmp.${dead}a"
works swept $t --out model
[ "$(echo model*.tmp.*)" = "$(echo "model.tmp.$$" "model.tmp.${dead}a" model.tmp.x "model2.tmp.$dead" | tr ' ' '\n' | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')" ] ||
    fail "left over: $(echo model*.tmp.*)"
rm -f model*.tmp.*
# A link is followed, whether its target is there or not.
mkdir elsewhere
ln -s elsewhere/real linked
works links $t --out linked
[ -L linked ] && [ -s elsewhere/real ] || fail "a link to nothing is replaced: $(ls -l linked)"
works links $t --out linked
[ -L linked ] && [ -s linked.done ] || fail "a link is replaced"
ln -s elsewhere/gone/real lost
exits 1 "lost: cannot be written.*make its directory first" lost $t --out lost

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
