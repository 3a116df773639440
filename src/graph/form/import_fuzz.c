/* Loads any bytes as an ONNX file: they are refused with the file's name, or give a graph that can be written. Without
 * the module a replay of the corpus is skipped, and fuzzing fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/form/form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    plait_graph_file_opts opts;
    plait_graph          *g = NULL;
    pli_text              text = { 0 };
    plait_error           err = { 0 };
    plait_graph_file_opts_init(&opts);
    opts.values_bytes = 1 << 20;
    if (size == 0) return 0;
    plait_status status = pli_form_of_onnx("g", data, size, &opts, &g, &err);
    if (status == PLAIT_EMODULE) {
        fprintf(stderr, "skipped: %s\n", err.text);
        exit(77); /* libFuzzer takes an exit as a failure */
    }
    if (status < 0) {
        if (status != err.code || strncmp(err.text, "g:", 2) != 0 || g != NULL) abort();
        return 0;
    }
    if (pli_form_to_json(g, true, &text, &err) != PLAIT_OK) abort();
    pli_text_free(&text);
    plait_graph_destroy(&g);
    return 0;
}
