#!/bin/sh
# Runs a comparison with onnxruntime in a new folder, or prints what is missing. After a failure the folder is kept.
# usage: onnx.sh ops ONNX_RUN GRAPHS | bad ONNX_RUN | cases ONNX_RUN | docs ONNX_RUN | nodes ONNX_RUN | export ONNX_RUN
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$PLAIT_SOURCE_DIR/.venv/bin/python
"$python" -c 'import onnx, onnxruntime, numpy' 2>/dev/null || {
    echo "skipped: onnx, onnxruntime and numpy are not in .venv; script/bootstrap --all installs them"
    exit 77
}
work=$(mktemp -d)
case $1 in
ops)
    graphs=$3
    if [ -n "${PLAIT_TEST_FULL:-}" ]; then graphs=$((graphs * 10)); fi
    "$python" "$here/onnx_ops.py" "$2" "$work" "$graphs" 1
    ;;
bad) "$python" "$here/onnx_bad.py" "$2" "$work" ;;
cases) "$python" "$here/onnx_cases.py" "$2" "$work" ;;
docs) "$python" "$here/onnx_docs.py" "$2" "$PLAIT_SOURCE_DIR" ;;
nodes)
    how=--short
    if [ -n "${PLAIT_TEST_FULL:-}" ]; then how=; fi
    "$python" "$here/onnx_nodes.py" "$2" "$work" $how
    ;;
export) "$python" "$here/onnx_export.py" "$PLAIT" "$2" "$PLAIT_SOURCE_DIR/tests/data" "$work" ;;
esac
rm -rf "$work"
