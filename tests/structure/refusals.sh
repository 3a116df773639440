#!/bin/sh
# Which settings go together is decided in src/table/pairs/ and nowhere else. PLAIT_EREFUSED stands elsewhere only where
# no settings meet: a file's contents, one option's own words, a transport's means, a call that comes at a wrong moment.
# usage: refusals.sh ROOT
set -eu
. "$(dirname "$0")/common.sh"
root=$1

cat >"$work/allowed" <<'END'
src/table/pairs/                 the place
src/base/opts                    options of later versions
src/graph/                       graphs and ONNX files
src/comm/                        what a transport, or this machine, does not have
src/cli/ask.c                    another user's process
src/cli/commands.c               exit codes
src/cli/join.c                   data: no lines
src/data/dataset/written.c       data: no lines
src/cli/answers.c                a model without such an answer
src/cli/serve/body.c             data: a model whose rows JSON cannot hold
src/cli/cv_folds.c               data: a text's windows, which are no rows of their own
src/learn/bayes/                 data: features that grow by key; a model's form
src/learn/factors/               data: no users and items; one option's own words
src/learn/keep/resume.c          what a checkpoint holds
src/learn/model/                 what a model cannot do
src/learn/kmeans/                data: features that grow by key
src/learn/linear/                data: features that grow by key; a model's form
src/learn/net/                   graphs as nets; rows as they fit a net
src/learn/supervised/            data: labels; a model without probabilities
src/learn/pca/                   data: features that grow by key; passes that its solver counts
src/learn/trees/                 data: keys, rows, nothing to split by; rows that stay with their worker
src/learn/topics/                data: keys, weights, tokens; topics that no table holds
src/learn/run/fit.c              passes a refusal on: ranks that need threads
src/learn/run/choose.c           a model without such a solver
src/learn/run/prepare.c          data: text whose windows lie apart
src/learn/run/tables.c           passes a refusal on
src/learn/solve/balance.c        data: fewer blocks than workers
src/sched/schedule.c             a program's schedule, which asks its job for properties
src/optim/rules.c                a rule's own options
src/vertex/                      data: weights; a program's own demands, which asks its job for properties
src/table/client/lease.c         calls
src/table/copies/job_roster.c    calls
src/table/table_create.c         a caller that is no member of the group
src/table/filter/                a filter's own demands; the order of filters
src/table/job_clock.c            calls
src/table/state/spec.c           a rule without the table's type
src/table/table_call.c           calls
src/watch/audit/schedule_dead.c  a log of ranks that were started anew
END
awk '{ print $1 }' "$work/allowed" >"$work/paths"
(cd "$root" && grep -rn 'PLAIT_EREFUSED' src --include='*.c') | grep -v '_test[.]c:\|_fuzz[.]c:' >"$work/all" || true
while read -r line; do
    place=${line%%:*}
    while read -r path; do
        case $place in "$path"*) continue 2 ;; esac
    done <"$work/paths"
    violation "$line"
done <"$work/all"
while read -r path; do
    [ -d "$root/src/table/pairs" ] || break     # a small tree, in which not all is there
    grep -q "^$path" "$work/all" || violation "$path is allowed, and refuses nothing: take it off the list"
done <"$work/paths"

# Settings ask for properties (plait/property.h), never for the name of a policy or a topology.
names='bsp|ssp|essp|asp|async|sequential|vap|downpour|local-sgd|bounded-delay|allreduce|gossip|hybrid'
(cd "$root" && grep -rnE "strn?cmp\\([^;]*\"($names)[\":]" src --include='*.c') |
    grep -v '_test[.]c:\|_fuzz[.]c:\|^src/watch/audit/\|^src/table/consistency/\|^src/cli/help_pairs[.]c' >"$work/named" || true
while read -r line; do violation "asks for a name: $line"; done <"$work/named"
verdict "$(wc -l <"$work/all") refusals"
