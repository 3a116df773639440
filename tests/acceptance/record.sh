#!/bin/sh
# The record of a run: every key of the contract, numbers or null, never NaN; data on stdout, talk on stderr.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 500 >part
works run train --data part --model logistic --workers 2 --topology ps --epochs 2 --json
[ "$(wc -l <run.out)" -eq 1 ] || fail "stdout has $(wc -l <run.out) lines, not the object alone"
for key in model rows features classes workers transport topology consistency collective optimizer epochs clocks objective \
    train_loss progressive_loss test_loss test_accuracy test_auc test_rmse test_mae load_seconds train_seconds \
    cpu_seconds clocks_per_second bytes_sent peak_rss_bytes model_hash idle_share virtual_seconds trace_hash messages tables \
    optimizer_why pair_why label converged validation_loss oob_loss oob_accuracy best_epoch stopped_early; do
    [ "$(field run $key)" != missing ] || fail "no key $key"
done
grep -qiE ':[ \t]*-?(nan|inf)' run.out && fail "a number that JSON does not know"
[ "$(field run rows)" = 500 ] || fail "rows is $(field run rows)"
[ "$(field run workers)" = 2 ] || fail "workers is $(field run workers)"
[ "$(field run transport)" = threads ] || fail "transport is $(field run transport)"
[ "$(field run topology)" = ps ] || fail "topology is $(field run topology)"
[ "$(field run test_loss)" = null ] || fail "test_loss is $(field run test_loss) without a test"
holds run bytes_sent "> 0"
field run model_hash | grep -qE '^[0-9a-f]{64}$' || fail "model_hash is no SHA-256: $(field run model_hash)"

# The same run twice gives the same bits.
works again train --data part --model logistic --workers 2 --topology ps --epochs 2 --json
[ "$(field run model_hash)" = "$(field again model_hash)" ] || fail "the same run gave another model"

# Where options come from.
echo 'epochs: 3' >run.yaml
code=0
PLAIT_EPOCHS=4 "$PLAIT" train --data part --config run.yaml --json >variable.out 2>variable.err || code=$?
[ "$(field variable epochs)" = 4 ] || fail "PLAIT_EPOCHS does not win over the file: $(field variable epochs)"
works file train --data part --config run.yaml --json
[ "$(field file epochs)" = 3 ] || fail "the file does not win over the default: $(field file epochs)"
works flag train --data part --config run.yaml --epochs 2 --json
[ "$(field flag epochs)" = 2 ] || fail "the flag does not win over the file: $(field flag epochs)"
finish
