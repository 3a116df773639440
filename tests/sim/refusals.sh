#!/bin/sh
# What sim does not do is refused by name, and a bad file by its line.
. "$(dirname "$0")/common.sh"
cluster 4
# shellcheck disable=SC2086
{
    exits 2 "local.*ps" local $sim --workers 4 --topology local
    exits 2 "threads 2 is refused over sim" threads $sim --workers 2 --threads 2
    exits 2 "goes with --transport sim" alone train --data "$data/a9a/a9a.gz" --cluster c.yaml
    [ "$(cat /proc/sys/vm/max_map_count)" -gt 200000 ] ||
        exits 2 "60000 simulated ranks need 240000 memory mappings.*sysctl -w vm.max_map_count" many $sim --workers 60000 --dry-run
    # Under sanitizers a process has more address space than any limit.
    if (ulimit -v 1000000 && "$PLAIT" version) >/dev/null 2>&1; then
        (ulimit -v 1000000 && exits 1 "400 simulated ranks need 800 stacks of 8 MiB.*ulimit -v" space $sim --workers 400 --epochs 1 && [ $failures -eq 0 ]) ||
            fail "beyond the address space"
        (ulimit -v 1000000 && works within $sim --workers 4 --epochs 1 --quiet && [ $failures -eq 0 ]) ||
            fail "four ranks do not go into 1 GB of address space"
    fi
    exits 2 "4 cores, but there are 5 ranks" few $sim --workers 5 --cluster c.yaml
    exits 1 "nowhere.yaml" missing $sim --workers 4 --cluster nowhere.yaml
}
cluster 4 "slw: {factor: 2}"
exits 2 "c.yaml:5: unknown event 'slw'; did you mean 'slow'" typo $sim --workers 4 --cluster c.yaml
cluster 4 "kill: {ranks: 7, at: 1 s}"
exits 2 "c.yaml:5: there is no rank 7" rank $sim --workers 4 --cluster c.yaml
printf 'version: 2\n' >newer.yaml
exits 2 "newer.yaml:1: version" newer $sim --workers 4 --cluster newer.yaml

# A program without its modules, unless an installed one is found.
mkdir bare
cp "$PLAIT" bare/plait
for library in "$(dirname "$PLAIT")"/libplait.so.*; do cp "$library" bare/; done
(
    PLAIT=$scratch/bare/plait
    LD_LIBRARY_PATH=$scratch/bare
    export LD_LIBRARY_PATH
    # shellcheck disable=SC2086
    run bare $sim --workers 4
    [ $code -eq 0 ] || exits 2 "need the module plait-sim.so; to install it: apt-get install libsimgrid-dev" bare $sim --workers 4
    [ $failures -eq 0 ]
) || fail "without its module"
exits 2 "calibrate: --bandwidth 'fast': expected a rate such as 100 Mb/s" fast calibrate --out cal.yaml --bandwidth fast
exits 2 "calibrate: --latency '10': expected a time such as 20 us" bare calibrate --out cal.yaml --latency 10
[ -e cal.yaml ] && fail "what is refused was measured and written"
works calibrate calibrate --out cal.yaml --hosts 4
for cost in parsed entry key value sum message byte; do
    grep -q "^  $cost: [0-9.]* ns" cal.yaml || fail "calibrate measures no $cost"
done
[ "$(sed -n '/cost:/,$s/#.*//p' cal.yaml | awk '{ print length($0) }' | sort -u | wc -l)" -eq 1 ] || fail "comments do not line up: $(cat cal.yaml)"
# shellcheck disable=SC2086
works calibrated $sim --workers 4 --cluster cal.yaml
# shellcheck disable=SC2086
exits 2 "4 cores, but there are 5 ranks" five $sim --workers 5 --cluster cal.yaml
finish
