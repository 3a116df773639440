/* memory: values that are not alive at the same time share memory.
 *
 * A walk over the nodes gives each output the smallest gap that holds it (best fit), and frees an array's place after
 * the last node that reads the array or a view of it. An output may also take the place of an input that is read for
 * the last time, if its op allows that (in place). Fetches, and deltas pushed to the store, live until the end. (This
 * is register allocation in straight-line code with registers of any size: Chaitin 1982; for graphs, Chen et al.,
 * "Training Deep Nets with Sublinear Memory Cost", 2016.)
 *
 * Threads may run nodes in another order. So a node that writes to a place runs after all nodes that wrote or read the
 * place's former value: each stretch of the block knows the value that it held last. */
#include <string.h>

#include "graph/passes/passes.h"

/* A part of the block. The stretches cover the block in order, without gaps. */
typedef struct stretch {
    size_t  first, bytes;
    int32_t owner; /* the value that it held last; -1: none */
    bool    used;
} stretch;

typedef struct layout {
    pli_plan *plan;
    int32_t  *root;   /* [n_values] the value in whose place it lies                */
    int32_t  *last;   /* [n_values] for a root: the last node that uses it          */
    int32_t  *user;   /* [n_values] for a root: the first entry of plan->input that reads it, or -1 ... */
    int32_t  *next;   /* [n_inputs] ... and the next entry                          */
    int32_t  *reader; /* [n_inputs] the node of an input                           */
    stretch  *s;
    int64_t   n, capacity;
    size_t    bytes;
} layout;

static bool begin(layout *l, pli_plan *p) {
    const size_t values = (size_t)p->n_values * sizeof(int32_t), inputs = (size_t)p->n_inputs * sizeof(int32_t);
    *l = (layout){ .plan = p, .root = pli_pass_identity(p) };
    l->last = pli_arena_take(&p->work, values);
    l->user = pli_arena_take(&p->work, values);
    l->next = pli_arena_take(&p->work, inputs);
    l->reader = pli_arena_take(&p->work, inputs);
    if (l->root == NULL || l->last == NULL || l->user == NULL || l->next == NULL || l->reader == NULL) return false;
    for (int64_t v = 0; v < p->n_values; v++) l->last[v] = l->user[v] = -1;
    return true;
}

/* Finds the root of each view, then the last user of each root. */
static void find_lives(layout *l) {
    const pli_plan *p = l->plan;
    const int32_t   end = (int32_t)p->n_nodes;
    for (int32_t k = 0; k < end; k++) {
        const pli_plan_node *n = &p->node[k];
        for (int32_t v = n->output; v < n->output + n->n_out; v++) {
            if (p->value[v].place == PLI_PLACE_VIEW) l->root[v] = l->root[p->value[v].number];
            if (l->last[l->root[v]] < k) l->last[l->root[v]] = k;
        }
        for (int32_t i = 0; i < n->n_in; i++) {
            if (!pli_plan_reads(n, i)) continue;
            const int32_t r = l->root[p->input[n->input + i]];
            const bool    lent = n->work == PLI_WORK_INC || n->work == PLI_WORK_INC_ROWS;
            if (l->last[r] < k) l->last[r] = k;
            if (lent) l->last[r] = end;
            l->reader[n->input + i] = k;
            l->next[n->input + i] = l->user[r];
            l->user[r] = n->input + i;
        }
    }
    for (int32_t i = 0; i < p->key.n_fetches; i++)
        if (p->fetch[i] >= 0) l->last[l->root[p->fetch[i]]] = end;
}

/* --- stretches ------------------------------------------------------------------------------------------------- */

static bool insert(layout *l, int64_t at, stretch s) {
    if (!pli_grow((void **)&l->s, &l->capacity, l->n + 1, sizeof *l->s)) return false;
    memmove(l->s + at + 1, l->s + at, (size_t)(l->n - at) * sizeof *l->s);
    l->s[at] = s;
    l->n++;
    return true;
}

/* Makes node k wait for the nodes that write or read value `owner`. */
static bool wait_for(layout *l, int32_t k, int32_t owner) {
    if (owner < 0) return true;
    bool done = pli_plan_after(l->plan, k, l->plan->value[owner].node);
    for (int32_t i = l->user[owner]; done && i >= 0; i = l->next[i]) done = pli_plan_after(l->plan, k, l->reader[i]);
    return done;
}

/* Turns the free stretches at .. at + count - 1 into one of `bytes` bytes for value v, and a rest. */
static bool occupy(layout *l, int64_t at, int64_t count, size_t bytes, int32_t v, int32_t k) {
    const size_t first = l->s[at].first;
    int64_t      passed = 0;
    for (; passed < count && l->s[at + passed].first < first + bytes; passed++)
        if (!wait_for(l, k, l->s[at + passed].owner)) return false;
    const stretch cut = l->s[at + passed - 1];
    const size_t  cut_end = cut.first + cut.bytes;
    l->s[at] = (stretch){ first, bytes, v, true };
    memmove(l->s + at + 1, l->s + at + passed, (size_t)(l->n - at - passed) * sizeof *l->s);
    l->n -= passed - 1;
    l->plan->value[v].offset = first;
    return cut_end == first + bytes ||
           insert(l, at + 1, (stretch){ first + bytes, cut_end - first - bytes, cut.owner, false });
}

/* Takes the smallest run of free stretches that holds value v; the last run may grow at the end of the block. */
static bool take(layout *l, int32_t v, int32_t k) {
    const size_t bytes = pli_place_bytes(&l->plan->value[v].t);
    int64_t      best = -1, best_count = 0;
    size_t       best_bytes = SIZE_MAX;
    if (bytes == 0) return true;
    for (int64_t i = 0; i < l->n;) {
        if (l->s[i].used) {
            i++;
            continue;
        }
        size_t  room = 0;
        int64_t count = 0;
        for (; i + count < l->n && !l->s[i + count].used; count++) room += l->s[i + count].bytes;
        if (room < bytes && i + count == l->n) { /* the last one can grow */
            if (best < 0) {
                l->s[l->n - 1].bytes += bytes - room;
                l->bytes += bytes - room;
                room = bytes;
            }
        }
        if (room >= bytes && room < best_bytes) {
            best = i;
            best_count = count;
            best_bytes = room;
        }
        i += count;
    }
    if (best < 0) {
        if (!insert(l, l->n, (stretch){ l->bytes, bytes, -1, false })) return false;
        l->bytes += bytes;
        best = l->n - 1;
        best_count = 1;
    }
    return occupy(l, best, best_count, bytes, v, k);
}

/* The stretch that holds a value. */
static stretch *stretch_of(layout *l, int32_t v) {
    int64_t low = 0, high = l->n;
    while (high - low > 1) {
        const int64_t mid = (low + high) / 2;
        if (l->s[mid].first <= l->plan->value[v].offset)
            low = mid;
        else
            high = mid;
    }
    return &l->s[low];
}

static void give_back(layout *l, int32_t root) { stretch_of(l, root)->used = false; }

/* --- in place -------------------------------------------------------------------------------------------------- */

static bool op_allows(const pli_plan_node *n, int32_t i, int32_t o) {
    if (n->work == PLI_WORK_MAP) return pli_map_in_place(n->map, i, o);
    if (n->map != NULL) return false; /* an epilogue's memory is written before all of its inputs are read */
    return n->work == PLI_WORK_KERNEL && o == 0 && i < 32 && (n->op->in_place >> i & 1) != 0;
}

/* May output o of node k be written over what its input i reads? Each input that lies there must allow it. */
static bool may_overwrite(const layout *l, int32_t k, int32_t i, int32_t o) {
    const pli_plan      *p = l->plan;
    const pli_plan_node *n = &p->node[k];
    const int32_t        r = l->root[p->input[n->input + i]];
    const plait_tensor  *out = &p->value[n->output + o].t;
    if (!pli_plan_reads(n, i) || p->value[r].place != PLI_PLACE_MEMORY || l->last[r] != k) return false;
    for (int32_t j = 0; j < n->n_in; j++) {
        const int32_t v = p->input[n->input + j];
        if (!pli_plan_reads(n, j) || l->root[v] != r) continue;
        if (!op_allows(n, j, o) || pli_tensor_bytes(&p->value[v].t) != pli_tensor_bytes(out)) return false;
    }
    return true;
}

/* Gives the output the input's place; its readers count as readers of the root from now on. */
static bool overwrite(layout *l, int32_t k, int32_t i, int32_t o) {
    const pli_plan_node *n = &l->plan->node[k];
    const int32_t        v = n->output + o, r = l->root[l->plan->input[n->input + i]];
    for (int32_t u = l->user[r]; u >= 0; u = l->next[u]) /* the readers of the old value */
        if (l->reader[u] != k && !pli_plan_after(l->plan, k, l->reader[u])) return false;
    l->plan->value[v].offset = l->plan->value[r].offset;
    stretch_of(l, v)->owner = v;
    l->last[r] = -1;
    return true;
}

static bool place_output(layout *l, int32_t k, int32_t o) {
    const pli_plan_node *n = &l->plan->node[k];
    const int32_t        v = n->output + o;
    if (l->plan->value[v].place != PLI_PLACE_MEMORY) return true;
    if (pli_place_bytes(&l->plan->value[v].t) == 0) return true;
    for (int32_t i = 0; i < n->n_in; i++)
        if (may_overwrite(l, k, i, o)) return overwrite(l, k, i, o);
    return take(l, v, k);
}

/* Frees the places of values whose last user is node k. */
static void end_lives(layout *l, int32_t k) {
    const pli_plan_node *n = &l->plan->node[k];
    for (int32_t i = 0; i < n->n_in + n->n_out; i++) {
        if (i < n->n_in && !pli_plan_reads(n, i)) continue;
        const int32_t r = l->root[i < n->n_in ? l->plan->input[n->input + i] : n->output + i - n->n_in];
        if (l->plan->value[r].place != PLI_PLACE_MEMORY || l->last[r] != k ||
            pli_place_bytes(&l->plan->value[r].t) == 0)
            continue;
        l->last[r] = -1;
        give_back(l, r);
    }
}

static plait_status run(pli_plan *p, plait_error *err) {
    layout l;
    bool   done = begin(&l, p);
    if (done) find_lives(&l);
    for (int32_t k = 0; done && k < p->n_nodes; k++) {
        for (int32_t o = 0; done && o < p->node[k].n_out; o++) done = place_output(&l, k, o);
        end_lives(&l, k);
    }
    pli_free(l.s);
    if (!done) return pli_plan_no_memory(err);
    p->block_bytes = l.bytes;
    return PLAIT_OK;
}

const pli_pass pli_pass_memory = { .name = "memory", .late = true, .run = run };
