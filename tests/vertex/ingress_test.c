/* A worker that reads its own part of a graph alone has what it would take out of the whole graph, entry by entry: for
 * each cut that allows it, each direction, format and number of workers, small ids and large ones. So has one that
 * reads another worker's part, whose heir it is. What all parts come to is the same too, and so is a program's result.
 * What needs the whole graph is refused, and of a file with a mistake every worker tells the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "comm/comm.h"
#include "named.h"
#include "vertex/ingress.h"
#include "vertex/spread.h"

enum { M = 400, WORKERS = 5 };

static char path[64]; /* written by the main thread, before workers begin */

/* A drawn graph: some edges are loops or doubles, some vertices have many. sparse: a part reads few vertices. */
static void write_graph(uint64_t seed, bool far, bool sparse, bool weighted) {
    pli_random r = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    FILE      *f = fopen(path, "w");
    assert_non_null(f);
    for (int k = 0; k < M; k++) {
        const double   a = pli_random_f64(&r), b = pli_random_f64(&r);
        uint64_t       from = sparse ? (uint64_t)k : (uint64_t)(a * a * 70);
        uint64_t       to = sparse ? (uint64_t)k + 1 : (uint64_t)(b * 70);
        const int      weight = (int)pli_random_below(&r, 90) - (seed % 2 == 0 ? 3 : 0);
        if (far && from % 3 == 0) from = UINT64_MAX - 1000003 * from;
        if (far && to % 3 == 0) to = UINT64_MAX - 1000003 * to;
        fprintf(f, "%llu\t%llu", (unsigned long long)from, (unsigned long long)to);
        if (weighted) fprintf(f, "\t%d", weight);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
}

static void write_text(const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* --- the same part ------------------------------------------------------------------------------------------------ */

typedef struct asked {
    plait_edges_opts opts;
    plait_near       near;
    const char      *method;
    const char      *other;   /* what worker 1 reads in place of path; NULL: path */
    const char      *differs; /* what does; the last worker that writes it is as good as any: all tell a mistake */
    plait_status     status[WORKERS];
    char             text[WORKERS][sizeof ((plait_error *)0)->text];
} asked;

static const char *unlike_rows(const pli_neighbors *a, const pli_neighbors *b) {
    const int64_t first = a->start[0], m = a->start[a->n] - first;
    if (a->n != b->n) return "rows";
    for (int64_t v = 0; v <= a->n; v++)
        if (a->start[v] != b->start[v]) return "start";
    if (memcmp(a->near, b->near, (size_t)m * sizeof *a->near) != 0) return "near";
    if ((a->weight == NULL) != (b->weight == NULL)) return "weighted";
    return a->weight != NULL && memcmp(a->weight, b->weight, (size_t)m * sizeof *a->weight) != 0 ? "weight" : NULL;
}

static const char *unlike_parts(const pli_part *a, const pli_part *b) {
    if (a->n != b->n || a->own != b->own || a->owned != b->owned || a->whole != b->whole) return "numbers";
    if ((a->key == NULL) != (b->key == NULL)) return "keys";
    if (a->key != NULL && memcmp(a->key, b->key, (size_t)a->n * sizeof *a->key) != 0) return "key";
    const char *rows = unlike_rows(&a->rows, &b->rows);
    return rows != NULL ? rows : unlike_rows(&a->back, &b->back);
}

static const char *unlike_graphs(const plait_edges *a, const plait_edges *b) {
    pli_edge   x, y;
    const bool below = pli_edges_below(a, &x);
    if (below != pli_edges_below(b, &y)) return "is below";
    if (below && (x.from != y.from || x.to != y.to || memcmp(&x.weight, &y.weight, sizeof x.weight) != 0))
        return "below";
    if (a->n != b->n || a->m != b->m || a->loops != b->loops || a->doubles != b->doubles) return "counts";
    if (a->hash != b->hash) return "hash";
    if (plait_edges_weighted(a) != plait_edges_weighted(b)) return "weighted graph";
    for (int64_t v = 0; v < a->n; v++) {
        const uint64_t id = plait_edges_id(a, v);
        if (plait_edges_id(b, v) != id || plait_edges_find(b, id) != v) return "id";
        if (a->out[v] != b->out[v]) return "out";
    }
    return plait_edges_find(b, 12345678901) < 0 ? NULL : "an id that is not there";
}

static const char *unlike_cuts(const plait_vertex_cut *a, const plait_vertex_cut *b) {
    if (memcmp(a->first, b->first, ((size_t)a->parts + 1) * sizeof *a->first) != 0) return "first";
    for (int64_t v = 0; b->edges->degree != NULL && v < a->rows.n; v++)
        if (pli_cut_degree(a, v) != pli_cut_degree(b, v)) return "degree";
    if (!pli_is(a->method, b->method) || a->splits != b->splits || a->near != b->near) return "method";
    return a->replication == b->replication && a->imbalance == b->imbalance ? NULL : "replication";
}

static plait_status compare(plait_comm *comm, void *user) {
    asked            *q = user;
    const int32_t     workers = plait_comm_workers(comm), rank = plait_comm_rank(comm);
    plait_error      *err = pli_comm_error(comm);
    plait_edges      *all = NULL, *own = NULL;
    plait_vertex_cut *cut = NULL, *own_cut = NULL;
    pli_part          part = { 0 }, own_part = { 0 };
    plait_status      status = plait_edges_read(path, &q->opts, &all, err);
    if (status == PLAIT_OK) status = pli_cut_create(all, q->near, q->method, workers, &cut, err);
    if (status == PLAIT_OK) status = pli_part_make(cut, rank, true, &part, err);
    if (status == PLAIT_OK) status = pli_ingress_read(comm, path, &q->opts, q->near, q->method, &own, &own_cut);
    if (status == PLAIT_OK) status = pli_part_make(own_cut, rank, true, &own_part, err);
    if (status == PLAIT_OK) {
        const char *unlike = unlike_graphs(all, own);
        if (unlike == NULL) unlike = unlike_cuts(cut, own_cut);
        if (unlike == NULL) unlike = unlike_parts(&part, &own_part);
        if (unlike != NULL) __atomic_store_n(&q->differs, unlike, __ATOMIC_RELAXED);
    }
    pli_part other = { 0 }, own_other = { 0 };
    if (status == PLAIT_OK) status = pli_part_make(cut, (rank + 1) % workers, true, &other, err);
    if (status == PLAIT_OK) status = pli_part_make(own_cut, (rank + 1) % workers, true, &own_other, err);
    if (status == PLAIT_OK && unlike_parts(&other, &own_other) != NULL)
        __atomic_store_n(&q->differs, "another worker's part", __ATOMIC_RELAXED);
    pli_part_free(&other);
    pli_part_free(&own_other);
    pli_part_free(&part);
    pli_part_free(&own_part);
    plait_vertex_cut_destroy(&cut);
    plait_vertex_cut_destroy(&own_cut);
    plait_edges_destroy(&all);
    plait_edges_destroy(&own);
    return status;
}

static void check(asked *q, int32_t workers, const char *what) {
    plait_comm_opts opts;
    plait_error     err;
    plait_comm_opts_init(&opts);
    opts.workers = workers;
    q->differs = NULL;
    if (plait_comm_run(&opts, compare, q, &err) < 0) fail_msg("%s: %s", what, err.text);
    if (q->differs != NULL)
        fail_msg("%s, %d workers, near %d, %s: %s", what, (int)workers, (int)q->near, q->method, q->differs);
}

/* METIS is a module that need not be there. */
static bool has_metis(void) {
    const uint64_t    from[] = { 1, 2 }, to[] = { 2, 3 };
    plait_edges      *edges = NULL;
    plait_vertex_cut *cut = NULL;
    plait_error       err;
    assert_int_equal(plait_edges_from_memory(2, from, to, NULL, NULL, &edges, &err), PLAIT_OK);
    const plait_status status = pli_cut_create(edges, PLAIT_NEAR_IN, "metis", 2, &cut, &err);
    assert_true(status == PLAIT_OK || status == PLAIT_EMODULE);
    if (status < 0) print_message("skipped: cuts by metis: %s\n", err.text);
    plait_vertex_cut_destroy(&cut);
    plait_edges_destroy(&edges);
    return status == PLAIT_OK;
}

static void test_a_part_is_the_same_without_the_rest(void **state) {
    static const char *const methods[] = { "range", "random", "grid", "metis" };
    const int                n = has_metis() ? 4 : 3;
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        asked q;
        plait_edges_opts_init(&q.opts);
        q.opts.undirected = seed % 4 == 1;
        q.opts.drop_loops = seed % 4 == 2;
        q.opts.drop_doubles = seed % 8 > 3;
        write_graph(seed, seed % 2 == 1, seed % 8 == 7, seed % 3 == 0);
        for (int m = 0; m < n; m++)
            for (int near = PLAIT_NEAR_IN; near <= (int)PLI_NEAR_SIMPLE; near++) {
                q.method = methods[m];
                q.near = (plait_near)near;
                check(&q, 1 + (int32_t)(seed + (uint64_t)m) % WORKERS, "drawn");
            }
    }
}

/* Vertices without an edge are there, and an end of the ranges may own nothing. */
static void test_other_formats(void **state) {
    asked q;
    (void)state;
    plait_edges_opts_init(&q.opts);
    q.near = PLAIT_NEAR_IN;
    write_text("%%MatrixMarket matrix coordinate real symmetric\n9 9 5\n3 1 0.5\n3 2 -2\n4 3 1\n5 5 7\n9 3 2\n");
    for (int32_t workers = 1; workers <= WORKERS; workers++)
        for (int m = 0; m < 4; m++) {
            q.method = m % 2 == 0 ? "range" : "grid";
            q.near = m < 2 ? PLAIT_NEAR_IN : PLI_NEAR_SIMPLE;
            check(&q, workers, "matrix");
        }
    q.method = "range";
    q.near = PLAIT_NEAR_IN;
    write_text("%%MatrixMarket matrix coordinate pattern general\n% of no edge\n7 7 0\n");
    for (int32_t workers = 1; workers <= WORKERS; workers++) check(&q, workers, "a matrix of zeros");
    write_text("% pieces begin anywhere\n6 5\n2 3\n1 4\n% a comment has no number\n1 4\n2 3\n6\n5\n");
    q.opts.format = "metis";
    q.method = NULL;
    for (int32_t workers = 1; workers <= WORKERS; workers++) check(&q, workers, "metis");
    write_text("5 2 011 1\n7 2 5\n7 1 5\n7 5 2\n7\n7 3 2");
    for (int32_t workers = 1; workers <= WORKERS; workers++) check(&q, workers, "metis with weights");
    write_text("1 2 2 3\n2 1 4\n3 1 4\n5 1 6\n6 1 5\n");
    q.opts.format = "adjacency";
    check(&q, 3, "adjacency");
}

/* --- results ------------------------------------------------------------------------------------------------------ */

typedef struct running {
    const pli_vertex_named *named;
    const char             *method;
    bool                    parts; /* each worker reads its own */
    double                  value[2 * M];
} running;

static plait_status run_named(plait_job *job, void *user) {
    running             *r = user;
    plait_comm          *comm = plait_job_comm(job);
    plait_error         *err = pli_comm_error(comm);
    const plait_near     near = r->named->run != NULL ? r->named->near : PLAIT_NEAR_IN;
    plait_edges         *edges = NULL;
    plait_vertex_cut    *cut = NULL;
    plait_vertex_program program;
    plait_vertex_report  report;
    plait_status         status;
    if (r->parts) status = pli_ingress_read(comm, path, NULL, near, r->method, &edges, &cut);
    else if ((status = plait_edges_read(path, NULL, &edges, err)) == PLAIT_OK)
        status = pli_cut_create(edges, near, r->method, plait_comm_workers(comm), &cut, err);
    pli_vertex_choice choice = { .edges = edges, .source = 3, .damping = 0.85, .tolerance = 1e-12 };
    void *const       values = plait_comm_rank(comm) == 0 ? r->value : NULL;
    plait_vertex_program_init(&program);
    program.name = r->named->name;
    program.user = &choice;
    if (status == PLAIT_OK && r->named->run != NULL) status = r->named->run(job, &choice, cut, 8, values, &report);
    else if (status == PLAIT_OK && (status = r->named->make(&choice, &program, err)) == PLAIT_OK)
        status = plait_vertex_run(job, edges, cut, &program, 8, values, &report);
    plait_vertex_cut_destroy(&cut);
    plait_edges_destroy(&edges);
    return status;
}

static void test_programs_give_the_same_bits(void **state) {
    static const char *const methods[] = { "range", "random", "grid" };
    int32_t                  n, seen = 0;
    const pli_vertex_named  *all = pli_vertex_all(&n);
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        write_graph(41 + 2 * seed, false, seed == 1, true);
        for (int32_t i = 0; i < n; i++) {
            if (!all[i].parts) continue;
            seen++;
            for (int m = 0; m < 3; m++) {
                const setting   s = { "ps", "bsp", methods[m], 4 };
                plait_comm_opts comm;
                plait_job_opts  job;
                plait_error     err;
                running         whole = { .named = &all[i], .method = methods[m] }, parts = whole;
                const bool whole_rows = pli_is(all[i].name, "labels") || pli_is(all[i].name, "coloring");
                if (m > 0 && (whole_rows || all[i].whole)) continue;
                options_of(&s, &comm, &job);
                parts.parts = true;
                if (plait_run(&comm, &job, run_named, &whole, &err) < 0) fail_msg("%s: %s", all[i].name, err.text);
                if (plait_run(&comm, &job, run_named, &parts, &err) < 0) fail_msg("%s: %s", all[i].name, err.text);
                if (memcmp(whole.value, parts.value, sizeof whole.value) != 0)
                    fail_msg("%s over %s: other values", all[i].name, methods[m]);
            }
        }
    }
    assert_int_equal(seen, 2 * 10);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static plait_status try_to_read(plait_comm *comm, void *user) {
    asked            *q = user;
    const int32_t     rank = plait_comm_rank(comm);
    const char       *of = rank == 1 && q->other != NULL ? q->other : path;
    plait_edges      *edges = NULL;
    plait_vertex_cut *cut = NULL;
    q->status[rank] = pli_ingress_read(comm, of, &q->opts, q->near, q->method, &edges, &cut);
    snprintf(q->text[rank], sizeof q->text[rank], "%s", pli_comm_error(comm)->text);
    plait_vertex_cut_destroy(&cut);
    plait_edges_destroy(&edges);
    return PLAIT_OK;
}

static void refused(asked *q, plait_status status, const char *word) {
    plait_comm_opts opts;
    plait_error     err;
    plait_comm_opts_init(&opts);
    opts.workers = 3;
    if (plait_comm_run(&opts, try_to_read, q, &err) < 0) fail_msg("%s", err.text);
    for (int w = 0; w < 3; w++) {
        assert_int_equal(q->status[w], status);
        if (strstr(q->text[w], word) == NULL) fail_msg("worker %d: '%s' instead of '%s'", w, q->text[w], word);
    }
}

static void test_mistakes_are_told_by_all(void **state) {
    asked q = { .near = PLAIT_NEAR_IN, .method = "range" };
    (void)state;
    plait_edges_opts_init(&q.opts);
    write_text("1 2\n2 3\n3 x\n");
    refused(&q, PLAIT_EFORMAT, ":3: expected a whole number");
    write_text("1 2\n2 18446744073709551616\n");
    refused(&q, PLAIT_EFORMAT, ":2: an id is below 2^64");
    write_text("# each worker reads a piece\n1 2\n2 3\n3 four\n4 5\n5 six\n6 7\n7 8\n8 9\n9 ten\n");
    refused(&q, PLAIT_EFORMAT, ":4: expected a whole number, 0 or more: 'four'");
    write_text("1 2 1\n2 3 1\n3 4 1\n4 5 1\n5 6\n6 7\n7 8 1\n");
    refused(&q, PLAIT_EFORMAT, ":5: expected a weight, as before");
    write_text("# nothing\n# nothing\n# nothing\n");
    refused(&q, PLAIT_EFORMAT, "it has no edge");
    write_text("%%MatrixMarket matrix coordinate pattern general\n4000000000 4000000000 1\n1 2\n");
    if (pli_memory_bytes() < 100000000000) refused(&q, PLAIT_ENOMEM, "GB"); /* else it may fit */
    write_text("%%MatrixMarket matrix coordinate pattern general\n9 9 4\n1 2\n2 3\n3 4\n");
    refused(&q, PLAIT_EFORMAT, "its head promises 4 entries, and it has 3");
    q.opts.format = "metis";
    write_text("4 3\n2\n1 3\n2\n");
    refused(&q, PLAIT_EFORMAT, "promises 4 vertices and 3 edges");
    write_text("3 2\n2\n1 3\n2\n% behind the end\n7\n");
    refused(&q, PLAIT_EFORMAT, ":6: expected the end of the file behind the last vertex");
    write_text("6 2\n2\n1 3\n\n\n9\n\n");
    refused(&q, PLAIT_EFORMAT, ":6: a neighbor is a number from 1 to 6, not 9");
    q.opts.format = NULL;
    write_text("1 2\n");
    static const char *const whole[] = { "oblivious", "hdrf" };
    for (int i = 0; i < 2; i++) q.method = whole[i], refused(&q, PLAIT_EREFUSED, whole[i]);
    assert_true(pli_ingress_takes(PLI_NEAR_SIMPLE, "range"));
    assert_true(pli_ingress_takes(PLAIT_NEAR_BOTH, NULL));
}

/* A folder of each machine may have a file of its own. */
static void test_pieces_are_of_one_file(void **state) {
    asked q = { .near = PLAIT_NEAR_IN, .method = "range" };
    char  other[sizeof path + 8];
    (void)state;
    plait_edges_opts_init(&q.opts);
    snprintf(other, sizeof other, "%s.other", path);
    q.other = other;
    for (int longer = 0; longer < 2; longer++) {
        write_text(longer ? "1 2\n2 3\n3 4\n4 5\n" : "1 2\n2 3\n3 9\n");
        assert_int_equal(rename(path, other), 0);
        write_text("1 2\n2 3\n3 4\n");
        refused(&q, PLAIT_EMISMATCH, "it is not the same file for all processes");
    }
    unlink(other);
}

/* --- entries on their way ----------------------------------------------------------------------------------------- */

enum { SENT = 500, LAST = WORKERS + 1 };

typedef struct sending {
    int32_t      me, fails; /* fails: worker that gives up half-way; -1: nobody; WORKERS: none has place for 77; LAST:
                             * worker 1 has none for what worker 0 sends in the last round */
    int64_t      came[WORKERS], next[2][WORKERS]; /* of rows in, and out: these have an order each */
    bool         in_order, has_77;
} sending;

/* Entry k of a worker has the row k; those for another part leave gaps. */
static bool take_one(void *user, const pli_row_entry *e, int32_t from) {
    sending *s = user;
    s->in_order = s->in_order && (int64_t)e->row >= s->next[e->out][from] && (int64_t)e->near == from &&
                  e->weight == (float)e->row && e->out == (e->row % 3 == 0);
    s->next[e->out][from] = (int64_t)e->row + 1;
    s->came[from]++;
    s->has_77 = s->has_77 || e->row == 77;
    if (s->fails == LAST) return s->me != 1 || from != 0 || e->row != SENT - 1;
    return s->fails != WORKERS || e->row != 77;
}

static int32_t part_of(int64_t k, int32_t from, int32_t workers) { return (int32_t)(k * k + from) % workers; }

static plait_status send_all(plait_comm *comm, void *user) {
    const int32_t workers = plait_comm_workers(comm), fails = *(int32_t *)user;
    sending       s = { .me = plait_comm_rank(comm), .fails = fails, .in_order = true };
    pli_spread    spread = { .comm = comm, .take = take_one, .user = &s, .weighted = true };
    plait_status  status = pli_spread_begin(&spread);
    const int64_t n = SENT / (1 + s.me); /* some are done long before others */
    for (int64_t k = 0; status == PLAIT_OK && k < n; k++) {
        const pli_row_entry e = { (uint32_t)k, (uint32_t)s.me, (float)k, (uint16_t)part_of(k, s.me, workers),
                                  k % 3 == 0 };
        if (k == n / 2 && s.me == fails) status = pli_fail(pli_comm_error(comm), PLAIT_EFORMAT, "gave up");
        else if (!pli_spread_put(&spread, &e)) break;
    }
    status = pli_spread_end(&spread, status);
    bool well = s.in_order;
    if (fails < 0) well = well && status == PLAIT_OK;
    if (fails >= 0 && fails < workers) well = well && status == (s.me == fails ? PLAIT_EFORMAT : PLAIT_EPEER);
    if (fails == WORKERS) well = well && status == (s.has_77 ? PLAIT_EFORMAT : PLAIT_EPEER);
    if (fails == LAST) well = well && status == (s.me == 1 ? PLAIT_EFORMAT : PLAIT_EPEER); /* nobody goes on alone */
    for (int32_t w = 0; fails < 0 && w < workers; w++) {
        int64_t wanted = 0;
        for (int64_t k = 0; k < SENT / (1 + w); k++) wanted += part_of(k, w, workers) == s.me;
        well = well && s.came[w] == wanted;
    }
    return well ? PLAIT_OK : pli_fail(pli_comm_error(comm), PLAIT_EINVAL, "%d workers, fails %d: status %d, order %d",
                                      (int)workers, (int)fails, (int)status, s.in_order);
}

static void test_each_entry_comes_once_and_in_order(void **state) {
    (void)state;
    for (int32_t workers = 2; workers <= WORKERS; workers++)
        for (int32_t fails = -1; fails <= LAST; fails++) {
            plait_comm_opts opts;
            plait_error     err;
            if (fails >= workers && fails < WORKERS) continue;
            plait_comm_opts_init(&opts);
            opts.workers = workers;
            if (plait_comm_run(&opts, send_all, &fails, &err) < 0) fail_msg("%s", err.text);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_part_is_the_same_without_the_rest),
                                        cmocka_unit_test(test_other_formats),
                                        cmocka_unit_test(test_programs_give_the_same_bits),
                                        cmocka_unit_test(test_mistakes_are_told_by_all),
                                        cmocka_unit_test(test_pieces_are_of_one_file),
                                        cmocka_unit_test(test_each_entry_comes_once_and_in_order) };
    snprintf(path, sizeof path, "ingress_%d.edges", (int)getpid());
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
