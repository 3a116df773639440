/* tests/sim/clock_sets.h - what jobs over broken links train (sim.cuts, sim.churn): worker v adds 2^c to its own column
 * in clock c, to each of some rows, so a value is the set of the clocks that it contains: lost or doubled, it shows.
 * Rows are far enough apart for each server to have one. */
#ifndef PLAIT_TESTS_SIM_CLOCK_SETS_H
#define PLAIT_TESTS_SIM_CLOCK_SETS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "table/table.h"

enum { SETS_WORKERS = 6, ITEMS = 5, ROWS = 1040 };

typedef struct policy {
    const char *topology, *consistency;
    bool        bsp, sums; /* sums: tables are mirrors, which all workers sum */
} policy;
static const policy policies[] = { { "ps", "bsp", true, false },
                                   { "ps", "ssp:1", false, false },
                                   { "ps", "async", false, false },
                                   { "allreduce", "bsp", true, true } };

/* A cluster file's text, as it grows. */
typedef struct text {
    char   bytes[4096];
    size_t length;
} text;

__attribute__((format(printf, 2, 3))) static inline void say(text *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    t->length += (size_t)vsnprintf(t->bytes + t->length, sizeof t->bytes - t->length, format, list);
    va_end(list);
}

static inline plait_status make_sets(plait_job *job, int32_t workers, plait_table **table_out) {
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = "t";
    o.type = PLAIT_F64;
    o.rows = ROWS;
    o.cols = workers;
    return plait_table_create(job, &o, table_out);
}

static inline plait_status read_sets(plait_table *table, double values[ITEMS * SETS_WORKERS]) {
    uint64_t keys[ITEMS];
    for (int i = 0; i < ITEMS; i++) keys[i] = (uint64_t)(i * (ROWS / ITEMS));
    return plait_table_get(table, ITEMS, keys, values);
}

/* Reads, then adds the clock: under bsp for each worker whose items this one holds, or (inherited) has just taken over;
 * else for itself. */
static inline plait_status add_clock(plait_table *table, const policy *kind, int32_t workers, int32_t me, int64_t clock,
                                     bool inherited) {
    double values[ITEMS * SETS_WORKERS];
    PLI_TRY(read_sets(table, values));
    for (int32_t v = 0; v < workers; v++)
        for (int i = 0; i < ITEMS; i++) {
            const uint64_t key = (uint64_t)(i * (ROWS / ITEMS));
            const bool     mine = inherited ? plait_table_inherits(table, v, (uint64_t)i) != 0
                                            : plait_table_holder(table, v, (uint64_t)i) == me;
            double         delta[SETS_WORKERS] = { 0 };
            delta[v] = (double)(UINT64_C(1) << clock);
            if (kind->bsp ? mine : v == me) PLI_TRY(plait_table_inc(table, 1, &key, delta, 0));
        }
    return PLAIT_OK;
}

#endif
