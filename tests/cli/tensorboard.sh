#!/bin/sh
# --tensorboard: TensorBoard itself (PyPI) reads what a run wrote. $1: is the module there (yes, no)? $2: a Python with tensorboard.
. "$(dirname "$0")/common.sh"
here=$(cd "$(dirname "$0")" && pwd)

mkdir alone
cp "$PLAIT" alone/plait
code=0
PLAIT_MODULES='' alone/plait train --data part --tensorboard board --quiet 2>err || code=$?
[ $code -ne 0 ] && says err 'apt-get install libprotobuf-c-dev protobuf-c-compiler' || fail "without its module: exit $code, $(cat err)"
[ ! -e board ] || fail "a refused run made a folder"
[ "$1" = yes ] || finish
works dry train --data part --tensorboard board --dry-run
[ ! -e board ] || fail "a dry run made a folder"
exits 1 'make its directory first' nowhere train --data part --tensorboard nowhere/board
"$2" -c 'import tensorboard' 2>/dev/null || skip "no tensorboard from PyPI in .venv (script/bootstrap --all)"

python=$2
works without train --data part --epochs 3 --workers 2 --topology ps --out without.model --quiet
works with train --data part --epochs 3 --workers 2 --topology ps --out with.model --tensorboard with --quiet
cmp without.model with.model || fail "a run under --tensorboard has another model"
for name in linear net; do
    words=
    [ $name = linear ] || words="--model mlp --layers 16"
    # shellcheck disable=SC2086
    works $name train --data part --test part --validation 0.2 --epochs 3 --workers 2 --topology ps --schedule cosine --json --quiet \
        --tensorboard $name --metrics $name.metrics $words
    "$python" "$here/tensorboard_check.py" $name $name.out $name.metrics ${words:+net} || fail "TensorBoard and the run $name"
done
finish
