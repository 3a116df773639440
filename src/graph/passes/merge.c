/* merge: nodes with the same op, attributes and inputs are computed once (common subexpressions, by value numbering:
 * Cocke and Schwartz, "Programming Languages and Their Compilers", 1970). Random ops and ops with an effect outside are
 * not merged. */
#include <string.h>

#include "graph/passes/passes.h"

enum { CONSTANT_BYTES = 4096 }; /* larger constants are rarely equal, and take long to compare */

static size_t attr_bytes(const plait_attr *a, const void **at) {
    switch (a->kind) {
    case PLAIT_ATTR_INT:
    case PLAIT_ATTR_TYPE:
    case PLAIT_ATTR_FLOAT: *at = &a->u; return 8;
    case PLAIT_ATTR_INTS: *at = a->u.ints; return (size_t)a->n * sizeof *a->u.ints;
    case PLAIT_ATTR_TEXT: *at = a->u.text; return strlen(a->u.text);
    case PLAIT_ATTR_TENSOR:
        *at = a->u.tensor->data;
        return a->u.tensor->data != NULL ? pli_tensor_bytes(a->u.tensor) : 0;
    }
    return 0;
}

static uint64_t hash_node(const pli_plan *p, const pli_plan_node *n) {
    uint64_t h = pli_hash_bytes(n->op->name, strlen(n->op->name), (uint64_t)(uint32_t)n->n_in);
    for (int32_t i = 0; i < n->n_in; i++) h = pli_hash_u64(h + (uint32_t)p->input[n->input + i]);
    for (int32_t i = 0; i < n->op->n_attrs; i++) {
        const void  *at = NULL;
        const size_t bytes = attr_bytes(&n->attr[i], &at);
        h = pli_hash_bytes(at, bytes, h + bytes);
    }
    return h;
}

static bool same_shape(const plait_tensor *a, const plait_tensor *b) {
    return a->type == b->type && a->shape.rank == b->shape.rank &&
           memcmp(a->shape.dim, b->shape.dim, (size_t)a->shape.rank * sizeof *a->shape.dim) == 0;
}

static bool same_attr(const plait_attr *a, const plait_attr *b) {
    const void  *from_a = NULL, *from_b = NULL;
    const size_t bytes = attr_bytes(a, &from_a);
    if (bytes != attr_bytes(b, &from_b) || (a->kind == PLAIT_ATTR_TENSOR && !same_shape(a->u.tensor, b->u.tensor)))
        return false;
    return bytes == 0 || memcmp(from_a, from_b, bytes) == 0;
}

static bool same_node(const pli_plan *p, const pli_plan_node *a, const pli_plan_node *b) {
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out) return false;
    if (a->n_in > 0 && memcmp(p->input + a->input, p->input + b->input, (size_t)a->n_in * sizeof *p->input) != 0)
        return false;
    for (int32_t i = 0; i < a->op->n_attrs; i++)
        if (!same_attr(&a->attr[i], &b->attr[i])) return false;
    return true;
}

static bool merge_constants(pli_plan *p, pli_keymap *seen, int32_t *who, int32_t *to) {
    for (int32_t v = 0; v < p->n_values; v++) {
        const plait_tensor *t = &p->value[v].t;
        const size_t        bytes = pli_tensor_bytes(t);
        if (p->value[v].place != PLI_PLACE_CONSTANT || bytes > CONSTANT_BYTES) continue;
        const int64_t known = seen->n,
                      at = pli_keymap_add(
                          seen, pli_hash_bytes(t->data, bytes, (uint64_t)t->type + 16 * (uint64_t)t->shape.rank));
        if (at < 0) return false;
        if (at == known)
            who[at] = v;
        else if (same_shape(&p->value[who[at]].t, t) &&
                 (bytes == 0 || memcmp(p->value[who[at]].t.data, t->data, bytes) == 0))
            to[v] = who[at];
    }
    return true;
}

/* Nodes come after their inputs, so the inputs of a node have been merged before the node is compared. */
static bool merge_nodes(pli_plan *p, pli_keymap *seen, int32_t *who, int32_t *to) {
    for (int32_t k = 0; k < p->n_nodes; k++) {
        const pli_plan_node *n = &p->node[k];
        for (int32_t i = n->input; i < n->input + n->n_in; i++) p->input[i] = to[p->input[i]];
        if ((n->op->flags & PLAIT_OP_STATEFUL) != 0) continue;
        const int64_t known = seen->n, at = pli_keymap_add(seen, hash_node(p, n));
        if (at < 0) return false;
        if (at == known)
            who[at] = k;
        else if (same_node(p, &p->node[who[at]], n))
            for (int32_t i = 0; i < n->n_out; i++) to[n->output + i] = p->node[who[at]].output + i;
    }
    return true;
}

static plait_status run(pli_plan *p, plait_error *err) {
    const int64_t most = p->n_values > p->n_nodes ? p->n_values : p->n_nodes;
    int32_t      *to = pli_pass_identity(p), *who = pli_arena_take(&p->work, (size_t)most * sizeof *who);
    pli_keymap    seen;
    pli_keymap_init(&seen);
    bool done = to != NULL && who != NULL && merge_constants(p, &seen, who, to);
    pli_keymap_destroy(&seen);
    pli_keymap_init(&seen);
    done = done && merge_nodes(p, &seen, who, to);
    pli_keymap_destroy(&seen);
    if (!done) return pli_plan_no_memory(err);
    pli_pass_redirect(p, to);
    return PLAIT_OK;
}

const pli_pass pli_pass_merge = { .name = "merge", .run = run };
