/* Loads graphs from files. The first byte that is not a space tells the form: JSON begins with a brace, which is not
 * the tag of any field in ONNX. */
#include <string.h>

#include "graph/form/form.h"

#define STREAM_BYTES_MAX ((size_t)64 << 20) /* for input without a length, which may be endless */
#define FILE_BYTES_MAX ((size_t)2 << 30) /* the limit of protocol buffers for a message */

void (plait_graph_file_opts_init)(plait_graph_file_opts *opts) {
    if (opts != NULL) *opts = (plait_graph_file_opts){ .size = sizeof *opts };
}

void plait_graph_file_opts_init_sized(plait_graph_file_opts *opts, size_t size) {
    plait_graph_file_opts all;
    (plait_graph_file_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

plait_status plait_graph_parse(const char *name, const void *bytes, size_t n, const plait_graph_file_opts *opts,
                               plait_graph **graph_out, plait_error *error_out) {
    plait_graph_file_opts all;
    const char           *text = bytes;
    size_t                at = 0;
    PLI_TRY(PLI_GIVEN(error_out, name));
    PLI_TRY(PLI_GIVEN_OF(error_out, n, bytes));
    PLI_TRY(PLI_GIVEN(error_out, graph_out));
    plait_graph_file_opts_init(&all);
    PLI_TRY(pli_sized_take(&all, sizeof all, PLI_SIZED_END(plait_graph_file_opts, values_bytes), opts,
                           "plait_graph_file_opts", error_out));
    if (all.values_bytes == 0) all.values_bytes = (size_t)pli_memory_bytes();
    if (n > FILE_BYTES_MAX) return pli_fail(error_out, PLAIT_EFORMAT, "%s: more than 2 GiB are no graph", name);
    while (at < n && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n')) at++;
    if (at == n) return pli_fail(error_out, PLAIT_EFORMAT, "%s: an empty file is no graph", name);
    if (text[at] == '{') return pli_form_of_json(name, text, n, &all, graph_out, error_out);
    return pli_form_of_onnx(name, bytes, n, &all, graph_out, error_out);
}

plait_status plait_graph_load(const char *path, const plait_graph_file_opts *opts, plait_graph **graph_out,
                              plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, path));
    PLI_TRY(PLI_GIVEN(error_out, graph_out));
    pli_text     text = { 0 };
    plait_status status =
        pli_read_whole(path, pli_is_pipe(path) ? STREAM_BYTES_MAX : FILE_BYTES_MAX, &text, error_out);
    if (status == PLAIT_OK)
        status = plait_graph_parse(path, text.data != NULL ? text.data : "", text.length, opts, graph_out, error_out);
    pli_text_free(&text);
    return status;
}

plait_status plait_graph_save(const plait_graph *graph, const char *path, int values, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, graph));
    PLI_TRY(PLI_GIVEN(error_out, path));
    pli_text     text = { 0 };
    pli_outfile *file = NULL;
    plait_status status = pli_form_to_json(graph, values != 0, &text, error_out);
    if (status == PLAIT_OK) status = pli_outfile_open(path, &file, error_out);
    if (status == PLAIT_OK) status = pli_outfile_write(file, text.data, text.length, error_out);
    if (file != NULL && status == PLAIT_OK)
        status = pli_outfile_commit(&file, error_out);
    else if (file != NULL)
        pli_outfile_abandon(&file);
    pli_text_free(&text);
    return status;
}
