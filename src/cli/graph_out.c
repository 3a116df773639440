/* The placed graph as a file. A graph in Plait's own form keeps everything that its file says, such as first values by
 * rule; only its "place" is another. An ONNX model becomes a graph in Plait's form, with its values. */
#include <string.h>

#include "base/json.h"
#include "cli/graph_place.h"
#include "graph/form/form.h"
#include "graph/ops/ops.h"

/* Placeholders and constants are on every rank. */
static void place_nodes(plait_graph *g, const int32_t *rank) {
    for (int64_t k = 0; k < g->n_nodes; k++) {
        const bool everywhere = g->node[k].op == &pli_op_placeholder || g->node[k].op == &pli_op_constant;
        g->node[k].rank = everywhere ? -1 : rank[k];
    }
}

/* The file with another "place": a key a line, and a node a line. After a newline, json.c writes no comma. */
static void add_file(const json_t *root, const json_t *place, pli_text *text) {
    const char *key;
    json_t     *value;
    pli_text_add(text, "{\"plait_graph\": 1");
    json_object_foreach((json_t *)(uintptr_t)root, key, value) {
        if (strcmp(key, "plait_graph") == 0 || strcmp(key, "place") == 0) continue;
        pli_text_add(text, ",\n");
        if (strcmp(key, "nodes") != 0) {
            pli_json_value(text, key, value);
            continue;
        }
        pli_json_list(text, key);
        for (size_t i = 0; i < json_array_size(value); i++) {
            pli_text_add(text, i > 0 ? ",\n" : "\n");
            pli_json_value(text, NULL, json_array_get(value, i));
        }
        pli_json_list_end(text);
    }
    pli_text_add(text, ",\n");
    pli_json_value(text, "place", place);
    pli_text_add(text, "}\n");
}

/* Makes the text of --out. */
static plait_status make_text(const pli_place_settings *set, const plait_graph *g, pli_text *text, plait_error *err) {
    enum { BYTES_MAX = INT32_MAX };
    pli_text     file = { 0 }, placed = { 0 };
    json_t      *root = NULL, *with = NULL;
    plait_status status = pli_read_whole(set->file, BYTES_MAX, &file, err);
    if (status == PLAIT_OK) root = pli_json_read(file.data != NULL ? file.data : "", file.length, NULL);
    if (status == PLAIT_OK) status = pli_form_to_json(g, root == NULL, root == NULL ? text : &placed, err);
    if (status == PLAIT_OK && root != NULL) {
        with = pli_json_read(placed.data, placed.length, NULL);
        const json_t *place = with != NULL ? json_object_get(with, "place") : NULL;
        if (place != NULL)
            add_file(root, place, text);
        else
            status = pli_fail(err, PLAIT_ENOMEM, "no memory for the placed graph");
    }
    if (status == PLAIT_OK && text->failed) status = pli_fail(err, PLAIT_ENOMEM, "no memory for the placed graph");
    json_decref(root);
    json_decref(with);
    pli_text_free(&file);
    pli_text_free(&placed);
    return status;
}

plait_status pli_place_write(const pli_place_settings *set, int32_t ranks, const int32_t *rank, plait_error *err) {
    plait_graph *g = NULL;
    pli_text     text = { 0 };
    pli_outfile *file = NULL;
    PLI_TRY(pli_place_graph(set, ranks, &g, err));
    place_nodes(g, rank);
    plait_status status = make_text(set, g, &text, err);
    if (status == PLAIT_OK) status = pli_outfile_open(set->out, &file, err);
    if (status == PLAIT_OK) status = pli_outfile_write(file, text.data, text.length, err);
    if (file != NULL && status == PLAIT_OK)
        status = pli_outfile_commit(&file, err);
    else if (file != NULL)
        pli_outfile_abandon(&file);
    pli_text_free(&text);
    plait_graph_destroy(&g);
    return status;
}
