/* What `plait graph run` writes: a value for each vertex, by increasing id, and a summary. See graph_run.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/graph_run.h"
#include "cli/lost.h"

enum { PIECE = 1 << 16 };

static double as_double(int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static size_t bytes_of(plait_type type) { return type == PLAIT_F32 ? 4 : 8; }

/* PageRank's ranks add up to 1: those of vertices without edges out are shared as the random surfer would
 * (Gleich, "PageRank Beyond the Web", SIAM Review 2015, section 2: both have the same direction). */
static void scale(const pli_graph_result *r) {
    const int64_t n = plait_edges_vertices(r->edges);
    double        sum = 0;
    if (!r->named->ranks) return;
    for (int64_t v = 0; v < n; v++) sum += as_double(r->value[v]);
    for (int64_t v = 0; v < n && sum > 0; v++) {
        const double value = as_double(r->value[v]) / sum;
        memcpy(&r->value[v], &value, sizeof value);
    }
}

/* --- text --------------------------------------------------------------------------------------------------------- */

/* Vertex v's numbers, as the run has left them. */
static const unsigned char *numbers_of(const pli_graph_result *r, int64_t v) {
    return (const unsigned char *)r->value + bytes_of(r->type) * (size_t)v * (size_t)r->values;
}

static void add_number(const pli_graph_result *r, const unsigned char *at, pli_text *text) {
    int64_t value = 0;
    float   narrow;
    memcpy(&value, at, bytes_of(r->type));
    memcpy(&narrow, at, sizeof narrow);
    if (r->type == PLAIT_F32) pli_text_add(text, "\t%.9g", (double)narrow);
    else if (r->type == PLAIT_F64) pli_text_add(text, "\t%.17g", as_double(value));
    else if (r->named->ids) pli_text_add(text, "\t%" PRIu64, plait_edges_id(r->edges, value));
    else if (value == INT64_MAX) pli_text_add(text, "\tinf");
    else pli_text_add(text, "\t%" PRId64, value);
}

static void add_line(const pli_graph_result *r, int64_t v, pli_text *text) {
    pli_text_add(text, "%" PRIu64, plait_edges_id(r->edges, v));
    for (int32_t i = 0; i < r->shown; i++) add_number(r, numbers_of(r, v) + bytes_of(r->type) * (size_t)i, text);
    pli_text_add(text, "\n");
}

static plait_status put_text(const pli_graph_result *r, pli_outfile *file, plait_error *err) {
    const int64_t n = plait_edges_vertices(r->edges);
    pli_text      text = { 0 };
    plait_status  status = PLAIT_OK;
    for (int64_t v = 0; v < n && status == PLAIT_OK; v++) {
        add_line(r, v, &text);
        if (text.length < PIECE && v + 1 < n) continue;
        if (text.failed) status = pli_fail(err, PLAIT_ENOMEM, "no memory to write values");
        else if (file != NULL) status = pli_outfile_write(file, text.data, text.length, err);
        else fwrite(text.data, 1, text.length, stdout); /* pli_cli_end says whether it came through */
        text.length = 0;
    }
    pli_text_free(&text);
    return status;
}

/* --- NumPy -------------------------------------------------------------------------------------------------------- */

/* NumPy's format, version 1.0: a magic, the length of the head, the head, padded to 64 bytes, and the rows. */
static plait_status put_numpy(const pli_graph_result *r, pli_outfile *file, plait_error *err) {
    const int64_t n = plait_edges_vertices(r->edges);
    char          head[192], wide[24] = "";
    const char   *type = r->type == PLAIT_F32 ? "<f4" : r->type == PLAIT_F64 ? "<f8" : r->named->ids ? "<u8" : "<i8";
    if (r->shown > 1) snprintf(wide, sizeof wide, ", (%d,)", (int)r->shown);
    int length = snprintf(head + 10, sizeof head - 10, "{'descr': [('id', '<u8'), ('value', '%s'%s)], 'fortran_order': "
                          "False, 'shape': (%" PRId64 ",), }", type, wide, n);
    const int padded = (10 + length + 1 + 63) / 64 * 64;
    memset(head + 10 + length, ' ', (size_t)(padded - 10 - length));
    head[padded - 1] = '\n';
    memcpy(head, "\x93NUMPY\1\0", 8);
    head[8] = (char)((padded - 10) & 0xff);
    head[9] = (char)((padded - 10) >> 8);
    PLI_TRY(pli_outfile_write(file, head, (size_t)padded, err));
    for (int64_t v = 0; v < n; v++) {
        const uint64_t       id = plait_edges_id(r->edges, v);
        uint64_t             far;
        const unsigned char *value = numbers_of(r, v);
        PLI_TRY(pli_outfile_write(file, &id, sizeof id, err));
        if (r->named->ids) {
            far = plait_edges_id(r->edges, r->value[v]);
            value = (const unsigned char *)&far;
        }
        PLI_TRY(pli_outfile_write(file, value, bytes_of(r->type) * (size_t)r->shown, err));
    }
    return PLAIT_OK;
}

static bool is_numpy(const char *path) {
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npy") == 0;
}

static plait_status put_values(const pli_graph_result *r, plait_error *err) {
    pli_outfile *file = NULL;
    if (r->set->out == NULL) return put_text(r, NULL, err);
    PLI_TRY(pli_outfile_open(r->set->out, &file, err));
    const plait_status status = is_numpy(r->set->out) ? put_numpy(r, file, err) : put_text(r, file, err);
    if (status == PLAIT_OK) return pli_outfile_commit(&file, err);
    pli_outfile_abandon(&file);
    return status;
}

/* --- the summary -------------------------------------------------------------------------------------------------- */

/* What the asynchronous engine alone has is null under the other. */
static void put_engine(const pli_graph_result *r, pli_text *text) {
    const bool async = pli_is(r->set->engine, "async");
    pli_json_text(text, "engine", r->set->engine);
    pli_json_text(text, "scope", async ? r->set->scope : NULL);
    pli_json_text(text, "order", async ? r->set->order : NULL);
    if (async) pli_json_i64(text, "updates", r->report.updates);
    else pli_json_null(text, "updates");
    if (async) pli_json_i64(text, "lock_waits", r->report.lock_waits);
    else pli_json_null(text, "lock_waits");
}

/* Of a program whose workers have the whole graph they are null. */
static void put_cut(const pli_graph_result *r, pli_text *text) {
    if (r->named->whole) {
        pli_json_null(text, "replication_factor");
        pli_json_null(text, "imbalance");
    } else {
        pli_json_f64(text, "replication_factor", plait_vertex_cut_replication(r->cut));
        pli_json_f64(text, "imbalance", plait_vertex_cut_imbalance(r->cut));
    }
}

static plait_status put_json(const pli_graph_result *r, plait_error *err) {
    pli_text text = { 0 };
    pli_json_begin(&text);
    pli_json_text(&text, "program", r->named->name);
    pli_json_i64(&text, "vertices", plait_edges_vertices(r->edges));
    pli_json_i64(&text, "edges", plait_edges_count(r->edges));
    pli_json_i64(&text, "loops", plait_edges_loops(r->edges));
    pli_json_i64(&text, "doubles", plait_edges_doubles(r->edges));
    pli_json_i64(&text, "workers", r->workers);
    pli_json_text(&text, "transport", r->transport);
    pli_json_text(&text, "topology", r->topology);
    pli_json_text(&text, "consistency", r->consistency);
    pli_json_text(&text, "partition", r->named->whole ? NULL : r->set->partition);
    pli_json_i64(&text, "replicas", r->set->replicas);
    pli_json_list(&text, "ranks_lost");
    for (int64_t i = 0; i < r->lost->n; i++) pli_json_i64(&text, NULL, r->lost->rank[i]);
    pli_json_list_end(&text);
    put_engine(r, &text);
    put_cut(r, &text);
    pli_json_i64(&text, "supersteps", r->report.supersteps);
    pli_json_i64(&text, "pushed", r->report.pushed);
    pli_json_i64(&text, "pulled", r->report.pulled);
    pli_json_bool(&text, "converged", r->report.still);
    pli_json_f64(&text, "load_seconds", r->load_s);
    pli_json_f64(&text, "run_seconds", r->run_s);
    if (r->virtual_s >= 0) pli_json_f64(&text, "virtual_seconds", r->virtual_s);
    else pli_json_null(&text, "virtual_seconds");
    pli_json_f64(&text, "idle_share", r->idle);
    if (r->virtual_s >= 0) pli_json_i64(&text, "messages", r->simulated.messages);
    else pli_json_null(&text, "messages");
    pli_json_text(&text, "trace_hash", r->virtual_s >= 0 ? r->simulated.trace_hash : NULL);
    pli_figure    figure[PLI_FIGURES];
    const int32_t figures = r->named->figures != NULL ? r->named->figures(r->choice, r->value, figure) : 0;
    for (int32_t i = 0; i < figures; i++) {
        if (figure[i].is_real) pli_json_f64(&text, figure[i].name, figure[i].real);
        else pli_json_i64(&text, figure[i].name, figure[i].whole);
    }
    pli_json_u64(&text, "bytes_sent", r->bytes_sent);
    pli_json_i64(&text, "peak_rss_bytes", pli_peak_rss_bytes());
    pli_json_end(&text);
    pli_text_add(&text, "\n");
    return pli_cli_print(&text) ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory to print the summary");
}

static void talk(const pli_graph_result *r) {
    const int64_t vertices = plait_edges_vertices(r->edges), edges = plait_edges_count(r->edges);
    const int64_t loops = plait_edges_loops(r->edges), doubles = plait_edges_doubles(r->edges);
    pli_text      text = { 0 };
    pli_text_add(&text, "plait: ");
    pli_text_add_count(&text, vertices);
    pli_text_add(&text, vertices == 1 ? " vertex, " : " vertices, ");
    pli_text_add_count(&text, edges);
    pli_text_add(&text, " edge%s", pli_plural(edges));
    if (loops > 0)
        pli_text_add(&text, ", %" PRId64 " loop%s %s", loops, pli_plural(loops),
                     r->set->drop_loops ? "left out" : "kept (--drop-loops)");
    if (doubles > 0)
        pli_text_add(&text, ", %" PRId64 " double%s %s", doubles, pli_plural(doubles),
                     r->set->drop_doubles ? "left out" : "kept (--drop-doubles)");
    if (r->workers > 1) pli_text_add(&text, "; %d workers", (int)r->workers);
    if (r->workers > 1 && !r->named->whole)
        pli_text_add(&text, ", replication factor %.3g", plait_vertex_cut_replication(r->cut));
    pli_text_add(&text, "; %" PRId64 " superstep%s in %.3g s%s\n", r->report.supersteps,
                 pli_plural(r->report.supersteps), r->virtual_s >= 0 ? r->virtual_s : r->run_s,
                 r->virtual_s >= 0 ? " (simulated)" : "");
    pli_figure    figure[PLI_FIGURES];
    const int32_t figures = r->named->figures != NULL ? r->named->figures(r->choice, r->value, figure) : 0;
    for (int32_t i = 0; i < figures; i++) {
        if (figure[i].is_real && isnan(figure[i].real)) continue; /* no rows of that kind */
        pli_text_add(&text, "%s%s ", i == 0 ? "plait: " : ", ", figure[i].name);
        if (figure[i].is_real) pli_text_add(&text, "%.6g", figure[i].real);
        else pli_text_add_count(&text, figure[i].whole);
    }
    if (figures > 0) pli_text_add(&text, "\n");
    if (!r->report.still)
        pli_text_add(&text, "plait: it ended by --supersteps%s, before values were still\n",
                     r->set->supersteps == 0 ? "'s default" : "");
    if (text.data != NULL) fputs(text.data, stderr);
    pli_text_free(&text);
}

plait_status pli_graph_put(const pli_graph_result *r, plait_error *err) {
    if (r->named->finish != NULL) r->named->finish(r->choice, r->value);
    scale(r);
    PLI_TRY(put_values(r, err));
    if (!r->set->quiet) talk(r);
    return r->set->json ? put_json(r, err) : PLAIT_OK;
}
