/* Lists a graph's nodes for TensorBoard: each node has a name, and its inputs are "name" or "name:output". A node has
 * the name that the program gave its value, else a name made of its op and number. It has no slash, by which
 * TensorBoard would make groups. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "watch/board/board.h"

static char *copy(pli_arena *arena, const char *text) {
    const size_t bytes = strlen(text) + 1;
    char        *to = pli_arena_take(arena, bytes);
    return to == NULL ? NULL : memcpy(to, text, bytes);
}

static char *name_of(const plait_graph *g, const char *const *names, int64_t k, pli_arena *arena) {
    char        text[80];
    const char *named = NULL;
    for (int32_t v = 0; named == NULL && v < g->node[k].n_values; v++) named = names[g->node[k].value + v];
    if (named != NULL && strpbrk(named, ":/^ ") == NULL) return copy(arena, named);
    pli_node_name(g, k, text);
    return copy(arena, text);
}

static char *input_of(const plait_graph *g, plait_value value, const pli_board_node *nodes, pli_arena *arena) {
    char          text[256];
    const int32_t node = g->value[value].node, output = value - g->node[node].value;
    if (output == 0) return copy(arena, nodes[node].name);
    snprintf(text, sizeof text, "%.200s:%" PRId32, nodes[node].name, output);
    return copy(arena, text);
}

const pli_board_node *pli_board_nodes(const plait_graph *g, pli_arena *arena, int64_t *n_out) {
    pli_board_node *nodes = pli_arena_take(arena, (size_t)g->n_nodes * sizeof *nodes);
    const char    **names = pli_value_names(g);
    bool            ok = nodes != NULL && names != NULL;
    for (int64_t k = 0; ok && k < g->n_nodes; k++) {
        const pli_node *node = &g->node[k];
        const char    **input = pli_arena_take(arena, (size_t)(node->n_inputs + 1) * sizeof *input);
        plait_tensor   *output = pli_arena_take(arena, (size_t)(node->n_values + 1) * sizeof *output);
        char           *name = name_of(g, names, k, arena);
        ok = input != NULL && output != NULL && name != NULL;
        if (!ok) break;
        nodes[k] = (pli_board_node){ .name = name,
                                     .op = node->op->name,
                                     .n_inputs = node->n_inputs,
                                     .n_outputs = node->n_values,
                                     .input = input,
                                     .output = output };
        for (int32_t v = 0; v < node->n_values; v++) output[v] = plait_graph_describe(g, node->value + v);
        for (int32_t i = 0; ok && i < node->n_inputs; i++)
            ok = (input[i] = input_of(g, g->input[node->input + i], nodes, arena)) != NULL;
    }
    pli_free(names);
    *n_out = ok ? g->n_nodes : 0;
    return ok ? nodes : NULL;
}
