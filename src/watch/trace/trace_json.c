/* Turns packed spans into the Trace Event Format: "X" events, which have a begin and a duration, and "M" events, which
 * name ranks and threads. Its times are microseconds; with three decimals they keep every nanosecond. See trace.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "watch/eventcode.h"
#include "watch/trace/trace.h"
#include "watch/watch.h"

enum { FLUSH_BYTES = 1 << 16 };

struct pli_trace_file {
    pli_outfile *file;
    pli_text     text; /* not yet written */
    char         transport[32];
    bool         simulated, begun;
    uint64_t     origin_ns, dropped, spans;
};

static const char *const kinds[PLI_SPAN_KINDS] = { "phase", "step", "call", "wait", "op", "pipeline" };

static plait_status flush(pli_trace_file *f, size_t least, plait_error *err) {
    if (f->text.failed) return pli_fail(err, PLAIT_ENOMEM, "trace: no memory for its text");
    if (f->text.length < least) return PLAIT_OK;
    plait_status status = pli_outfile_write(f->file, f->text.data, f->text.length, err);
    f->text.length = 0;
    return status;
}

static void begin_event(pli_trace_file *f, const char *name, const char *phase, int32_t rank, int32_t thread) {
    pli_text_add(&f->text, f->begun ? ",\n" : "\n");
    f->begun = true;
    pli_json_begin(&f->text);
    pli_json_text(&f->text, "name", name);
    pli_json_text(&f->text, "ph", phase);
    pli_json_i64(&f->text, "pid", rank);
    pli_json_i64(&f->text, "tid", thread);
}

/* Gives a rank or thread a name that viewers show instead of its number, or a place in their order. */
static void name_it(pli_trace_file *f, const char *what, int32_t rank, int32_t thread, const char *name) {
    begin_event(f, what, "M", rank, thread);
    pli_json_object(&f->text, "args");
    pli_json_text(&f->text, "name", name);
    pli_json_end(&f->text);
    pli_json_end(&f->text);
}

static void add_time(pli_text *text, const char *key, int64_t ns) {
    char           number[40];
    const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    snprintf(number, sizeof number, "%s%" PRIu64 ".%03d", ns < 0 ? "-" : "", size / 1000, (int)(size % 1000));
    pli_json_raw(text, key, number);
}

/* A span that was read. */
typedef struct span {
    pli_span_kind kind;
    uint64_t      begin_ns, end_ns;
    int64_t       number;
    char          name[PLI_TRACE_NAME_MAX + 1], detail[PLI_TRACE_DETAIL_MAX + 1];
} span;

/* The op of a node, "matmul + add, relu" for "matmul + add, relu#7": viewers add up spans with the same name. */
static void op_of(const char *node, char op[PLI_TRACE_NAME_MAX + 1]) {
    const char  *number = strchr(node, '#'), *name = strstr(node, " '");
    const size_t length = number != NULL && (name == NULL || number < name) ? (size_t)(number - node)
                          : name != NULL                                    ? (size_t)(name - node)
                                                                            : strlen(node);
    memcpy(op, node, length);
    op[length] = '\0';
}

static void add_args(pli_trace_file *f, const span *s) {
    const bool numbered = s->number >= 0, of_epoch = strcmp(s->name, "epoch") == 0 || strcmp(s->name, "validate") == 0;
    if (!numbered && s->detail[0] == '\0' && s->kind != PLI_SPAN_OP) return;
    pli_json_object(&f->text, "args");
    if (numbered)
        pli_json_i64(&f->text,
                     of_epoch                            ? "epoch"
                     : s->kind == PLI_SPAN_PIECE         ? "micro_batch"
                     : strcmp(s->name, "iteration") == 0 ? "iteration"
                                                         : "clock",
                     s->number);
    if (s->kind == PLI_SPAN_OP) pli_json_text(&f->text, "node", s->name);
    if (s->detail[0] != '\0') pli_json_text(&f->text, "for", s->detail);
    pli_json_end(&f->text);
}

static void add_span(pli_trace_file *f, const pli_trace_rank *rank, int32_t thread, const span *s) {
    char op[PLI_TRACE_NAME_MAX + 1];
    if (s->kind == PLI_SPAN_OP) op_of(s->name, op);
    begin_event(f, s->kind == PLI_SPAN_OP ? op : s->name, "X", rank->rank, thread);
    pli_json_text(&f->text, "cat", kinds[s->kind]);
    add_time(&f->text, "ts", (int64_t)(s->begin_ns - f->origin_ns + (uint64_t)rank->shift_ns));
    add_time(&f->text, "dur", (int64_t)(s->end_ns - s->begin_ns));
    add_args(f, s);
    pli_json_end(&f->text);
    f->spans++;
}

/* --- reading what was packed, perhaps by another process -----------------------------------------------------------
 * */

typedef struct reader {
    const unsigned char *at, *end;
    bool                 bad;
} reader;

static uint64_t get(reader *r) {
    uint64_t             x = 0;
    const unsigned char *next = r->bad ? NULL : pli_get_varint(r->at, r->end, &x);
    if (next == NULL) r->bad = true;
    else r->at = next;
    return x;
}

static uint64_t get_byte(reader *r) {
    if (r->bad || r->at == r->end) r->bad = true;
    return r->bad ? 0 : *r->at++;
}

static void get_text(reader *r, uint64_t length, uint64_t most, char *text) {
    text[0] = '\0';
    if (r->bad || length > most || length > (uint64_t)(r->end - r->at)) {
        r->bad = true;
        return;
    }
    memcpy(text, r->at, (size_t)length);
    text[length] = '\0';
    r->at += length;
}

static void get_span(reader *r, uint64_t *end_ns, span *s) {
    const uint64_t kind = get_byte(r);
    s->kind = (pli_span_kind)kind;
    s->begin_ns = *end_ns + (uint64_t)pli_unzigzag(get(r));
    s->end_ns = *end_ns = s->begin_ns + get(r);
    s->number = (int64_t)(get(r) - 1);
    get_text(r, get_byte(r), PLI_TRACE_NAME_MAX, s->name);
    get_text(r, get(r), PLI_TRACE_DETAIL_MAX, s->detail);
    if (kind >= PLI_SPAN_KINDS || s->number < -1 || s->end_ns - s->begin_ns > INT64_MAX) r->bad = true;
}

static plait_status add_track(pli_trace_file *f, const pli_trace_rank *rank, reader *r, plait_error *err) {
    const uint64_t thread = get(r), dropped = get(r), bytes = get(r);
    if (r->bad || thread > INT32_MAX || bytes > (uint64_t)(r->end - r->at)) {
        r->bad = true;
        return PLAIT_OK;
    }
    reader   own = { .at = r->at, .end = r->at + bytes };
    uint64_t end_ns = 0;
    char     name[64] = "its own thread";
    r->at = own.end;
    if (thread > 0) snprintf(name, sizeof name, "thread %d of its pool", (int)thread);
    name_it(f, "thread_name", rank->rank, (int32_t)thread, name);
    while (own.at < own.end) {
        span s;
        get_span(&own, &end_ns, &s);
        if (own.bad) break;
        add_span(f, rank, (int32_t)thread, &s);
        PLI_TRY(flush(f, FLUSH_BYTES, err));
    }
    if (dropped > 0) { /* an event at the track's end reports them */
        begin_event(f, "the trace's memory is spent: later spans are dropped", "i", rank->rank, (int32_t)thread);
        pli_json_text(&f->text, "s", "t");
        add_time(&f->text, "ts", (int64_t)(end_ns - f->origin_ns + (uint64_t)rank->shift_ns));
        pli_json_object(&f->text, "args");
        pli_json_u64(&f->text, "dropped", dropped);
        pli_json_end(&f->text);
        pli_json_end(&f->text);
    }
    f->dropped += dropped;
    r->bad = own.bad;
    return PLAIT_OK;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

plait_status pli_trace_file_open(const char *path, const char *transport, bool simulated, uint64_t origin_ns,
                                 pli_trace_file **file_out, plait_error *err) {
    pli_trace_file *f = pli_calloc(1, sizeof *f);
    if (f == NULL) return pli_fail(err, PLAIT_ENOMEM, "trace: no memory");
    plait_status status = pli_outfile_open(path, &f->file, err);
    if (status < 0) {
        pli_free(f);
        return status;
    }
    snprintf(f->transport, sizeof f->transport, "%s", transport);
    f->simulated = simulated;
    f->origin_ns = origin_ns;
    pli_json_begin(&f->text);
    pli_json_text(&f->text, "displayTimeUnit", "ns");
    pli_json_list(&f->text, "traceEvents");
    *file_out = f;
    return PLAIT_OK;
}

plait_status pli_trace_file_add(pli_trace_file *f, const pli_trace_rank *rank, const void *packed, size_t bytes,
                                plait_error *err) {
    char   name[320];
    reader r = { .at = packed, .end = (const unsigned char *)packed + bytes };
    if (rank->pid > 0)
        snprintf(name, sizeof name, "%s %d (%s, process %d)", rank->server ? "server" : "rank", rank->rank, rank->host,
                 rank->pid);
    else
        snprintf(name, sizeof name, "%s %d (%s)", rank->server ? "server" : "rank", rank->rank, rank->host);
    name_it(f, "process_name", rank->rank, 0, name);
    begin_event(f, "process_sort_index", "M", rank->rank, 0);
    pli_json_object(&f->text, "args");
    pli_json_i64(&f->text, "sort_index", rank->rank);
    pli_json_end(&f->text);
    pli_json_end(&f->text);
    while (r.at < r.end && !r.bad) PLI_TRY(add_track(f, rank, &r, err));
    if (r.bad) return pli_fail(err, PLAIT_EFORMAT, "trace: the spans of rank %d are not whole", rank->rank);
    return flush(f, FLUSH_BYTES, err);
}

plait_status pli_trace_file_add_sent(pli_trace_file *f, int32_t number, const void *sent, size_t bytes,
                                     plait_error *err) {
    reader         r = { .at = sent, .end = (const unsigned char *)sent + bytes };
    pli_trace_rank rank = { .rank = number };
    const uint64_t version = get(&r);
    if (!r.bad && version != PLI_TRACE_VERSION)
        return pli_fail(err, PLAIT_EVERSION,
                        "trace: rank %d sends spans of version %" PRIu64 ", expected %d: is its plait another?",
                        number, version, (int)PLI_TRACE_VERSION);
    const uint64_t pid = get(&r);
    rank.shift_ns = pli_unzigzag(get(&r));
    rank.server = get_byte(&r) != 0;
    get_text(&r, get_byte(&r), sizeof rank.host - 1, rank.host);
    if (r.bad || pid > INT32_MAX)
        return pli_fail(err, PLAIT_EFORMAT, "trace: who rank %d is has not come whole", number);
    rank.pid = (int32_t)pid;
    return pli_trace_file_add(f, &rank, r.at, (size_t)(r.end - r.at), err);
}

uint64_t pli_trace_file_dropped(const pli_trace_file *f) { return f->dropped; }

static void free_file(pli_trace_file *f) {
    pli_text_free(&f->text);
    pli_free(f);
}

plait_status pli_trace_file_close(pli_trace_file **file, plait_error *err) {
    pli_trace_file *f = *file;
    *file = NULL;
    if (f == NULL) return PLAIT_OK;
    pli_text_add(&f->text, "\n");
    pli_json_list_end(&f->text);
    pli_json_object(&f->text, "otherData");
    pli_json_i64(&f->text, "version", 1);
    pli_json_text(&f->text, "producer", "plait " PLI_VERSION);
    pli_json_text(&f->text, "transport", f->transport);
    pli_json_text(&f->text, "time", f->simulated ? "simulated" : "real");
    pli_json_i64(&f->text, "spans", (int64_t)f->spans);
    pli_json_i64(&f->text, "dropped", (int64_t)f->dropped);
    pli_json_end(&f->text);
    pli_json_end(&f->text);
    pli_text_add(&f->text, "\n");
    plait_status status = flush(f, 0, err);
    if (status == PLAIT_OK) status = pli_outfile_commit(&f->file, err);
    else pli_outfile_abandon(&f->file);
    free_file(f);
    return status;
}

void pli_trace_file_abandon(pli_trace_file **file) {
    pli_trace_file *f = *file;
    *file = NULL;
    if (f == NULL) return;
    pli_outfile_abandon(&f->file);
    free_file(f);
}
