/* Reads any bytes as a graph in JSON: they are refused with the file's name, or give a graph that is written and read
 * back the same. */
#include <stdlib.h>
#include <string.h>

#include "graph/form/form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    plait_graph_file_opts opts;
    plait_graph          *g = NULL, *again = NULL;
    pli_text              text = { 0 }, second = { 0 };
    plait_error           err = { 0 };
    plait_graph_file_opts_init(&opts);
    opts.values_bytes = 1 << 20;
    if (size == 0 || data[0] != '{') return 0; /* ONNX: import_fuzz.c */
    plait_status status = plait_graph_parse("g", data, size, &opts, &g, &err);
    if (status < 0) {
        require(status == err.code && strncmp(err.text, "g:", 2) == 0 && g == NULL);
        return 0;
    }
    require(pli_form_to_json(g, true, &text, &err) == PLAIT_OK);
    opts.values_bytes = 1 << 24; /* small, because values made by a rule are written out */
    require(plait_graph_parse("g", text.data, text.length, &opts, &again, &err) == PLAIT_OK);
    require(pli_form_to_json(again, true, &second, &err) == PLAIT_OK);
    require(strcmp(text.data, second.data) == 0);
    pli_text_free(&text);
    pli_text_free(&second);
    plait_graph_destroy(&g);
    plait_graph_destroy(&again);
    return 0;
}
