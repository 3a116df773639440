#!/bin/sh
# shellcheck disable=SC2086
# What a command writes is none of what it reads, nor twice the same: exit 2, and every file as it was.
. "$(dirname "$0")/common.sh"
works model train --data part --epochs 1 --out model --quiet
mkdir d
cp part d/one
cp part d/two
sed 's/.*/1/' part >part.weight
cp part held
ln -s part soft
ln part hard
printf 'epochs: 1\n' >run.yaml
sum() { cat part d/one d/two part.weight held run.yaml model | cksum; }
before=$(sum)
t="train --epochs 1 --quiet"
for option in --out --metrics --events; do
    exits 2 "$option would write over --data part" data $t --data part $option part
    exits 2 "$option would write over" soft $t --data part $option soft
    exits 2 "$option would write over" hard $t --data part $option ./hard
    exits 2 "$option would write over --data d/two" folder $t --data d $option d/two
    exits 2 "$option would write over --data d/one" pattern $t --data 'd/*' $option "$scratch/d/one"
    exits 2 "$option would write over the weights of" weights $t --data part $option part.weight
    exits 2 "$option would write over --test" test $t --data part --test held $option held
    exits 2 "$option would write over --validation" validation $t --data part --validation held $option held
    exits 2 "$option would write over --config" config $t --data part --config run.yaml $option run.yaml
done
exits 2 "--metrics would write over --init-model" start $t --data part --init-model model --metrics model
exits 2 "--metrics would write over --events" each $t --data part --events new --metrics ./new
exits 2 "--metrics would write over --out" each $t --data part --out new --metrics d/../new
exits 2 "--metrics would write over --out \(FILE.done\)" each $t --data part --out new --metrics new.done
exits 2 "--events would write over --metrics" rank $t --data part --events new --metrics new.0
exits 2 "--out would write over --data" predict predict --model-file model --data part --out part
exits 2 "--out would write over --model-file" predict predict --model-file model --data part --out model
[ -e new ] && fail "a refused run has written"
[ "$before" = "$(sum)" ] || fail "a refused run has changed a file"

# What is no file of its own may be shared, and a model may go on in its place.
works null $t --data part --metrics /dev/null --events /dev/null
works place $t --data part --init-model model --out model

# Standard input is read once; a model is not written into a pipe, which would wait for a reader.
code=0
"$PLAIT" train --data - --test - --epochs 1 <part >/dev/null 2>twice.err || code=$?
[ $code -eq 2 ] && grep -q 'standard input can be read only once' twice.err || fail "--test - beside --data -: $(cat twice.err)"
mkfifo fifo
code=0
"$PLAIT" train --data part --epochs 1 --out fifo >/dev/null 2>fifo.err || code=$?
[ $code -eq 2 ] && grep -q 'not written into a pipe' fifo.err || fail "a model went into a pipe: $(cat fifo.err)"
finish
