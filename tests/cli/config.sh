#!/bin/sh
# Flags, variables, the file, defaults: who wins, and who is said to have won; config's output is a file for --config.
. "$(dirname "$0")/common.sh"

printf 'epochs: 3\nbatch: 32\ntopology: ps\n' >run.yaml
code=0
PLAIT_EPOCHS=4 PLAIT_SEED=9 "$PLAIT" config --show-origin --config run.yaml --batch 64 --data part >origin.out 2>origin.err || code=$?
[ $code -eq 0 ] || fail "exit $code of config"
# is NAME VALUE ORIGIN
is() { grep -Eq "^$1: $2 +# $3\$" origin.out || fail "$1 is not $2 by $3: $(grep "$1" origin.out)"; }
is epochs 4 PLAIT_EPOCHS
is seed 9 PLAIT_SEED
is batch 64 flag
is topology ps 'run.yaml:3'
is model logistic default
is timeout 300s default
grep -q '^# learning-rate:' origin.out || fail "what is left to train is not commented out"

works config config --epochs 2 --data part --workers 2 --topology ps --l2 0.5 --no-intercept
works again config --config config.out
cmp -s config.out again.out || fail "config does not read what it wrote: $(diff config.out again.out | head -n 3)"
works trained train --config config.out --json
[ "$(field trained topology)" = ps ] || fail "the written config is not obeyed"
exits 2 "did you mean" typo config --epohcs 3
printf 'epohcs: 3\n' >typo.yaml
exits 2 "typo.yaml:1.*epochs" typo train --data part --config typo.yaml
printf 'epochs: none\n' >value.yaml
exits 2 "value.yaml:1" value train --data part --config value.yaml
# A mistyped variable is answered as a mistyped flag is, by every command that reads options; one that is no option, or
# another command's, is left alone.
PLAIT_EPOHCS=3
export PLAIT_EPOHCS
exits 2 "unknown variable PLAIT_EPOHCS; did you mean PLAIT_EPOCHS" variable train --data part
exits 2 "did you mean PLAIT_EPOCHS" variable predict --model-file m --data part
works help train -h
PLAIT_EPOHCS=
works empty config --data part
unset PLAIT_EPOHCS
PLAIT_XYZZYFOO=1
export PLAIT_XYZZYFOO
exits 2 "unknown variable PLAIT_XYZZYFOO.*unset it" variable config --data part
unset PLAIT_XYZZYFOO
PLAIT_PROBA=1 PLAIT_JOBS=2 PLAIT_SERVICE_HOST=10.0.0.1 PLAIT_PORT_80_TCP_ADDR=10.0.0.1
export PLAIT_PROBA PLAIT_JOBS PLAIT_SERVICE_HOST PLAIT_PORT_80_TCP_ADDR
works others config --data part
unset PLAIT_PROBA PLAIT_JOBS PLAIT_SERVICE_HOST PLAIT_PORT_80_TCP_ADDR
# Whatever the sources read or hand on by name is known.
grep -rhoE --include='*.c' --exclude='*_test.c' '"PLAIT_[A-Z_]+["=]' "$PLAIT_SOURCE_DIR/src" | grep -v 'PLAIT_"' | tr -d '"=' | sort -u >names
[ -s names ] || fail "no variable is found in the sources"
while read -r name; do
    grep -q "\"$name\"" "$PLAIT_SOURCE_DIR/src/cli/commands.c" || [ "$name" = PLAIT_CONFIG ] || fail "$name is no known variable"
done <names
printf 'epochs: 3\n  batch 4\n' >line.yaml
exits 2 "line.yaml:[0-9]" line train --data part --config line.yaml
printf 'epochs: {a: b}\n' >shape.yaml
exits 2 "shape.yaml:1: a value is wanted" shape train --data part --config shape.yaml
exits 1 "gone.yaml" gone train --data part --config gone.yaml
finish
