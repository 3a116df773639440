/* Runs graphs from files, for tests that compare with another runtime.
 *
 *   onnx_run FOLDER...   each folder has model.onnx, inputs.txt with a line "NAME TYPE RANK LENGTH..." for each input,
 *                        in0.bin, in1.bin, ... with their values, and outputs.txt with names. It writes out0.bin, ...
 *                        with the outputs' values, and out0.txt, ... with the number of their type and their lengths,
 *                        or error.txt. It also writes the graph back to back.onnx, or the error to back.txt
 *   onnx_run --ops       prints the names of the ops that are read, one a line */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plait/graph_file.h>
#include <plait/session.h>

#include "graph/form/export.h"
#include "graph/form/import.h"

enum { MOST = 8, BYTES = 1 << 22 };

static char path[4096];

static const char *in(const char *folder, const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static size_t read_file(const char *name, void *data, size_t most) {
    FILE  *file = fopen(name, "rb");
    size_t n = file != NULL ? fread(data, 1, most, file) : 0;
    if (file != NULL) fclose(file);
    return n;
}

static void write_file(const char *name, const void *data, size_t n) {
    FILE *file = fopen(name, "wb");
    if (file == NULL || fwrite(data, 1, n, file) != n || fclose(file) != 0) abort();
}

/* Reads lines "NAME TYPE RANK LENGTH...", and for each its file of values. */
static int read_feeds(const char *folder, const plait_graph *g, plait_feed *feeds) {
    FILE *list = fopen(in(folder, "inputs.txt"), "r");
    char  name[200];
    int   n = 0, type, rank;
    while (list != NULL && n < MOST && fscanf(list, "%199s %d %d", name, &type, &rank) == 3) {
        plait_shape shape = { .rank = rank };
        for (int i = 0; i < rank; i++)
            if (fscanf(list, "%ld", &shape.dim[i]) != 1) abort();
        void *data = malloc(BYTES);
        if (data == NULL) abort();
        char file[32];
        snprintf(file, sizeof file, "in%d.bin", n);
        read_file(in(folder, file), data, BYTES);
        feeds[n++] = (plait_feed){ plait_graph_find(g, name), plait_tensor_of((plait_type)type, shape, data) };
    }
    if (list != NULL) fclose(list);
    return n;
}

static int read_fetches(const char *folder, const plait_graph *g, plait_fetch *fetches) {
    FILE *list = fopen(in(folder, "outputs.txt"), "r");
    char  name[200];
    int   n = 0;
    while (list != NULL && n < MOST && fscanf(list, "%199s", name) == 1) {
        void *data = malloc(BYTES);
        if (data == NULL) abort();
        fetches[n++] = (plait_fetch){ .value = plait_graph_find(g, name), .tensor = { .data = data }, .bytes = BYTES };
    }
    if (list != NULL) fclose(list);
    return n;
}

/* Writes "TYPE LENGTH...". */
static void write_lengths(const char *name, const plait_tensor *t) {
    char   text[300];
    size_t at = (size_t)snprintf(text, sizeof text, "%d", (int)t->type);
    for (int32_t i = 0; i < t->shape.rank; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, " %ld", (long)t->shape.dim[i]);
    write_file(name, text, at);
}

/* Writes the graph as ONNX again, with the same inputs and outputs. */
static plait_status write_back(const char *folder, const plait_graph *g, const plait_feed *feeds, int n_feeds,
                               const plait_fetch *fetches, int n_fetches, plait_error *err) {
    static plait_tensor variable[256];
    pli_export          to;
    pli_export_init(&to);
    for (int32_t k = 0; k < plait_graph_variables(g); k++) variable[k] = plait_graph_variable_initial(g, k);
    pli_export_begin(&to, g, variable);
    for (int i = 0; i < n_feeds; i++) {
        const plait_tensor t = plait_graph_describe(g, feeds[i].value);
        pli_export_bind(&to, feeds[i].value,
                        pli_export_input(&to, pli_value_name(g, feeds[i].value), t.type, t.shape, "n"));
    }
    for (int i = 0; i < n_fetches; i++) {
        const plait_tensor       t = plait_graph_describe(g, fetches[i].value);
        static const char *const names[] = { "out0", "out1", "out2", "out3", "out4", "out5", "out6", "out7" };
        pli_export_output(&to, pli_export_value(&to, fetches[i].value), names[i], t.type, false, t.shape, "n");
    }
    plait_status status = pli_export_save(&to, in(folder, "back.onnx"), "back", err);
    pli_export_destroy(&to);
    return status;
}

static plait_status run(const char *folder, plait_error *err) {
    plait_graph   *g = NULL;
    plait_session *session = NULL;
    plait_feed     feeds[MOST];
    plait_fetch    fetches[MOST];
    int            n_feeds = 0, n_fetches = 0;
    plait_status   status = plait_graph_load(in(folder, "model.onnx"), NULL, &g, err);
    if (status == PLAIT_OK) status = plait_session_create(g, NULL, &session, err);
    if (status == PLAIT_OK) {
        n_feeds = read_feeds(folder, g, feeds);
        n_fetches = read_fetches(folder, g, fetches);
        status = plait_session_run(session, feeds, n_feeds, fetches, n_fetches, NULL, 0, err);
    }
    plait_error why = { 0 };
    if (status == PLAIT_OK && write_back(folder, g, feeds, n_feeds, fetches, n_fetches, &why) < 0)
        write_file(in(folder, "back.txt"), why.text, strlen(why.text));
    for (int i = 0; i < n_fetches; i++) {
        char         file[32];
        const size_t bytes =
            (size_t)plait_shape_elements(&fetches[i].tensor.shape) * plait_type_bytes(fetches[i].tensor.type);
        snprintf(file, sizeof file, "out%d.bin", i);
        if (status == PLAIT_OK) write_file(in(folder, file), fetches[i].tensor.data, bytes);
        snprintf(file, sizeof file, "out%d.txt", i);
        if (status == PLAIT_OK) write_lengths(in(folder, file), &fetches[i].tensor);
        free(fetches[i].tensor.data);
    }
    for (int i = 0; i < n_feeds; i++) free(feeds[i].tensor.data);
    plait_session_destroy(&session);
    plait_graph_destroy(&g);
    return status;
}

static void tell_ops(void) {
    for (size_t t = 0; pli_import_tables[t] != NULL; t++)
        for (const pli_import_op *op = pli_import_tables[t]; op->name != NULL; op++) puts(op->name);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--ops") == 0) {
        tell_ops();
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        plait_error err = { 0 };
        if (run(argv[i], &err) < 0) write_file(in(argv[i], "error.txt"), err.text, strlen(err.text));
    }
    return 0;
}
