/* One update of the asynchronous engine: what it sees, what it changes, whom it tells. See async.h. */
#include <math.h>

#include "comm/comm.h"
#include "table/table.h"
#include "vertex/async/async.h"

static plait_status no_memory(const pli_async *a) {
    return pli_fail(a->run->err, PLAIT_ENOMEM, "%s: no memory for a vertex's messages", a->run->program.name);
}

int64_t pli_async_lay(pli_async *a, int64_t row) {
    const pli_part      *part = &a->run->part;
    const pli_neighbors *rows = &part->rows;
    const int64_t        begin = rows->start[row], n = rows->start[row + 1] - begin;
    int64_t              size = 0, last = -1;
    bool                 placed = false;
    for (int64_t k = 0; k <= n; k++) {
        const int64_t u = k < n ? (int64_t)rows->near[begin + k] : INT64_MAX;
        if (!placed && u >= row) {
            a->me = (uint32_t)size;
            a->entry[size++] = (pli_lock_entry){ .vertex = (uint64_t)pli_part_vertex(part, row),
                                                 .mode = PLI_LOCK_WRITE };
            last = row;
            placed = true;
        }
        if (k == n) break;
        if (u != last) {
            a->entry[size++] = (pli_lock_entry){ .vertex = (uint64_t)pli_part_vertex(part, u), .mode = a->mode };
            last = u;
        }
        a->place[k] = (uint32_t)size - 1;
    }
    return size;
}

/* --- what the program's functions see ----------------------------------------------------------------------------- */

/* What the far ends of the row's edges tell: a->told [n], if the program's functions or the kernels want it so. */
static void tell(pli_async *a, int64_t row, const pli_lock_scope *s) {
    const pli_vertex_run       *run = a->run;
    const plait_vertex_program *p = &run->program;
    const int64_t               begin = run->part.rows.start[row], n = run->part.rows.start[row + 1] - begin;
    for (int64_t k = 0; k < n; k++) {
        const void *value = s->value + a->place[k] * run->value_bytes;
        char       *told = a->told + run->tell_bytes * (size_t)k;
        a->other[k] = pli_vertex_of(run->edges, (int64_t)s->entry[a->place[k]].vertex);
        if (p->tell != NULL) p->tell(p->user, &a->other[k], value, told);
        else if (!pli_vertex_sees_edges(p)) memcpy(told, value, run->value_bytes);
    }
}

static void see(pli_async *a, int64_t row, const pli_lock_scope *s, const plait_vertex *at) {
    const pli_vertex_run *run = a->run;
    const pli_neighbors  *rows = &run->part.rows;
    const int64_t         begin = rows->start[row], n = rows->start[row + 1] - begin;
    const size_t          data = (run->program.type == PLAIT_F32 ? 4 : 8) * (size_t)run->program.edge_values;
    for (int64_t k = 0; k < n; k++) {
        unsigned char *value = s->value + a->place[k] * run->value_bytes;
        a->edge[k] = (plait_vertex_edge){
            .at = at, .other = &a->other[k], .weight = rows->weight != NULL ? rows->weight[begin + k] : 1,
            .value = s->value + a->me * run->value_bytes,
            .told = run->program.tell != NULL ? (void *)(a->told + run->tell_bytes * (size_t)k) : value,
            .data = run->data != NULL ? (char *)run->data + data * (size_t)(begin + k) : NULL };
    }
}

static void gather(pli_async *a, int64_t row) {
    const pli_vertex_run *run = a->run;
    const pli_neighbors  *rows = &run->part.rows;
    const int64_t         begin = rows->start[row], n = rows->start[row + 1] - begin;
    int64_t               start[2] = { 0, n };
    if (run->program.gather == NULL) {
        const pli_neighbors one = { .n = 1, .start = start, .near = a->straight,
                                    .weight = rows->weight != NULL ? rows->weight + begin : NULL };
        pli_gather_rows(&run->gather, &one, a->told, 0, 1, a->sum);
        return;
    }
    pli_scope_begin(run, a->sum);
    for (int64_t k = 0; k < n; k++) run->program.gather(run->program.user, &a->edge[k], a->sum);
}

/* Sets a->value to the vertex's new value, and says how much it has changed. */
static double compute(pli_async *a, int64_t row, const pli_lock_scope *s) {
    const pli_vertex_run       *run = a->run;
    const plait_vertex_program *p = &run->program;
    const plait_vertex          at = pli_vertex_of(run->edges, pli_part_vertex(&run->part, row));
    const int64_t               n = run->part.rows.start[row + 1] - run->part.rows.start[row];
    memcpy(a->value, s->value + a->me * run->value_bytes, run->value_bytes);
    tell(a, row, s);
    if (pli_vertex_sees_edges(p)) see(a, row, s, &at);
    if (p->update != NULL) return p->update(p->user, &at, n, a->edge, a->value);
    gather(a, row);
    if (p->apply != NULL) return p->apply(p->user, &at, a->sum, a->value);
    if (!pli_gather_is_better(&run->gather, a->sum, a->value)) return 0;
    memcpy(a->value, a->sum, run->value_bytes);
    return 1;
}

/* --- whom it tells ------------------------------------------------------------------------------------------------ */

/* An own vertex has changed: those that gather from it hear of it, unless all its changes since are too small. */
static bool tell_holders(pli_async *a, uint64_t now_ns, const pli_lock_notice *of, pli_out *out) {
    const pli_vertex_run *run = a->run;
    const int64_t         i = (int64_t)of->vertex - run->cut->first[run->rank];
    pli_lock_notice       notice = *of;
    bool                  sent = true;
    a->unsaid[i] += of->change;
    const bool folds_in = run->program.apply == NULL && run->program.update == NULL;
    if (!folds_in && run->program.scatter == NULL && a->unsaid[i] <= run->program.tolerance) return true;
    notice.change = a->unsaid[i];
    a->unsaid[i] = 0;
    for (int64_t k = a->holder_start[i]; k < a->holder_start[i + 1]; k++)
        sent = pli_locks_notify(&a->locks, now_ns, a->holder[k], &notice, out) && sent;
    return sent;
}

/* Of each value that is new: its owner tells others. */
static bool tell_changes(pli_async *a, uint64_t now_ns, const pli_lock_scope *s, double change, pli_out *out) {
    const pli_vertex_run *run = a->run;
    const int64_t        *first = &run->cut->first[run->rank];
    bool                  sent = true;
    for (uint32_t i = 0; i < s->n; i++) {
        const pli_lock_notice notice = { s->entry[i].vertex, s->entry[i].version + 1, change,
                                         a->before + i * run->value_bytes, s->value + i * run->value_bytes, NULL };
        const int64_t         v = (int64_t)notice.vertex;
        if (!s->entry[i].wrote) continue;
        if (v >= first[0] && v < first[1]) sent = tell_holders(a, now_ns, &notice, out) && sent;
        else sent = pli_locks_notify(&a->locks, now_ns, pli_lock_owner(&a->locks, notice.vertex), &notice, out) && sent;
    }
    return sent;
}

/* --- what the event log hears of it ------------------------------------------------------------------------------- */

static uint32_t digest_of(const void *value, size_t bytes) { return (uint32_t)pli_hash_bytes(value, bytes, 0); }

/* a->use [returned]: the vertex and its neighbors as the graph has them, with what the update has read of them. */
static int64_t list_uses(const pli_async *a, int64_t row, const pli_lock_scope *s) {
    const pli_vertex_run *run = a->run;
    const pli_neighbors  *rows = &run->part.rows;
    const int64_t         begin = rows->start[row], n = rows->start[row + 1] - begin;
    int64_t               size = 0, last = row;
    for (int64_t k = -1; k < n; k++) {
        const int64_t  u = k < 0 ? row : (int64_t)rows->near[begin + k];
        const uint32_t i = k < 0 ? a->me : a->place[k];
        if (k >= 0 && (u == row || u == last)) continue;
        last = u;
        const int64_t        v = pli_part_vertex(&run->part, u);
        const size_t         bytes = run->value_bytes;
        const unsigned char *was = (unsigned char *)a->before + i * bytes, *is = s->value + i * bytes;
        a->use[size++] = (pli_event_use){ .vertex = (uint64_t)v, .id = plait_edges_id(run->edges, v),
                                          .version = s->entry[i].version, .wrote = memcmp(was, is, bytes) != 0,
                                          .digest = digest_of(was, bytes), .fresh = digest_of(is, bytes) };
    }
    return size;
}

static void raise_use(const pli_async *a, int64_t row, const pli_lock_scope *s, int64_t uses) {
    pli_event_raise(a->locks.sink, &(pli_event){ .kind = PLI_EVENT_USE, .rank = a->run->rank, .seq = s->number,
                                                 .row = (uint64_t)pli_part_vertex(&a->run->part, row), .n = uses,
                                                 .info.use = a->use });
}

plait_status pli_async_update(pli_async *a, pli_lock_scope *s) {
    const pli_vertex_run *run = a->run;
    const int64_t         row = (int64_t)s->tag;
    uint64_t              now_ns;
    pli_out               out;
    pli_async_lay(a, row);
    memcpy(a->before, s->value, s->n * run->value_bytes);
    const double by = compute(a, row, s), change = isnan(by) ? (double)INFINITY : by;
    if (change > a->most) a->most = change;
    memcpy(s->value + a->me * run->value_bytes, a->value, run->value_bytes);
    for (uint32_t i = 0; i < s->n; i++)
        s->entry[i].wrote = memcmp(s->value + i * run->value_bytes, a->before + i * run->value_bytes,
                                   run->value_bytes) != 0;
    if (run->program.again && change > run->program.tolerance)
        pli_queue_push(&a->queue, row - run->part.own, change);
    a->updates++;
    pli_comm_work(plait_job_comm(run->job), PLI_WORK_ENTRIES,
                  (uint64_t)(run->part.rows.start[row + 1] - run->part.rows.start[row] + 1));
    const int64_t uses = a->locks.sink != NULL ? list_uses(a, row, s) : 0;
    pli_port_enter(a->port, &now_ns, &out);
    raise_use(a, row, s, uses);
    const bool told = tell_changes(a, now_ns, s, change, &out),
               back = pli_locks_release(&a->locks, now_ns, s, &out);
    pli_port_leave(a->port, &out);
    return told && back ? PLAIT_OK : no_memory(a);
}

/* --- what it hears ------------------------------------------------------------------------------------------------ */

/* The part's number of a vertex; -1: the part has none of its edges. */
static int64_t local_of(const pli_part *part, uint64_t vertex) {
    int64_t low = 0, high = part->n;
    if (part->key == NULL) return (int64_t)vertex;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (part->key[middle] < vertex) low = middle + 1;
        else high = middle;
    }
    return low < part->n && part->key[low] == vertex ? low : -1;
}

/* Asks the edges from `u` to an own row whether the row is signaled. Others may change its value meanwhile, so it is
 * copied. */
static bool is_signaled(pli_async *a, int64_t row, int64_t u, const pli_lock_notice *notice) {
    const pli_vertex_run       *run = a->run;
    const plait_vertex_program *p = &run->program;
    const pli_neighbors        *rows = &run->part.rows;
    const int64_t               v = pli_part_vertex(&run->part, row);
    const plait_vertex at = pli_vertex_of(run->edges, v), other = pli_vertex_of(run->edges, (int64_t)notice->vertex);
    char              *was = a->told, *told = a->told + run->tell_bytes;
    const size_t       data = (p->type == PLAIT_F32 ? 4 : 8) * (size_t)p->edge_values;
    int64_t            low = rows->start[row], high = rows->start[row + 1];
    uint64_t           now_ns;
    pli_out            out;
    bool               signaled = false;
    pli_port_enter(a->port, &now_ns, &out);
    memcpy(a->value, pli_locks_value(&a->locks, v), run->value_bytes);
    pli_port_leave(a->port, &out);
    if (p->tell != NULL) {
        p->tell(p->user, &other, notice->was, was);
        p->tell(p->user, &other, notice->value, told);
    } else {
        memcpy(was, notice->was, run->tell_bytes);
        memcpy(told, notice->value, run->tell_bytes);
    }
    if (memcmp(was, told, run->tell_bytes) == 0) return false;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (rows->near[middle] < u) low = middle + 1;
        else high = middle;
    }
    for (int64_t k = low; k < rows->start[row + 1] && rows->near[k] == u; k++) {
        const plait_vertex_edge edge = { .at = &at, .other = &other,
                                         .weight = rows->weight != NULL ? rows->weight[k] : 1,
                                         .value = a->value, .told = told, .was = was,
                                         .data = run->data != NULL ? (char *)run->data + data * (size_t)k : NULL };
        signaled = p->scatter(p->user, &edge) != 0 || signaled;
    }
    return signaled;
}

static void signal_rows(pli_async *a, const pli_lock_notice *notice) {
    const pli_vertex_run *run = a->run;
    const pli_neighbors  *back = &run->part.back;
    const int64_t         u = local_of(&run->part, notice->vertex);
    if (u < 0) return;
    for (int64_t k = back->start[u]; k < back->start[u + 1]; k++) {
        const int64_t row = back->near[k];
        if (k > back->start[u] && back->near[k - 1] == row) continue;
        if (row < run->part.own || row >= run->part.own + run->part.owned) continue;
        if (run->program.scatter == NULL || is_signaled(a, row, u, notice))
            pli_queue_push(&a->queue, row - run->part.own, notice->change);
    }
}

plait_status pli_async_hear(pli_async *a, pli_lock_notice *notice) {
    const pli_vertex_run *run = a->run;
    const bool            own = pli_lock_owner(&a->locks, notice->vertex) == run->rank;
    bool                  sent = true;
    if (own && notice->msg->head.src != run->rank) { /* another has changed it, under scope full */
        uint64_t now_ns;
        pli_out  out;
        pli_port_enter(a->port, &now_ns, &out);
        sent = tell_holders(a, now_ns, notice, &out);
        pli_port_leave(a->port, &out);
    } else {
        signal_rows(a, notice);
    }
    pli_msg_free(&notice->msg);
    return sent ? PLAIT_OK : no_memory(a);
}
