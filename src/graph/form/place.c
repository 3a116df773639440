/* Reads where a graph's nodes are placed, and the rules for those that are not, as graph files have them under "place"
 * (docs/placement.md):
 *
 *     { "nodes":    { "scores": "rank:1/cpu:0" },
 *       "together": [["w1", "w2"]],   "apart": [["h", "scores"]],   "forbid": [["h", "rank:0"]],
 *       "memory":   { "rank:0": 2000000 } }
 *
 * The object is read twice: the first time it is only checked, so that a mistake leaves the graph as it was. */
#include <string.h>

#include "graph/form/form.h"
#include "graph/place/place.h"

typedef struct placer {
    plait_graph *g;
    plait_error *err;
    bool         apply;
} placer;

plait_status pli_form_value(const plait_graph *g, const char *name, plait_value *value_out, plait_error *err) {
    enum { FEW = 4096 };
    if (name == NULL) return pli_fail(err, PLAIT_EFORMAT, "a node's name is to be a text");
    *value_out = plait_graph_find(g, name);
    if (*value_out >= 0) return PLAIT_OK;
    const size_t n = (size_t)(g->n_named < FEW ? g->n_named : FEW);
    const char **names = pli_array(n, sizeof *names);
    if (names == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for names");
    for (size_t i = 0; i < n; i++) names[i] = g->named[i].name;
    const plait_status status = pli_fail_unknown(err, "node", name, names, n);
    pli_free(names);
    return status;
}

static plait_status find(const placer *p, const char *name, plait_value *value_out) {
    return pli_form_value(p->g, name, value_out, p->err);
}

static plait_status read_rank(const placer *p, const json_t *value, int32_t *rank_out) {
    const char *where = json_string_value(value);
    if (where == NULL) return pli_fail(p->err, PLAIT_EFORMAT, "a place is to be a text, as \"rank:1/cpu:0\"");
    return pli_place_parse(where, rank_out, p->err);
}

static plait_status read_places(const placer *p, const json_t *places) {
    const char *key;
    json_t     *value;
    if (!json_is_object(places)) return pli_fail(p->err, PLAIT_EFORMAT, "\"nodes\" is to be an object of places");
    json_object_foreach((json_t *)(uintptr_t)places, key, value) {
        plait_value v;
        int32_t     rank;
        PLI_TRY(find(p, key, &v));
        PLI_TRY(read_rank(p, value, &rank));
        if (p->apply) p->g->node[p->g->value[v].node].rank = rank;
    }
    return PLAIT_OK;
}

static plait_status add_rule(const placer *p, plait_place_rule rule) {
    return p->apply ? plait_graph_place_rule(p->g, &rule, p->err) : PLAIT_OK;
}

/* One list of "together" or "apart". Nodes that are to be together are linked in a row; to be apart, each with each. */
static plait_status read_names(const placer *p, const json_t *list, plait_place_rule_kind kind) {
    enum { APART_MAX = 256 };
    const size_t n = json_array_size(list);
    if (n < 2) return pli_fail(p->err, PLAIT_EFORMAT, "expected lists of two nodes or more, as [\"w1\", \"w2\"]");
    if (kind == PLAIT_PLACE_APART && n > APART_MAX)
        return pli_fail(p->err, PLAIT_EFORMAT, "%zu nodes that are to be apart; at most %d in one list", n, APART_MAX);
    for (size_t i = 1; i < n; i++)
        for (size_t k = kind == PLAIT_PLACE_APART ? 0 : i - 1; k < i; k++) {
            plait_place_rule rule = { .kind = kind };
            PLI_TRY(find(p, json_string_value(json_array_get(list, k)), &rule.a));
            PLI_TRY(find(p, json_string_value(json_array_get(list, i)), &rule.b));
            PLI_TRY(add_rule(p, rule));
        }
    return PLAIT_OK;
}

static plait_status read_forbidden(const placer *p, const json_t *pair) {
    plait_place_rule rule = { .kind = PLAIT_PLACE_NEVER };
    if (json_array_size(pair) != 2)
        return pli_fail(p->err, PLAIT_EFORMAT, "expected lists of a node and a rank, as [\"h\", \"rank:0\"]");
    PLI_TRY(find(p, json_string_value(json_array_get(pair, 0)), &rule.a));
    PLI_TRY(read_rank(p, json_array_get(pair, 1), &rule.rank));
    return add_rule(p, rule);
}

static plait_status read_rules(const placer *p, const char *key, const json_t *lists) {
    if (!json_is_array(lists)) return pli_fail(p->err, PLAIT_EFORMAT, "\"%s\" is to be an array of lists", key);
    for (size_t i = 0; i < json_array_size(lists); i++) {
        const json_t      *list = json_array_get(lists, i);
        const plait_status status =
            strcmp(key, "forbid") == 0
                ? read_forbidden(p, list)
                : read_names(p, list, strcmp(key, "apart") == 0 ? PLAIT_PLACE_APART : PLAIT_PLACE_TOGETHER);
        if (status < 0) return pli_fail_at(p->err, "%s, list %zu", key, i + 1);
    }
    return PLAIT_OK;
}

static plait_status read_memory(const placer *p, const json_t *memory) {
    const char *key;
    json_t     *value;
    if (!json_is_object(memory))
        return pli_fail(p->err, PLAIT_EFORMAT, "\"memory\" is to be an object, as {\"rank:0\": 2000000}");
    json_object_foreach((json_t *)(uintptr_t)memory, key, value) {
        int32_t rank;
        PLI_TRY(pli_place_parse(key, &rank, p->err));
        if (rank >= PLI_PLACE_RANKS_MAX)
            return pli_fail(p->err, PLAIT_EINVAL, "memory: a placement has at most %d ranks", PLI_PLACE_RANKS_MAX);
        if (!json_is_integer(value) || json_integer_value(value) <= 0)
            return pli_fail(p->err, PLAIT_EFORMAT, "memory of %.20s: expected a whole number of bytes above 0", key);
        if (p->apply) PLI_TRY(plait_graph_place_memory(p->g, rank, (uint64_t)json_integer_value(value), p->err));
    }
    return PLAIT_OK;
}

static plait_status read_object(const placer *p, const json_t *place) {
    static const char *const keys[] = { "nodes", "together", "apart", "forbid", "memory" };
    enum { KEYS = sizeof keys / sizeof *keys };
    const char *key;
    json_t     *value;
    if (!json_is_object(place)) return pli_fail(p->err, PLAIT_EFORMAT, "it is to be an object");
    json_object_foreach((json_t *)(uintptr_t)place, key, value) {
        size_t k = 0;
        while (k < KEYS && strcmp(keys[k], key) != 0) k++;
        if (k == KEYS) return pli_fail_unknown(p->err, "key", key, keys, KEYS);
        if (k == 0)
            PLI_TRY(read_places(p, value));
        else if (k == KEYS - 1)
            PLI_TRY(read_memory(p, value));
        else
            PLI_TRY(read_rules(p, key, value));
    }
    return PLAIT_OK;
}

plait_status pli_form_place(plait_graph *graph, const json_t *place, plait_error *err) {
    plait_error own;
    placer      p = { .g = graph, .err = err != NULL ? err : &own };
    for (int round = 0; round < 2; round++) {
        p.apply = round == 1;
        if (read_object(&p, place) < 0) return pli_fail_at(p.err, "place");
    }
    return PLAIT_OK;
}

plait_status pli_form_place_text(plait_graph *graph, const char *name, const char *text, size_t bytes,
                                 plait_error *err) {
    plait_error    own;
    pli_json_where where;
    json_t        *root = pli_json_read(text, bytes, &where);
    if (err == NULL) err = &own;
    if (root == NULL) return pli_fail(err, PLAIT_EFORMAT, "%s:%d: %s", name, where.line, where.text);
    const bool    whole = json_object_get(root, "plait_graph") != NULL; /* of a graph's file its "place" counts */
    const json_t *place = whole ? json_object_get(root, "place") : root;
    plait_status  status = place != NULL ? pli_form_place(graph, place, err)
                                         : pli_fail(err, PLAIT_EFORMAT, "the graph in it has no \"place\"");
    if (status < 0) pli_fail_at(err, "%s", name);
    json_decref(root);
    return status;
}

plait_status plait_graph_place_file(plait_graph *graph, const char *path, plait_error *error_out) {
    enum { BYTES_MAX = 1 << 30 };
    pli_text text = { 0 };
    PLI_TRY(PLI_GIVEN(error_out, graph));
    PLI_TRY(PLI_GIVEN(error_out, path));
    plait_status status = pli_read_whole(path, BYTES_MAX, &text, error_out);
    if (status == PLAIT_OK)
        status = pli_form_place_text(graph, path, text.data != NULL ? text.data : "", text.length, error_out);
    pli_text_free(&text);
    return status;
}
