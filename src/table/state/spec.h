/* table/state/spec.h - what a table is, as every machine that deals with it knows it: fixed at creation, the same on
 * all ranks. Server, client and mirror each hold a copy. */
#ifndef PLI_TABLE_SPEC_H
#define PLI_TABLE_SPEC_H

#include <plait/table.h>

#include "optim/optim.h"
#include "table/combine/combine.h"
#include "table/consistency/consistency.h"
#include "table/filter/filter.h"
#include "table/state/placement.h"
#include "table/topology/topology.h"

enum { PLI_TABLE_NAME_MAX = 63 };

/* The most values of a table. No product of values and bytes overflows: the largest are two cells of 32 bytes a value
 * (a sum with a mark for each row, mirror.c). */
#define PLI_TABLE_VALUES_MAX (INT64_MAX / 128)

typedef struct pli_spec {
    int32_t      id; /* 0, 1, 2, ... in order of creation, the same on all ranks                  */
    char         name[PLI_TABLE_NAME_MAX + 1];
    plait_type   type;  /* F32, F64 or I64                                                          */
    const pli_combine *combine; /* how pushes to a row are combined ...                           */
    const pli_merge *merge; /* ... for values of the type                                         */
    int64_t      width; /* bytes of a value                                                         */
    bool         sharded; /* ruled: each worker has the rule's state of its slice of the values only  */
    bool         exact; /* a clock's updates are summed exactly, in cells (updates.h); floats only  */
    int64_t      sum_width; /* bytes of a value in a sum of updates: width, or a cell's             */
    int64_t      rows;  /* 0: sparse                                                                */
    int64_t      cols;
    bool         keyed; /* updates are buffered and sent by key: sparse, or dense with opts.keyed   */
    bool         ruled;
    bool         staleness_aware; /* ruled: steps are divided by how stale a push is              */
    bool         lazy;  /* the penalty's steps on rows that pushes do not touch are made up for later */
    plait_rule_numbers rule;
    int64_t      batch; /* of the job                                                               */
    pli_topology topology;
    char         consistency[PLI_CONSISTENCY_TEXT];
    char         filter[PLI_FILTERS_TEXT]; /* "": none */
    int32_t       most_shards; /* 0: no bound */
    pli_placement placement;
} pli_spec;

static inline int64_t pli_row_bytes(const pli_spec *spec) { return spec->cols * spec->width; }
static inline int64_t pli_sum_row_bytes(const pli_spec *spec) { return spec->cols * spec->sum_width; }

/** What kind of updates a table with these options has. Rows that are replaced are named one by one. */
static inline pli_fill pli_fill_of(const plait_table_opts *opts) {
    return opts->rows == 0 || opts->keyed != 0 || pli_combine_replaces(opts->combine) ? PLI_FILL_SPARSE
                                                                                      : PLI_FILL_DENSE;
}

/** Checks a user's options and makes a spec; without placement. Errors: EINVAL, ENAME. topology and consistency are
 *  known pairs (pli_pair_check). rules may be NULL. */
plait_status pli_spec_make(int32_t id, const plait_table_opts *opts, const char *topology, const char *consistency,
                           int64_t batch, const pli_rule_scope *rules, pli_spec *spec_out, plait_error *err);

/** A table of the same shape without a rule, to which updates are only added. */
pli_spec pli_spec_additive(const pli_spec *spec);

/** A hash of everything that must be the same on all ranks. */
uint64_t pli_spec_hash(const pli_spec *spec, const void *initial, const void *penalty);

/* How a spec travels: fixed fields, checked when it arrives, then the names of its filters, if it has some. */
typedef struct pli_wire_spec {
    uint32_t id, type, keyed, ruled, schedule, staleness_aware, exact, sharded, most_shards, unused;
    int64_t  rows, cols, batch, schedule_clocks;
    double   learning_rate, momentum, beta1, beta2, epsilon, ftrl_beta, l1, l2;
    char     name[PLI_TABLE_NAME_MAX + 1], topology[PLI_TOPOLOGY_TEXT], consistency[PLI_CONSISTENCY_TEXT],
        rule[PLI_RULE_NAME], combine[PLI_COMBINE_NAME];
} pli_wire_spec;
void         pli_spec_encode(const pli_spec *spec, pli_wire_spec *wire_out);
plait_status pli_spec_decode(const pli_wire_spec *wire, const pli_rule_scope *rules, int32_t servers,
                             int32_t first_rank, pli_spec *spec_out, plait_error *err);

#endif
