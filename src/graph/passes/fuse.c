/* fuse: elementwise ops of the same shape that read each other's results become one node, which goes over the arrays
 * once, block by block, and keeps the values between its ops in the first-level cache (map.h).
 *
 * A walk over the nodes lets each node join the groups that it reads from. A group runs at one point of the order, its
 * anchor: all its inputs must be made before the anchor, and all its readers must come after it. Two cases ensure that:
 *     1. no node outside the group has read from it yet: its anchor moves to the node that joins
 *     2. all other inputs of the node are made before the group's anchor
 * Otherwise the node begins its own group. So groups never wait for each other in a circle, and no search is needed.
 * (This is a greedy form of the problem that Gao, Olsen, Sarkar and Thekkath, "Collective Loop Fusion for Array
 * Contraction", 1992, solve by cuts.)
 *
 * A group that is the only reader of a product or a convolution becomes its epilogue (epilogue.h). The product then
 * runs at the group's anchor, before which its inputs are made, too. */
#include <string.h>

#include "graph/passes/epilogue.h"
#include "graph/passes/passes.h"

static const plait_op fused_op = { .size = sizeof(plait_op),
                                   .name = "fused",
                                   .summary = "elementwise ops in one pass" };

typedef struct group {
    int32_t anchor;
    int32_t n_members, n_in;
    bool    fixed; /* a node outside has read from it */
    int32_t in[PLI_MAP_INPUTS];
    int32_t first, last; /* members, by fuse.next */
} group;

typedef struct fuse {
    pli_plan *plan;
    int32_t  *of;           /* [n_nodes] a node's group; -1: none                    */
    int32_t  *next;         /* [n_nodes] the next member                             */
    group    *group;        /* [n_nodes] a group lies at the number of one of its nodes */
    bool     *seen_outside; /* [n_values] read by another group, or fetched          */
    int32_t  *reader;       /* [n_values] the only group that reads it; -1: none, or several */
    int32_t  *to;
} fuse;

static bool begin(fuse *f, pli_plan *p) {
    const size_t n = (size_t)p->n_nodes;
    *f = (fuse){ .plan = p };
    f->of = pli_arena_take(&p->work, n * sizeof *f->of);
    f->next = pli_arena_take(&p->work, n * sizeof *f->next);
    f->group = pli_arena_take(&p->work, n * sizeof *f->group);
    f->seen_outside = pli_arena_take(&p->work, (size_t)p->n_values * sizeof *f->seen_outside);
    f->reader = pli_arena_take(&p->work, (size_t)p->n_values * sizeof *f->reader);
    return f->reader != NULL && f->of != NULL && f->next != NULL && f->group != NULL && f->seen_outside != NULL;
}

/* --- joining groups ----------------------------------------------------------------------------------------- */

/* May the node be fused? All steps of a map read BF16 as F32, so an op that needs BF16 itself stays alone. */
static bool can_fuse(const pli_plan *p, const pli_plan_node *n) {
    if (n->work != PLI_WORK_MAP || n->n_out != 1 || n->n_in > PLI_MAP_INPUTS || n->op->shape_only != 0) return false;
    if ((n->op->flags & PLAIT_OP_STATEFUL) != 0 || p->value[n->output].place != PLI_PLACE_MEMORY) return false;
    const bool by_f32 = p->value[p->input[n->input]].t.type == PLAIT_BF16 && n->op->map[PLAIT_BF16] == NULL;
    bool       narrow = p->value[n->output].t.type == PLAIT_BF16;
    for (int32_t i = 0; i < n->n_in; i++) narrow = narrow || p->value[p->input[n->input + i]].t.type == PLAIT_BF16;
    return by_f32 || !narrow;
}

static bool same_shape(const plait_shape *a, const plait_shape *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static int32_t find(const fuse *f, int32_t value) {
    const int32_t node = f->plan->value[value].node;
    return node < 0 ? -1 : f->of[node];
}

/* The position in the order after which a value is made. */
static int32_t there(const fuse *f, int32_t value) {
    const int32_t node = f->plan->value[value].node;
    return node < 0 ? -1 : f->of[node] >= 0 ? f->group[f->of[node]].anchor : node;
}

/* Adds inputs from outside the groups to the list; false: too many. */
static bool add_inputs(const fuse *f, group *g, const int32_t *in, int32_t n, int32_t own_a, int32_t own_b) {
    for (int32_t i = 0; i < n; i++) {
        const int32_t from = find(f, in[i]);
        if (from >= 0 && (from == own_a || from == own_b)) continue;
        int32_t at = 0;
        while (at < g->n_in && g->in[at] != in[i]) at++;
        if (at == PLI_MAP_INPUTS) return false;
        g->in[at] = in[i];
        if (at == g->n_in) g->n_in++;
    }
    return true;
}

/* Case 2: are all inputs of node k that the group does not make itself made before the anchor? */
static bool reads_from_before(const fuse *f, int32_t k, int32_t g) {
    const pli_plan_node *n = &f->plan->node[k];
    for (int32_t i = 0; i < n->n_in; i++) {
        const int32_t v = f->plan->input[n->input + i];
        if (find(f, v) != g && there(f, v) >= f->group[g].anchor) return false;
    }
    return true;
}

/* Appends group b to group a. */
static void absorb(fuse *f, int32_t a, int32_t b, const group *whole) {
    for (int32_t k = f->group[b].first;; k = f->next[k]) {
        f->of[k] = a;
        if (k == f->group[b].last) break;
    }
    f->next[f->group[a].last] = f->group[b].first;
    const int32_t first = f->group[a].first, last = f->group[b].last;
    f->group[a] = *whole;
    f->group[a].first = first;
    f->group[a].last = last;
}

/* Joins group g with node k's group `own`, which may be new, if that is allowed. */
static bool join(fuse *f, int32_t k, int32_t own, int32_t g) {
    const group *mine = &f->group[own], *other = &f->group[g];
    const bool   both_move = !other->fixed && !mine->fixed && mine->anchor == k;
    if (!both_move && !(mine->n_members == 1 && reads_from_before(f, k, g))) return false;
    if (mine->n_members + other->n_members > PLI_MAP_STEPS) return false;
    group whole = *other;
    whole.n_members += mine->n_members;
    whole.anchor = both_move ? k : other->anchor;
    if (!add_inputs(f, &whole, mine->in, mine->n_in, g, own)) return false;
    absorb(f, g, own, &whole);
    return true;
}

static void place_node(fuse *f, int32_t k) {
    const pli_plan_node *n = &f->plan->node[k];
    int32_t              own = -1;
    f->of[k] = -1;
    if (can_fuse(f->plan, n)) {
        own = k;
        f->group[k] = (group){ .anchor = k, .n_members = 1, .first = k, .last = k };
        if (!add_inputs(f, &f->group[k], f->plan->input + n->input, n->n_in, -1, -1)) own = -1;
        f->of[k] = own;
    }
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!pli_plan_reads(n, i)) continue;
        const int32_t v = f->plan->input[n->input + i], g = find(f, v);
        if (g < 0 || g == own) continue;
        const bool fits = own >= 0 && same_shape(&f->plan->value[v].t.shape, &f->plan->value[n->output].t.shape);
        if (fits && join(f, k, own, g))
            own = g;
        else
            f->group[g].fixed = true;
    }
}

/* --- making nodes of groups ------------------------------------------------------------------------------------ */

static void mark_outside(fuse *f) {
    const pli_plan *p = f->plan;
    memset(f->seen_outside, 0, (size_t)p->n_values * sizeof *f->seen_outside);
    for (int64_t k = 0; k < p->n_nodes; k++) {
        const pli_plan_node *n = &p->node[k];
        for (int32_t i = n->input; i < n->input + n->n_in; i++)
            if (f->of[k] < 0 || find(f, p->input[i]) != f->of[k]) f->seen_outside[p->input[i]] = true;
    }
    for (int32_t i = 0; i < p->key.n_fetches; i++)
        if (p->fetch[i] >= 0) f->seen_outside[p->fetch[i]] = true;
}

static void find_readers(fuse *f) {
    enum { NOBODY = -2, SEVERAL = -1 };
    const pli_plan *p = f->plan;
    for (int64_t v = 0; v < p->n_values; v++) f->reader[v] = NOBODY;
    for (int64_t k = 0; k < p->n_nodes; k++) {
        for (int32_t i = p->node[k].input; i < p->node[k].input + p->node[k].n_in; i++) {
            int32_t *reader = &f->reader[p->input[i]];
            *reader = *reader == NOBODY || *reader == f->of[k] ? f->of[k] : SEVERAL;
        }
    }
    for (int32_t i = 0; i < p->key.n_fetches; i++)
        if (p->fetch[i] >= 0) f->reader[p->fetch[i]] = SEVERAL;
}

/* Finds the node whose epilogue the group may become, or -1; its output becomes the group's first input. */
static plait_status find_host(fuse *f, int32_t own, int32_t *host_out, plait_error *err) {
    const pli_plan *p = f->plan;
    group          *g = &f->group[own];
    *host_out = -1;
    for (int32_t i = 0; i < g->n_in && *host_out < 0; i++) {
        const int32_t v = g->in[i], k = p->value[v].node;
        bool          good;
        if (k < 0 || f->reader[v] != own) continue;
        PLI_TRY(pli_epilogue_host(f->plan, k, &p->value[p->node[g->first].output].t.shape, &good, err));
        if (!good) continue;
        g->in[i] = g->in[0];
        g->in[0] = v;
        *host_out = k;
    }
    return PLAIT_OK;
}

static int32_t operand_of(const group *g, const int32_t *member, int32_t n_members, const pli_plan *p, int32_t value) {
    for (int32_t j = 0; j < n_members; j++)
        if (p->node[member[j]].output == value) return PLI_MAP_INPUTS + j;
    int32_t at = 0;
    while (g->in[at] != value) at++;
    return at;
}

static int32_t sorted_members(const fuse *f, const group *g, int32_t member[PLI_MAP_STEPS]) {
    int32_t n = 0;
    for (int32_t k = g->first;; k = f->next[k]) {
        int32_t at = n++;
        for (; at > 0 && member[at - 1] > k; at--) member[at] = member[at - 1];
        member[at] = k;
        if (k == g->last) return n;
    }
}

/* Removes inputs of a group that the group itself now makes. */
static void drop_own_inputs(const fuse *f, group *g, int32_t own) {
    int32_t n = 0;
    for (int32_t i = 0; i < g->n_in; i++)
        if (find(f, g->in[i]) != own) g->in[n++] = g->in[i];
    g->n_in = n;
}

static plait_status make_map(fuse *f, const group *g, const int32_t *member, int32_t n, pli_plan_node *node,
                             plait_error *err) {
    pli_plan    *p = f->plan;
    pli_map_op   ops[PLI_MAP_STEPS];
    plait_tensor in[PLI_MAP_INPUTS];
    node->member = pli_arena_take(&p->arena, (size_t)n * sizeof(plait_op *));
    if (node->member == NULL) return pli_plan_no_memory(err);
    for (int32_t i = 0; i < g->n_in; i++) in[i] = p->value[g->in[i]].t;
    for (int32_t j = 0; j < n; j++) {
        const pli_plan_node *m = &p->node[member[j]];
        int32_t             *operand = pli_arena_take(&p->work, (size_t)m->n_in * sizeof *operand);
        if (operand == NULL) return pli_plan_no_memory(err);
        for (int32_t i = 0; i < m->n_in; i++) operand[i] = operand_of(g, member, n, p, p->input[m->input + i]);
        ops[j] = (pli_map_op){ .op = m->op,
                               .attr = m->attr,
                               .n_in = m->n_in,
                               .in = operand,
                               .type = p->value[m->output].t.type,
                               .output = f->seen_outside[m->output] ? node->n_out++ : -1 };
        node->member[j] = m->op;
    }
    return pli_map_create(&p->arena, ops, n, in, g->n_in, &p->value[p->node[member[0]].output].t.shape, &node->map,
                          err);
}

/* Puts the fused node in the anchor's place; its members are dropped later, because nothing reads them. */
static plait_status make_node(fuse *f, int32_t own, plait_error *err) {
    pli_plan     *p = f->plan;
    group        *g = &f->group[own];
    int32_t       member[PLI_MAP_STEPS], made[PLI_MAP_STEPS], host;
    const int32_t n = sorted_members(f, g, member);
    PLI_TRY(find_host(f, own, &host, err));
    if (host < 0 && n == 1) return PLAIT_OK;
    pli_plan_node node = { .op = &fused_op,
                           .origin = p->node[member[n - 1]].origin,
                           .n_in = g->n_in,
                           .input = (int32_t)p->n_inputs,
                           .output = (int32_t)p->n_values,
                           .variable = -1,
                           .work = PLI_WORK_MAP,
                           .n_members = n };
    PLI_TRY(make_map(f, g, member, n, &node, err));
    if (node.map == NULL) return PLAIT_OK;
    for (int32_t j = 0, o = 0; j < n; j++)
        if (f->seen_outside[p->node[member[j]].output]) made[o++] = p->node[member[j]].output;
    if (host >= 0 && !pli_epilogue_make(p, host, &node, made)) host = -1;
    if (host < 0 && n == 1) return PLAIT_OK;
    if (!pli_grow((void **)&p->input, &p->input_capacity, p->n_inputs + node.n_in, sizeof *p->input) ||
        !pli_grow((void **)&p->node, &p->node_capacity, p->n_nodes + 1, sizeof *p->node))
        return pli_plan_no_memory(err);
    for (int32_t i = 0; host >= 0 && i < node.kernel_in; i++)
        p->input[p->n_inputs++] = p->input[p->node[host].input + i];
    for (int32_t i = host >= 0 ? 1 : 0; i < g->n_in; i++) p->input[p->n_inputs++] = g->in[i];
    for (int32_t j = 0; j < n; j++) {
        const int32_t old = p->node[member[j]].output;
        if (!f->seen_outside[old]) continue;
        f->to[old] = pli_plan_add_value(p, p->value[old].origin, p->value[old].t, PLI_PLACE_MEMORY, 0);
        if (f->to[old] < 0) return pli_plan_no_memory(err);
    }
    p->node[p->n_nodes++] = node;
    return PLAIT_OK;
}

static plait_status run(pli_plan *p, plait_error *err) {
    fuse          f;
    const int32_t n_nodes = (int32_t)p->n_nodes;
    const int64_t n_values = p->n_values;
    if (!begin(&f, p)) return pli_plan_no_memory(err);
    for (int32_t k = 0; k < n_nodes; k++) place_node(&f, k);
    for (int32_t k = 0; k < n_nodes; k++)
        if (f.of[k] == k) drop_own_inputs(&f, &f.group[k], k);
    mark_outside(&f);
    find_readers(&f);
    int32_t *to = pli_arena_take(&p->work, (size_t)(n_values + n_nodes) * sizeof *to); /* as many as there can be */
    if (to == NULL) return pli_plan_no_memory(err);
    for (int64_t v = 0; v < n_values + n_nodes; v++) to[v] = (int32_t)v;
    f.to = to;
    for (int32_t k = 0; k < n_nodes; k++)
        if (f.of[k] == k) PLI_TRY(make_node(&f, k, err));
    pli_pass_redirect(p, to);
    return PLAIT_OK;
}

const pli_pass pli_pass_fuse = { .name = "fuse", .run = run };
