#!/bin/sh
# Control bytes in what is read never reach the terminal raw: in cells, names, labels, models, graphs, checkpoints, event
# logs, YAML and the names of files. What is printed is text: no byte below blank but newline and tab, no 0x7f, UTF-8.
. "$(dirname "$0")/common.sh"

esc=$(printf '\033')
bad=$(printf 'x\033[2J\177\302\233\377y')
long=$(printf '\033\177\233')

# shown NAME words...: runs it, whatever its exit code, but for signals; both streams are text, one of them speaks of it
shown() {
    name=$1
    shift
    code=0
    "$PLAIT" "$@" >"$name.out" 2>"$name.err" </dev/null || code=$?
    [ $code -le 4 ] || fail "$name: exit $code"
    for stream in "$name.out" "$name.err"; do
        [ "$(LC_ALL=C tr -d '\n\t -~\200-\377' <"$stream" | wc -c)" -eq 0 ] || fail "$name: control bytes in $stream"
        LC_ALL=C grep -q "$(printf '\302[\200-\237]')" "$stream" && fail "$name: upper control characters in $stream"
        iconv -f UTF-8 -t UTF-8 "$stream" >/dev/null 2>&1 || fail "$name: $stream is not UTF-8"
    done
}
# tells NAME: and it was about the bytes, which stand there escaped
tells() {
    shown "$@"
    grep -q '\\x1b' "$1.out" "$1.err" || fail "$1: does not show the bytes: $(head -c 300 "$1.err")"
}

# Cells, column names, labels, names of files.
{
    printf 'y,%s,b\n' "a$bad"
    i=0
    while [ $i -lt 40 ]; do
        printf 'no,1,2\n%s,2,%s\n' "yes$bad" "$i"
        i=$((i + 1))
    done
} >named.csv
shown csv train --data named.csv --epochs 2 --out named.model --json
tells labels inspect named.model
tells weights inspect named.model --weights
tells predict predict --model-file named.model --data named.csv
tells class train --data named.csv --class-weight "no$bad:2"
tells column train --data named.csv --label "$bad"
printf 'y,a\n1,2\n0,3\n1,4\n0,5\n1,6\n1,7\n0,8\n0,9\n1,2\n1,%s\n0,1\n' "$bad" >cell.csv
tells cell train --data cell.csv
printf '1 1:%s\n' "$bad" >cell.svm
shown libsvm train --data cell.svm --format libsvm
tells file train --data "no$bad"
cp named.csv "$bad.csv"
tells taken train --data "$bad.csv" --label 99
printf '1\n%s\n' "$bad" >part.weight
tells rowweight train --data part
rm part.weight
tells word train "$bad"
tells option train --data part "--$bad" 3
tells model train --data part --model "$bad"

# Graphs, their names and attributes.
printf '{"version": 1, "nodes": [{"op": "no\\u001b[2J", "name": "\\u001b\\u007f"}]}' >graph.json
shown graph train --graph graph.json --data part
printf '{"\033' >broken.json
shown json train --graph broken.json --data part
works net train --model mlp --layers 3 --data named.csv --epochs 1 --out net.model --quiet
works export export --model-file net.model --format onnx --out net.onnx
for word in MatMul plait label Gemm; do
    LC_ALL=C sed "s/$word/$(printf '%s' "$word" | LC_ALL=C sed "s/^.../$long/")/g" net.onnx >"bad-$word.onnx"
    shown "onnx-$word" train --graph "bad-$word.onnx" --data part
done

# Models and checkpoints, whose names are damaged.
for word in logistic description schema weight format F64 F32 named plait; do
    LC_ALL=C sed "s/$word/$(printf '%s' "$word" | LC_ALL=C sed "s/^.../$long/")/" named.model >"bad-$word.model"
    shown "model-$word" inspect "bad-$word.model"
    shown "init-$word" train --data named.csv --init-model "bad-$word.model" --epochs 1
done
works kept train --data part --epochs 2 --batch 100 --checkpoint kept --checkpoint-every 2 --quiet
for word in tensors clock values parts meta weights F32; do
    for manifest in kept/checkpoint-*/manifest*; do
        cp "$manifest" good
        LC_ALL=C sed "s/$word/$(printf '%s' "$word" | LC_ALL=C sed "s/^.../$long/")/" good >"$manifest"
        shown "list-$word" checkpoint list kept
        shown "look-$word" checkpoint inspect kept
        shown "resume-$word" train --data part --epochs 3 --resume kept --quiet
        cp good "$manifest"
    done
done
mkdir "kept/checkpoint-$esc"
shown listed checkpoint list kept
shown listed-json checkpoint list kept --json
shown looked-json checkpoint inspect kept --json

# Event logs, YAML.
works logged train --data part --workers 2 --epochs 1 --events run.events --quiet
LC_ALL=C sed "s/bsp/$long/" run.events >bad.events
shown audit audit bad.events
tells audit-as audit --as "$bad" run.events
printf 'model: "\\e[2J"\n%s: 3\n' "$bad" >config.yaml
shown config train --data part --config config.yaml
printf 'batch: "\\e[2J"\n' >config.yaml
tells value train --data part --config config.yaml
printf 'hosts: "\\e[2J"\nlinks: {"\\x7f\\e": 3}\n' >cluster.yaml
shown cluster train --data part --transport sim --cluster cluster.yaml
finish
