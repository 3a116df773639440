#!/bin/sh
# Each table of a model by its own topology, consistency and filters; hybrid by the form of its updates.
. "$(dirname "$0")/common.sh"
t="train --data part --workers 2 --epochs 2 --batch 50"

# Of one table in two pieces, which say what the record has.
works one $t --table w:topology=ps --table w:filter=key-cache,key-delta,consistency=ssp:1 --json
says one.out '"tables": \[{"name": "w", "topology": "ps", "consistency": "ssp:1", "filter": "key-cache,key-delta"}\]' ||
    fail "the record's tables: $(cat one.out)"
works dry $t --table w:topology=ps,consistency=ssp:1 --json --dry-run
says dry.out '"name": "w", "topology": "ps", "consistency": "ssp:1"' || fail "a dry run's tables: $(cat dry.out)"
printf 'table:\n  - w:topology=ps\n  - w:consistency=ssp:1\n' >run.yaml
works config $t --config run.yaml --json
[ "$(field config consistency)" = ssp:1 ] || fail "--config with tables: $(cat config.out)"

# What is wrong is said by name.
exits 2 "unknown table 'v'.*known: w, b" name $t --table v:topology=ps
exits 2 "topologie.*did you mean topology" key $t --table w:topologie=ps
exits 2 "topology is given twice" twice $t --table w:topology=ps --table w:topology=local
exits 2 "consistency has no value" value $t --table w:consistency
exits 2 "expected NAME" none $t --table w
exits 2 "table w: .*did you mean 'bsp'" typo $t --table w:consistency=bps
exits 2 "table w: .*nearest is" pair $t --table w:topology=allreduce,consistency=ssp:2
exits 2 "table b is not in this run" absent $t --table b:topology=ps
exits 2 "lbfgs with topology gossip:ring is refused.*nearest is allreduce" line $t --optimizer lbfgs --table w:topology=gossip:ring
exits 2 "backup workers with topology gossip:ring are refused: a round" backup $t --topology gossip:ring --backup 1
exits 2 "filter fixed8 with consistency local-sgd:2 is refused.*added to an average; take a filter without loss" lossy $t --topology ps --consistency local-sgd:2 --filter fixed8
works help help logistic
says help.out '^  w  ' || fail "help of a model has no table w"

# Dense weights are summed, those by key lie on servers.
works dense $t --topology hybrid --json
says dense.out '"topology": "hybrid".*"name": "w", "topology": "allreduce"' || fail "hybrid, dense: $(cat dense.out)"
works keyed $t --topology hybrid --hash-bits 18 --json
says keyed.out '"topology": "hybrid".*"name": "w", "topology": "ps"' || fail "hybrid, by key: $(cat keyed.out)"
exits 2 "under hybrid a table with dense updates travels by allreduce.*nearest is" stale $t --topology hybrid --consistency ssp:2
works mixed $t --topology hybrid --consistency ssp:2 --hash-bits 18 --json
exits 2 "under hybrid a table with dense updates travels by allreduce.*servers would have nothing to do" idle $t --topology hybrid --servers 1
works servers $t --topology hybrid --hash-bits 18 --servers 1

# Features that grow by key: two tables, one each way, and an event log that proves both.
sed 's/ 1:1/ 900000000:1/' part >far
works grown train --data far --workers 2 --epochs 2 --batch 50 --topology hybrid --events log --json
says grown.out '"name": "w", "topology": "ps".*"name": "b", "topology": "allreduce"' || fail "by key: $(cat grown.out)"
works audit audit log
exits 2 "table b: .*only for this table, --table b:consistency=bsp" alone train --data far --workers 2 --topology hybrid --consistency ssp:2
works alone train --data far --workers 2 --epochs 2 --topology hybrid --consistency ssp:2 --table b:consistency=bsp
works apart train --data far --workers 2 --epochs 2 --batch 50 --topology ps --consistency ssp:2 \
    --table b:topology=allreduce,consistency=bsp --json
says apart.out '"name": "b", "topology": "allreduce", "consistency": "bsp"' || fail "b alone: $(cat apart.out)"
finish
