/* Which vertices take part in a superstep.
 *
 * PowerGraph's scatter runs along the edges of a vertex that has applied, and signals those on the other end. Here the
 * worker that gathers along an edge asks, when it *sees* that the far end tells something new: so a signal is no
 * message of its own, it goes with the value, and cannot overtake it. Where reads are stale a vertex is signaled later;
 * no change is overlooked, since what a worker saw last is kept beside what it reads.
 *
 * So it is with cached gathers: what a vertex has gathered is of what it saw last, and the program changes it along the
 * edges whose far end tells something new. */
#include "vertex/active.h"

enum { FEW = 8 }; /* by key, while fewer than one in so many own vertices are active */

bool pli_active_make(const pli_vertex_run *run, pli_active *a) {
    const size_t n = (size_t)run->part.n;
    if (run->program.scatter == NULL) return true;
    a->now = pli_calloc(n, 1);
    a->stays = pli_calloc(n, 1);
    a->changed = pli_calloc(n, 1);
    a->seen = pli_array(n, run->tell_bytes);
    if (run->program.post_delta != NULL && (a->cached = pli_calloc(n, 1)) == NULL) return false;
    a->key = pli_array((size_t)run->part.owned, sizeof *a->key);
    return a->now != NULL && a->stays != NULL && a->changed != NULL && a->seen != NULL && a->key != NULL;
}

void pli_active_free(pli_active *a) {
    pli_free(a->now);
    pli_free(a->stays);
    pli_free(a->changed);
    pli_free(a->seen);
    pli_free(a->cached);
    pli_free(a->key);
    pli_free(a->rows);
    *a = (pli_active){ 0 };
}

typedef struct signaling {
    pli_active     *a;
    pli_vertex_run *run;
} signaling;

void pli_active_see(pli_active *a, const pli_vertex_run *run, int64_t v, const void *value) {
    const plait_vertex_program *p = &run->program;
    const plait_vertex          vertex = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
    char                       *told = a->seen + run->tell_bytes * (size_t)v;
    if (p->tell != NULL) p->tell(p->user, &vertex, value, told);
    else memcpy(told, value, run->value_bytes);
}

/* What vertices tell of their first values. A first read may hold more than these, since others may be ahead. */
static void see_first(void *user, int64_t first, int64_t last, int32_t thread) {
    const signaling            *s = user;
    const pli_vertex_run       *run = s->run;
    const plait_vertex_program *p = &run->program;
    (void)thread;
    for (int64_t v = first; v < last; v++) {
        const plait_vertex vertex = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
        int64_t            value[PLI_VERTEX_MOST];
        memset(value, 0, run->value_bytes);
        if (p->init != NULL) p->init(p->user, &vertex, value);
        pli_active_see(s->a, run, v, value);
    }
}

static void start(pli_active *a, pli_vertex_run *run) {
    const pli_part *part = &run->part;
    for (int64_t v = part->own; v < part->own + part->owned; v++) {
        const plait_vertex vertex = pli_vertex_of(run->edges, pli_part_vertex(part, v));
        a->now[v] = run->program.starts == NULL || run->program.starts(run->program.user, &vertex) != 0;
    }
    if (run->restored)
        for (int64_t i = 0; i < part->owned; i++) a->now[part->own + i] = run->row[2 * i] > 0;
    if (run->restored) memcpy(a->seen, run->told, (size_t)part->n * run->tell_bytes);
    else pli_vertex_rows(run, see_first, &(signaling){ a, run });
    a->begun = true;
    pli_active_reread(a, run);
}

/* Changes what vertex v has gathered by what the edge tells. */
static void change_sum(pli_active *a, const pli_vertex_run *run, int64_t v, const plait_vertex_edge *edge) {
    if (a->cached == NULL || !a->cached[v]) return;
    char *sum = a->sum + run->gather_bytes * (size_t)v;
    a->cached[v] = run->program.post_delta(run->program.user, edge, sum) != 0;
}

/* Asks the edges whose far end tells something new. */
static void signal_rows(void *user, int64_t first, int64_t last, int32_t thread) {
    const signaling     *s = user;
    pli_vertex_run      *run = s->run;
    const pli_neighbors *rows = &run->part.rows;
    (void)thread;
    for (int64_t v = first; v < last; v++) {
        const plait_vertex at = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
        for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++) {
            plait_vertex      other;
            plait_vertex_edge edge;
            if (!s->a->changed[rows->near[k]]) continue;
            pli_scope_edge(run, k, &at, pli_run_value(run, v), &other, &edge);
            edge.was = s->a->seen + run->tell_bytes * (size_t)rows->near[k];
            change_sum(s->a, run, v, &edge);
            if (run->program.scatter(run->program.user, &edge) != 0) s->a->now[v] = 1;
        }
    }
}

void pli_active_next(pli_active *a, pli_vertex_run *run) {
    bool any = false;
    if (a->now == NULL) return;
    if (!a->begun) {
        start(a, run);
        return;
    }
    if (a->behind) memset(a->cached, 0, (size_t)run->part.n);
    a->behind = false;
    memcpy(a->now, a->stays, (size_t)run->part.n);
    memset(a->stays, 0, (size_t)run->part.n);
    for (int64_t u = 0; u < run->part.n; u++) {
        a->changed[u] = memcmp(pli_run_told(run, u), a->seen + run->tell_bytes * (size_t)u, run->tell_bytes) != 0;
        any = any || a->changed[u];
    }
    if (!any) return;
    pli_vertex_rows(run, signal_rows, &(signaling){ a, run });
    for (int64_t u = 0; u < run->part.n; u++)
        if (a->changed[u]) memcpy(a->seen + run->tell_bytes * (size_t)u, pli_run_told(run, u), run->tell_bytes);
}

void pli_active_reread(pli_active *a, const pli_vertex_run *run) {
    if (a->cached != NULL)
        a->behind = a->behind || memcmp(a->seen, run->told, (size_t)run->part.n * run->tell_bytes) != 0;
}

void pli_active_stays(pli_active *a, const pli_vertex_run *run, int64_t v, double change) {
    if (a->now != NULL && run->program.again && change > run->program.tolerance) a->stays[v] = 1;
}

bool pli_active_is_sparse(const pli_active *a, const pli_vertex_run *run) {
    if (run->heirs != NULL) return false; /* an heir must push the same rows, though it may find others active */
    return a->now != NULL && run->workers > 1 && a->applied < run->part.owned / FEW;
}

int64_t pli_active_pack(pli_active *a, const pli_vertex_run *run, char *change) {
    const pli_part *part = &run->part;
    int64_t         n = 0;
    for (int64_t i = 0; i < part->owned; i++) {
        if (!a->now[part->own + i]) continue;
        memmove(change + run->value_bytes * (size_t)n, change + run->value_bytes * (size_t)i, run->value_bytes);
        a->key[n++] = (uint64_t)pli_part_vertex(part, part->own + i);
    }
    return n;
}
