/* describe.c - a program in words, and small questions about it. */
#include <inttypes.h>

#include "oracle.h"

int32_t group_of(const plan *t, uint64_t row) {
    for (int32_t i = 0; i < t->n_groups; i++)
        if (row - t->groups[i].first < (uint64_t)t->groups[i].rows) return i;
    return -1;
}

const update *update_of(const group *g, int32_t worker, int32_t call) {
    for (int32_t i = 0; i < g->n_updates; i++)
        if (g->updates[i].worker == worker && g->updates[i].call == call) return &g->updates[i];
    return NULL;
}

plait_type type_of(const plan *t) { return t->whole ? PLAIT_I64 : t->wide ? PLAIT_F64 : PLAIT_F32; }

bool is_read(verb kind) { return kind <= CALL; }

bool is_inc(verb kind) { return kind >= INC && kind <= ADD_BEGIN; }

const char *name_of(verb kind) {
    static const char *const names[] = {
        "get",         "get_begin", "get_range", "get_range_begin", "read",  "dump", "call",
        "inc",         "inc_begin", "inc_range", "inc_range_begin", "flush", "wait", "clock",
        "clock_begin", "barrier",   "leave",     "refused inc",     "pause", "zero"
    };
    return names[kind];
}

static void describe_table(const plan *t, FILE *out) {
    fprintf(out, "    %s: %s x %s, ", t->name, t->topology, t->consistency);
    if (t->sparse)
        fprintf(out, "sparse, ");
    else
        fprintf(out, "%" PRId64 " rows, ", t->rows);
    fprintf(out, "%d columns of %s, %s", t->cols,
            t->whole  ? "I64"
            : t->wide ? "F64"
                      : "F32",
            t->combine == LEAST      ? "min"
            : t->combine == GREATEST ? "max"
            : t->combine == LATEST   ? "last"
            : !t->ruled     ? "additive"
            : t->own_rule ? "a rule of its own"
                          : "sgd");
    fprintf(out, "%s%s%s%s%s\n", t->keyed ? ", keyed" : "", t->exact ? ", exact" : "", t->sharded ? ", sharded" : "",
            t->filter != NULL ? ", filter " : "", t->filter != NULL ? t->filter : "");
}

void describe(const program *p, FILE *out) {
    static const char *const names[] = { "threads", "sim", "mpi" };
    fprintf(out, "  seed %" PRIu64 " over %s: %d workers, %d servers, %d clocks%s%s%s%s\n", p->seed, names[p->over],
            p->workers, p->servers, p->clocks, p->replicas == 2 ? ", two replicas" : "",
            p->aggregate ? ", aggregated by host" : "", p->collective != NULL ? ", collective " : "",
            p->collective != NULL ? p->collective : "");
    for (int32_t i = 0; i < p->n_tables; i++) describe_table(&p->tables[i], out);
}

static void describe_call(const program *p, int32_t worker, int32_t at, FILE *out) {
    const act *c = &p->calls[worker][at];
    fprintf(out, "      %d: %s", at, name_of(c->kind));
    if (is_read(c->kind) || is_inc(c->kind) || c->kind == FLUSH || c->kind == REFUSED || c->kind == ZERO)
        fprintf(out, " %s", p->tables[c->table].name);
    if (c->kind == WAIT) fprintf(out, " for call %d", c->of);
    if (c->times > 1) fprintf(out, " (%d times)", c->times);
    const bool list =
        c->kind == GET || c->kind == GET_BEGIN || c->kind == CALL || c->kind == INC || c->kind == INC_BEGIN;
    for (int64_t i = 0; list && i < c->n && i < 12; i++) fprintf(out, " %" PRIu64, p->keys[c->at + (size_t)i]);
    if (list && c->n > 12) fprintf(out, " ... (%" PRId64 " keys)", c->n);
    if (!list && c->n > 0) fprintf(out, " rows %" PRId64 " to %" PRId64, c->first, c->first + c->n - 1);
    if (is_inc(c->kind) && p->tables[c->table].ruled) fprintf(out, " of %" PRId64 " examples", c->examples);
    fputc('\n', out);
}

void describe_calls(const program *p, FILE *out) {
    for (int32_t v = 0; v < p->workers; v++) {
        fprintf(out, "    worker %d\n", v);
        for (int32_t i = 0; i < p->n_calls[v]; i++) describe_call(p, v, i, out);
    }
}
