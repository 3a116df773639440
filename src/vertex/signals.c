/* Which vertices take part in a superstep, where their worker has died (heirs.h).
 *
 * A worker finds that by what it saw one superstep before: a far end that tells something else since then signals, and
 * a vertex that has applied may take part again (active.c). Both follow from a table, NAME.before. In each superstep
 * owners push a row for each of their vertices:
 *
 *     all columns but the last   the bits of the value with which this superstep has begun
 *     the last one               0: nothing was pushed yet, the first superstep is to come; AGAIN: it takes part again;
 *                                ONCE: only if it is signaled
 *
 * Two replicas need a table that adds, so what is pushed is the change of these whole numbers, which wrap around.
 * In the next superstep the value table has the new values, and this table the old ones beside them. An heir of a part
 * reads both, and asks the same edges as the dead worker. It does so in each superstep anew, and keeps nothing:
 * what it reads in a clock that has ended already, without its knowing, is the next one's. Gathers of such a part are
 * not cached.
 *
 * Rows are those of all own vertices, whether they have changed or not, so that an heir pushes the same rows. */
#include "vertex/signals.h"

#include "table/table.h"
#include "vertex/beside.h"
#include "vertex/heirs.h"

enum { ONCE = 1, AGAIN = 2 };

/* Of a row, in whole numbers. */
static int32_t columns(const pli_vertex_run *run) { return (int32_t)((run->value_bytes + 7) / 8) + 1; }

plait_status pli_signals_make(pli_vertex_run *run) {
    return pli_beside_make(run->job,
                           &(pli_beside){ .program = run->program.name, .what = "before", .type = PLAIT_I64,
                                          .rows = run->edges->n, .cols = columns(run) },
                           &run->before);
}

/* Rows of the part's own vertices are what the table has of them; behind them is room for a change. */
static plait_status make_rows(const pli_vertex_run *part, pli_active *a) {
    if (a->rows == NULL)
        a->rows = pli_calloc(2 * (size_t)part->part.owned * (size_t)columns(part), sizeof *a->rows);
    return a->rows != NULL ? PLAIT_OK
                           : pli_fail(part->err, PLAIT_ENOMEM, "%s: no memory for what vertices had before",
                                      part->program.name);
}

plait_status pli_signals_push(pli_vertex_run *part, pli_active *a) {
    const pli_part *p = &part->part;
    const int32_t   cols = columns(part);
    if (p->owned == 0) return PLAIT_OK;
    PLI_TRY(make_rows(part, a));
    int64_t *change = a->rows + p->owned * cols;
    for (int64_t i = 0; i < p->owned; i++) {
        int64_t *row = a->rows + i * cols, *by = change + i * cols;
        memset(by, 0, (size_t)cols * sizeof *by);
        memcpy(by, pli_run_value(part, p->own + i), part->value_bytes);
        by[cols - 1] = a->stays[p->own + i] ? AGAIN : ONCE;
        for (int32_t k = 0; k < cols; k++) {
            const int64_t now = by[k];
            by[k] = (int64_t)((uint64_t)now - (uint64_t)row[k]);
            row[k] = now;
        }
    }
    return plait_table_inc_range(part->before, pli_part_vertex(p, p->own), p->owned, change, 0);
}

/* --- in place of a dead worker ------------------------------------------------------------------------------------ */

/* The first superstep of this start: those take part who start, or who did when a checkpoint was made. */
static plait_status recall_first(pli_vertex_run *part, pli_active *a) {
    a->begun = false;
    if (!part->restored) return PLAIT_OK;
    PLI_TRY(pli_vertex_make_row(part));
    return plait_table_get_range(part->frontier, part->cut->first[part->rank], part->part.owned, part->row);
}

static plait_status take_rows(pli_vertex_run *part, pli_active *a, const int64_t *rows) {
    const pli_part *p = &part->part;
    const int32_t   cols = columns(part);
    memcpy(a->rows, rows + p->own * cols, (size_t)(p->owned * cols) * sizeof *rows);
    if (a->rows[cols - 1] == 0) return recall_first(part, a);
    a->begun = true;
    if (a->cached != NULL) memset(a->cached, 0, (size_t)p->n);
    for (int64_t v = 0; v < p->n; v++) {
        a->stays[v] = rows[(v + 1) * cols - 1] == AGAIN;
        pli_active_see(a, part, v, rows + v * cols);
    }
    return PLAIT_OK;
}

plait_status pli_signals_recall(pli_vertex_run *part, pli_active *a) {
    const pli_part *p = &part->part;
    if (p->owned == 0) return PLAIT_OK;
    PLI_TRY(make_rows(part, a));
    int64_t *rows = pli_array((size_t)p->n * (size_t)columns(part), sizeof *rows);
    if (rows == NULL)
        return pli_fail(part->err, PLAIT_ENOMEM, "%s: no memory for what vertices had before", part->program.name);
    plait_status status = p->key == NULL ? plait_table_get_range(part->before, 0, p->n, rows)
                                         : plait_table_get(part->before, p->n, p->key, rows);
    if (status == PLAIT_OK) status = take_rows(part, a, rows);
    pli_free(rows);
    return status;
}
