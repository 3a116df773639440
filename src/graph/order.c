/* Orders a plan's nodes. Nodes that nothing needs are dropped, and each node comes after its inputs. A get comes just
 * before its first use, so that the store has time to fetch. An inc comes as soon as its delta is computed, so that it
 * travels while the rest is computed, but after all gets of its variable, which must see the values from before. In a
 * part of a cut graph a send comes right after what it sends, and a receive where the graph has the value: so what is
 * made in the forward pass is received in the forward pass, even if only the backward pass needs it, and the producer
 * can go on with the next micro-batch.
 *
 * The order is that in which a depth-first walk leaves the nodes (Tarjan, "Edge-Disjoint Spanning Trees and Depth-First
 * Search", 1976). The walk starts at each node in the order of the graph, so nodes that were in order stay in order. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"

enum { UNSEEN, OPEN, DONE };

typedef struct walk {
    pli_plan      *plan;
    unsigned char *seen;     /* [n_nodes] UNSEEN .. DONE           */
    unsigned char *needed;   /* [n_nodes]                          */
    int32_t       *stack;    /* [n_nodes] the nodes that are OPEN ... */
    int32_t       *at;       /* [n_nodes] ... and the next input of each */
    int32_t       *get;      /* [variables] the first get of a variable ... */
    int32_t       *next_get; /* [n_nodes] ... and the next get; for an inc: the get to look at next */
    int32_t       *order;    /* [n_nodes] the nodes that are DONE  */
    int32_t       *position; /* [n_nodes] of a node in order       */
    int64_t        n;
} walk;

static bool gets(const pli_plan_node *n) { return n->work == PLI_WORK_GET || n->work == PLI_WORK_GET_ROWS; }
static bool incs(const pli_plan_node *n) { return n->work == PLI_WORK_INC || n->work == PLI_WORK_INC_ROWS; }

/* The other part counts on it, so it stays even if no node here needs it any more. */
static bool of_channel(const pli_plan_node *n) { return n->work == PLI_WORK_SEND || n->work == PLI_WORK_RECV; }

static bool begin(walk *w, pli_plan *p) {
    const size_t n = (size_t)p->n_nodes;
    *w = (walk){ .plan = p };
    w->seen = pli_arena_take(&p->work, n);
    w->needed = pli_arena_take(&p->work, n);
    w->stack = pli_arena_take(&p->work, n * sizeof *w->stack);
    w->at = pli_arena_take(&p->work, n * sizeof *w->at);
    w->get = pli_arena_take(&p->work, (size_t)p->graph->n_variables * sizeof *w->get);
    w->next_get = pli_arena_take(&p->work, n * sizeof *w->next_get);
    w->order = pli_arena_take(&p->work, n * sizeof *w->order);
    w->position = pli_arena_take(&p->work, n * sizeof *w->position);
    if (w->seen == NULL || w->needed == NULL || w->stack == NULL || w->at == NULL || w->order == NULL ||
        w->position == NULL || w->get == NULL || w->next_get == NULL)
        return false;
    memset(w->seen, UNSEEN, n);
    memset(w->needed, 0, n);
    return true;
}

static void list_gets(walk *w) {
    const pli_plan *p = w->plan;
    for (int64_t v = 0; v < p->graph->n_variables; v++) w->get[v] = -1;
    for (int64_t k = p->n_nodes - 1; k >= 0; k--) {
        if (!w->needed[k] || !gets(&p->node[k])) continue;
        w->next_get[k] = w->get[p->node[k].variable];
        w->get[p->node[k].variable] = (int32_t)k;
    }
    for (int64_t k = 0; k < p->n_nodes; k++)
        if (incs(&p->node[k])) w->next_get[k] = w->get[p->node[k].variable];
}

static void name_makers(pli_plan *p) {
    for (int64_t v = 0; v < p->n_values; v++) p->value[v].node = -1;
    for (int64_t k = 0; k < p->n_nodes; k++)
        for (int32_t v = p->node[k].output; v < p->node[k].output + p->node[k].n_out; v++)
            if (p->value[v].place != PLI_PLACE_CONSTANT)
                p->value[v].node = (int32_t)k; /* if not, a pass has computed it already */
}

/* The node that makes input i of node k; -1: none. */
static int32_t maker(const pli_plan *p, int64_t k, int32_t i) {
    const pli_plan_node *n = &p->node[k];
    return pli_plan_reads(n, i) ? p->value[p->input[n->input + i]].node : -1;
}

static void mark_needed(walk *w) {
    const pli_plan *p = w->plan;
    int64_t         depth = 0;
    for (int32_t k = 0; p->cut != NULL && k < p->n_nodes; k++) {
        if (!of_channel(&p->node[k])) continue;
        w->needed[k] = 1;
        w->stack[depth++] = k;
    }
    for (int32_t i = 0; i < p->key.n_fetches; i++) {
        const int32_t k = p->fetch[i] >= 0 ? p->value[p->fetch[i]].node : -1;
        if (k < 0 || w->needed[k]) continue;
        w->needed[k] = 1;
        w->stack[depth++] = k;
    }
    while (depth > 0) {
        const int32_t k = w->stack[--depth];
        for (int32_t i = 0; i < p->node[k].n_in; i++) {
            const int32_t from = maker(p, k, i);
            if (from < 0 || w->needed[from]) continue;
            w->needed[from] = 1;
            w->stack[depth++] = from;
        }
    }
}

/* The next node that node k must come after, one at each call; -1: no more. A get that needs the inc itself is skipped:
 * it is OPEN. */
static int32_t next_before(walk *w, int32_t k) {
    const pli_plan_node *n = &w->plan->node[k];
    while (w->at[k] < n->n_in) {
        const int32_t from = maker(w->plan, k, w->at[k]++);
        if (from >= 0 && w->seen[from] == UNSEEN) return from;
    }
    while (incs(n) && w->next_get[k] >= 0) {
        const int32_t from = w->next_get[k];
        w->next_get[k] = w->next_get[from];
        if (w->seen[from] == UNSEEN) return from;
    }
    return -1;
}

static void visit(walk *w, int32_t root) {
    int64_t depth = 0;
    for (int32_t k = w->seen[root] == UNSEEN ? root : -1; k >= 0 || depth > 0;) {
        if (k >= 0) {
            w->seen[k] = OPEN;
            w->at[k] = 0;
            w->stack[depth++] = k;
        } else {
            const int32_t done = w->stack[--depth];
            w->seen[done] = DONE;
            w->position[done] = (int32_t)w->n;
            w->order[w->n++] = done;
        }
        k = depth > 0 ? next_before(w, w->stack[depth - 1]) : -1;
    }
}

/* The position after which an inc may come at the earliest. last_get [variables]: position of each variable's last
 * get. */
static int32_t earliest(const walk *w, int32_t k, const int32_t *last_get) {
    const pli_plan *p = w->plan;
    int32_t         at = last_get[p->node[k].variable];
    for (int32_t i = 0; i < p->node[k].n_in; i++) {
        const int32_t from = maker(p, k, i);
        if (from < 0) continue;
        if (incs(&p->node[from])) return w->position[k]; /* it needs another inc: it stays where it is */
        if (w->position[from] > at) at = w->position[from];
    }
    return at < w->position[k] ? at : w->position[k];
}

/* Moves incs to the earliest position. first [n + 1] and next [n_nodes] list the incs that come after each position;
 * list 0 is before all nodes. */
static bool move_incs(walk *w, int32_t *to) {
    pli_plan     *p = w->plan;
    const int64_t n_variables = p->graph->n_variables;
    int32_t      *last_get = pli_arena_take(&p->work, (size_t)n_variables * sizeof *last_get);
    int32_t      *first = pli_arena_take(&p->work, (size_t)(w->n + 1) * sizeof *first),
            *next = pli_arena_take(&p->work, (size_t)p->n_nodes * sizeof *next);
    if (last_get == NULL || first == NULL || next == NULL) return false;
    for (int64_t v = 0; v < n_variables; v++) last_get[v] = -1;
    for (int64_t i = 0; i <= w->n; i++) first[i] = -1;
    for (int64_t i = 0; i < w->n; i++)
        if (gets(&p->node[w->order[i]])) last_get[p->node[w->order[i]].variable] = (int32_t)i;
    for (int64_t i = w->n - 1; i >= 0; i--) {
        const int32_t k = w->order[i];
        if (!incs(&p->node[k])) continue;
        const int32_t at = earliest(w, k, last_get) + 1;
        next[k] = first[at];
        first[at] = k;
    }
    int64_t n = 0;
    for (int64_t i = 0; i <= w->n; i++) {
        if (i > 0 && !incs(&p->node[w->order[i - 1]])) to[n++] = w->order[i - 1];
        for (int32_t k = first[i]; k >= 0; k = next[k]) to[n++] = k;
    }
    return true;
}

/* Puts the nodes in their new order. */
static bool rewrite(pli_plan *p, const int32_t *order, int64_t n) {
    pli_plan_node *kept = pli_arena_take(&p->work, (size_t)n * sizeof *kept);
    if (kept == NULL) return false;
    for (int64_t i = 0; i < n; i++) kept[i] = p->node[order[i]];
    if (n > 0) memcpy(p->node, kept, (size_t)n * sizeof *kept);
    p->n_nodes = n;
    name_makers(p);
    return true;
}

/* Lists the variables in the order in which they are needed, then the variables of incs. */
static plait_status list_variables(pli_plan *p, plait_error *err) {
    const int64_t n = p->graph->n_variables;
    bool         *listed = pli_arena_take(&p->work, (size_t)n * sizeof *listed);
    p->n_expect = p->n_push = 0;
    for (int64_t k = 0; k < p->n_nodes; k++) p->n_push += incs(&p->node[k]);
    p->expect = pli_arena_take(&p->arena, (size_t)(n + p->n_push) * sizeof *p->expect);
    if (listed == NULL || p->expect == NULL) return pli_plan_no_memory(err);
    for (int64_t v = 0; v < n; v++) listed[v] = false;
    for (int64_t k = 0; k < p->n_nodes; k++) {
        const pli_plan_node *node = &p->node[k];
        if (!gets(node) || listed[node->variable]) continue;
        listed[node->variable] = true;
        p->expect[p->n_expect++] = node->variable;
    }
    p->push = p->expect + p->n_expect;
    for (int64_t k = 0, at = 0; k < p->n_nodes; k++)
        if (incs(&p->node[k])) p->push[at++] = p->node[k].variable;
    return PLAIT_OK;
}

/* Where a walk starts: at node k, which stands for a value of the graph. */
typedef struct start {
    plait_value origin;
    int32_t     k;
} start;

static int by_origin(const void *a, const void *b) {
    const start *x = a, *y = b;
    if (x->origin != y->origin) return x->origin < y->origin ? -1 : 1;
    return (x->k > y->k) - (x->k < y->k);
}

/* Passes put fused nodes behind all others. In a part of a cut graph they go back to where the graph has their last
 * value: else the part would wait for receives before it computes what comes ahead of them. */
static start *list_starts(pli_plan *p) {
    start *all = pli_arena_take(&p->work, (size_t)p->n_nodes * sizeof *all);
    if (all == NULL) return NULL;
    for (int32_t k = 0; k < p->n_nodes; k++) all[k] = (start){ p->node[k].origin, k };
    if (p->cut != NULL && p->n_nodes > 1) qsort(all, (size_t)p->n_nodes, sizeof *all, by_origin);
    return all;
}

plait_status pli_plan_order(pli_plan *p, plait_error *err) {
    walk w;
    if (!begin(&w, p)) return pli_plan_no_memory(err);
    const start *starts = list_starts(p);
    if (starts == NULL) return pli_plan_no_memory(err);
    name_makers(p);
    mark_needed(&w);
    list_gets(&w);
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (w.needed[starts[i].k] && p->node[starts[i].k].work != PLI_WORK_GET) visit(&w, starts[i].k);
    for (int32_t k = 0; k < p->n_nodes; k++) /* gets that only fetches need */
        if (w.needed[k]) visit(&w, k);
    int32_t *order = pli_arena_take(&p->work, (size_t)p->n_nodes * sizeof *order);
    if (order == NULL || !move_incs(&w, order) || !rewrite(p, order, w.n)) return pli_plan_no_memory(err);
    return list_variables(p, err);
}
