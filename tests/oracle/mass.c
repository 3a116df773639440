/* mass.c - of a gossip table: what all copies hold together.
 *
 * Mixing copies with equal weights (bsp's and local-sgd's rounds) does not change their sum, and an update moves its
 * worker's copy `workers` times as far. So at the beginning of clock c the copies' sum is `workers` times all
 * updates of clocks < c. It is known where every worker reads its copy (behind a barrier it
 * would be the average) before it updates it in that clock. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "oracle.h"

struct mass {
    const program *p;
    double        *sum[TABLES];  /* [clocks + 1, rows, cols]  */
    int32_t       *from[TABLES]; /* which workers' copies are in it: one bit each */
};

mass *mass_new(const program *p) {
    mass *m = calloc(1, sizeof *m);
    if (m == NULL) abort();
    m->p = p;
    for (int32_t i = 0; i < p->n_tables; i++) {
        const plan  *t = &p->tables[i];
        const size_t n = (size_t)(p->clocks + 1) * (size_t)(t->rows * t->cols);
        if (t->way != GOSSIP || t->policy == ASYNC) continue;
        m->sum[i] = calloc(n, sizeof *m->sum[i]);
        m->from[i] = calloc(n, sizeof *m->from[i]);
        if (m->sum[i] == NULL || m->from[i] == NULL) abort();
    }
    return m;
}

void mass_free(mass *m) {
    for (int32_t i = 0; i < m->p->n_tables; i++) {
        free(m->sum[i]);
        free(m->from[i]);
    }
    free(m);
}

/* Has the reader updated the row in this clock before the read has ended? */
static bool has_moved(const reading *r, const group *g) {
    for (int32_t i = 0; i < g->n_updates; i++) {
        const update *u = &g->updates[i];
        if (u->worker == r->worker && u->clock == r->clock && u->call < r->to) return true;
    }
    return false;
}

void mass_add(mass *m, const reading *r, uint64_t row, int32_t col, double value) {
    const plan *t = &m->p->tables[r->table];
    if (m->sum[r->table] == NULL || r->view || has_moved(r, &t->groups[group_of(t, row)])) return;
    const size_t at = (size_t)((r->clock * t->rows + (int64_t)row) * t->cols + col);
    if ((m->from[r->table][at] >> r->worker & 1) != 0) return;
    m->from[r->table][at] |= 1 << r->worker;
    m->sum[r->table][at] += value;
}

static bool judge_one(const mass *m, int32_t table, int32_t clock, int64_t row, int32_t col, char *why) {
    const program *p = m->p;
    const plan    *t = &p->tables[table];
    const size_t   at = (size_t)((clock * t->rows + row) * t->cols + col);
    const group   *g = &t->groups[group_of(t, (uint64_t)row)];
    double         all = 0;
    if (m->from[table][at] != (1 << p->workers) - 1) return true;
    for (int32_t i = 0; i < g->n_updates; i++)
        if (g->updates[i].clock < clock) all += weight(t, g->updates[i].digit, col);
    all *= t->ruled ? -p->workers : p->workers;
    if (fabs(m->sum[table][at] - all) <= (t->wide ? 1e-12 : 1e-5) * fabs(all) + t->unit / 16) return true;
    snprintf(why, WHY_BYTES,
             "at the beginning of clock %d all copies of row %" PRId64
             " column %d of %s (%s x %s) add up to %.17g, not "
             "to %.17g; promised: the average of all copies moves by updates alone",
             clock, row, col, t->name, t->topology, t->consistency, m->sum[table][at], all);
    return false;
}

bool mass_judge(const mass *m, char why[WHY_BYTES]) {
    for (int32_t i = 0; i < m->p->n_tables; i++) {
        const plan *t = &m->p->tables[i];
        for (int32_t clock = 0; m->sum[i] != NULL && clock <= m->p->clocks; clock++)
            for (int64_t row = 0; row < t->rows; row++)
                for (int32_t col = 0; col < t->cols; col++)
                    if (!judge_one(m, i, clock, row, col, why)) return false;
    }
    return true;
}
