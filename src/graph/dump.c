/* Writes the text for Graphviz: dashed boxes are what the plan reads from outside, boxes are nodes with their kernels,
 * edges are values. */
#include "graph/dump.h"

#include <stdio.h>
#include <string.h>

/* Escapes a name, which may contain characters that would end a label. */
static void add_quoted(pli_text *text, const char *s) {
    for (; *s != '\0'; s++) pli_text_add(text, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
}

static void add_source(const pli_plan *p, pli_text *text, int32_t v) {
    static const char *const places[] = { "shape of ", "", "feed ", "constant ", "variable ", "", "received " };
    char                     name[80], shape[128];
    if (p->value[v].node >= 0) return;
    pli_value_text(p->graph, p->value[v].origin, name);
    pli_shape_text(&p->value[v].t, shape);
    pli_text_add(text, "  v%d [shape=box, style=dashed, label=\"%s", v, places[p->value[v].place]);
    add_quoted(text, name);
    pli_text_add(text, "\\n%s\"];\n", shape);
}

static void add_node(const pli_plan *p, pli_text *text, int64_t k) {
    const pli_plan_node *n = &p->node[k];
    char                 name[80];
    pli_value_text(p->graph, n->origin, name);
    pli_text_add(text, "  n%lld [label=\"%lld: %s", (long long)k, (long long)k, n->op->name);
    const char *before = n->work == PLI_WORK_KERNEL ? " + " : " "; /* an epilogue, or the whole node */
    for (int32_t j = 0; j < n->n_members; j++) pli_text_add(text, "%s%s", j == 0 ? before : ", ", n->member[j]->name);
    pli_text_add(text, "\\n");
    add_quoted(text, name);
    if (n->kernel != NULL) pli_text_add(text, "\\nby %s", n->kernel->name);
    pli_text_add(text, "\"];\n");
    for (int32_t i = n->input; i < n->input + n->n_in; i++) {
        const pli_plan_value *v = &p->value[p->input[i]];
        char                  shape[128];
        pli_shape_text(&v->t, shape);
        if (v->node >= 0)
            pli_text_add(text, "  n%d -> n%lld [label=\"%s", v->node, (long long)k, shape);
        else
            pli_text_add(text, "  v%d -> n%lld [label=\"%s", p->input[i], (long long)k, shape);
        if (v->node >= 0 && v->place == PLI_PLACE_MEMORY && p->block_bytes > 0)
            pli_text_add(text, " at %zu", v->offset);
        pli_text_add(text, "\"%s];\n", pli_plan_reads(n, i - n->input) ? "" : ", style=dotted");
    }
}

static plait_status write_file(const char *path, const pli_text *text, plait_error *err) {
    pli_outfile *file = NULL;
    PLI_TRY(pli_outfile_open(path, &file, err));
    const plait_status status = pli_outfile_write(file, text->data, text->length, err);
    if (status != PLAIT_OK) {
        pli_outfile_abandon(&file);
        return status;
    }
    return pli_outfile_commit(&file, err);
}

plait_status pli_dump(const pli_plan *p, const char *folder, const char *pass, const char *when, plait_error *err) {
    if (folder == NULL) return PLAIT_OK;
    pli_text text = { 0 };
    pli_text_add(&text, "digraph plan {\n  node [shape=box, fontsize=10];\n  edge [fontsize=9];\n");
    for (int32_t v = 0; v < p->n_values; v++) add_source(p, &text, v);
    for (int64_t k = 0; k < p->n_nodes; k++) add_node(p, &text, k);
    pli_text_add(&text, "}\n");
    char        *path = pli_format("%s/plan-%016llx-%s-%s.dot", folder, (unsigned long long)p->hash, pass, when);
    plait_status status = path == NULL || text.failed ? pli_plan_no_memory(err) : write_file(path, &text, err);
    pli_free(path);
    pli_text_free(&text);
    return status;
}
