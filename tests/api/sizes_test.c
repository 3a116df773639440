/* Option structs of another version (base/sized.h), for every public struct that begins with its size: today's, the
 * shortest that a caller can have been compiled for, one that is too short, and a longer one of a newer caller. A
 * struct without a case here fails. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/nulls.h"
#include "arrow_table.h"

enum { MORE = 32, GARBAGE = 0xa5 };

/* The size up to this field: a caller's that was compiled when it was the last. */
#define UP_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* One struct, and a public call that takes it: OK with the defaults and what `set` puts into them. */
typedef struct sized {
    const char *name; /* without "plait_" */
    size_t      bytes, least;
    void (*init)(void *opts, size_t size);
    plait_status (*call)(fixture *f, void *opts);
} sized;

#define INIT(name)                                                                                                     \
    static void name##_fill(void *opts, size_t size) { plait_##name##_init_sized(opts, size); }
INIT(comm_opts) INIT(job_opts) INIT(table_opts) INIT(data_opts) INIT(train_opts) INIT(place_opts)
INIT(schedule_opts) INIT(graph_file_opts) INIT(table_store_opts) INIT(session_opts) INIT(checkpoint_opts) INIT(cut)
INIT(memory_opts) INIT(arrow_opts) INIT(edges_opts) INIT(vertex_program) INIT(vertex_opts)

/* --- the calls ------------------------------------------------------------------------------------------------ */

static plait_status nothing(plait_comm *comm, void *user) { return (void)comm, (void)user, PLAIT_OK; }
static plait_status run(fixture *f, void *opts) {
    plait_comm_opts *o = opts;
    o->transport = "threads";
    return plait_comm_run(o, nothing, NULL, &f->err);
}

static plait_status work(plait_job *job, void *user) { return (void)job, (void)user, PLAIT_OK; }
static plait_status run_job(fixture *f, void *opts) { return plait_run(NULL, opts, work, NULL, &f->err); }

static plait_status told(fixture *f, plait_status status) {
    if (status < 0) f->err = *plait_comm_error(f->comm);
    return status;
}

static plait_status make_table(fixture *f, void *opts) {
    static int        number;
    char              name[32];
    plait_table      *table;
    plait_table_opts *o = opts;
    snprintf(name, sizeof name, "t%d", number++);
    o->name = name;
    o->rows = 3;
    return told(f, plait_table_create(f->job, o, &table));
}

static plait_status read_data(fixture *f, void *opts) {
    plait_data_opts *o = opts;
    plait_data      *data = NULL;
    const char      *path = f->out_path;
    o->paths = &path;
    o->n_paths = 1;
    plait_status status = plait_data_read(o, &data, &f->err);
    plait_data_destroy(&data);
    return status;
}

static plait_status take_memory(fixture *f, void *opts) {
    static const float x[2] = { 1, 2 };
    plait_memory_opts *o = opts;
    plait_data        *data = NULL;
    o->layout = PLAIT_DENSE_ROWS;
    o->rows = 2;
    o->features = 1;
    o->values = x;
    plait_status status = plait_data_from_memory(o, &data, &f->err);
    plait_data_destroy(&data);
    return status;
}

static plait_status take_arrow(fixture *f, void *opts) {
    plait_arrow_opts *o = opts;
    arrow_table       table;
    plait_data       *data = NULL;
    arrow_table_make(&table);
    o->keep_missing = 1;
    plait_status status = plait_data_from_arrow(&table.stream, o, &data, &f->err);
    plait_data_destroy(&data);
    return status;
}

static plait_status take_edges(fixture *f, void *opts) {
    static const uint64_t from[2] = { 1, 2 }, to[2] = { 2, 1 };
    plait_edges          *edges = NULL;
    plait_status          status = plait_edges_from_memory(2, from, to, NULL, opts, &edges, &f->err);
    plait_edges_destroy(&edges);
    return status;
}

static plait_status run_vertices_with(fixture *f, void *opts) {
    static const uint64_t from[2] = { 1, 2 }, to[2] = { 2, 1 };
    plait_vertex_program  p;
    plait_edges          *edges = NULL;
    plait_vertex_cut     *cut = NULL;
    plait_vertex_program_init(&p);
    p.name = "with";
    p.combine = "max";
    plait_status status = plait_edges_from_memory(2, from, to, NULL, NULL, &edges, &f->err);
    if (status == PLAIT_OK) status = plait_vertex_cut_create(edges, PLAIT_NEAR_IN, NULL, 1, &cut, &f->err);
    if (status == PLAIT_OK) status = told(f, plait_vertex_run_with(f->job, edges, cut, &p, opts, NULL, NULL));
    plait_vertex_cut_destroy(&cut);
    plait_edges_destroy(&edges);
    return status;
}

static plait_status run_vertices(fixture *f, void *opts) {
    static const uint64_t from[2] = { 1, 2 }, to[2] = { 2, 1 };
    static int            runs; /* each with tables of its own names */
    plait_vertex_program *p = opts;
    plait_edges          *edges = NULL;
    plait_vertex_cut     *cut = NULL;
    char                  name[16];
    snprintf(name, sizeof name, "ring%d", runs++);
    p->name = name;
    p->combine = "max";
    plait_status status = plait_edges_from_memory(2, from, to, NULL, NULL, &edges, &f->err);
    if (status == PLAIT_OK) status = plait_vertex_cut_create(edges, PLAIT_NEAR_IN, NULL, 1, &cut, &f->err);
    if (status == PLAIT_OK) status = told(f, plait_vertex_run(f->job, edges, cut, p, 0, NULL, NULL));
    plait_vertex_cut_destroy(&cut);
    plait_edges_destroy(&edges);
    return status;
}

static plait_status train_in(plait_comm *comm, void *user) {
    plait_model *model = NULL;
    plait_status status = plait_train(comm, user, NULL, &model);
    plait_model_destroy(&model);
    return status;
}
static plait_status train(fixture *f, void *opts) {
    plait_train_opts *o = opts;
    o->memory = f->data;
    o->epochs = 1;
    return plait_comm_run(NULL, train_in, o, &f->err);
}
/* Files of an older caller inside the options of a training. */
static plait_status train_file(fixture *f, void *opts) {
    plait_train_opts o;
    const char      *path = f->out_path;
    ((plait_data_opts *)opts)->paths = &path;
    ((plait_data_opts *)opts)->n_paths = 1;
    plait_train_opts_init(&o);
    o.data = opts;
    o.test = opts;
    o.epochs = 1;
    return plait_comm_run(NULL, train_in, &o, &f->err);
}

static plait_status place(fixture *f, void *opts) {
    plait_place_opts *o = opts;
    plait_placement  *p = NULL;
    o->fetches = &f->v;
    o->n_fetches = 1;
    plait_status status = plait_placement_create(f->graph, o, &p, &f->err);
    plait_placement_destroy(&p);
    return status;
}

static plait_status push(void *user, const plait_turn *turn) { return (void)user, (void)turn, PLAIT_OK; }
static plait_status make_schedule(fixture *f, void *opts) {
    plait_schedule_opts *o = opts;
    plait_schedule      *schedule = NULL;
    char                 name[32];
    static int           number;
    snprintf(name, sizeof name, "s%d", number++);
    o->name = name;
    o->variables = 3;
    o->push = push;
    plait_status status = told(f, plait_schedule_create(f->job, o, &schedule));
    plait_schedule_destroy(&schedule);
    return status;
}

static plait_status parse(fixture *f, void *opts) {
    static const char text[] = "{\"plait_graph\": 1, \"nodes\": []}";
    plait_graph      *graph = NULL;
    plait_status      status = plait_graph_parse("memory", text, sizeof text - 1, opts, &graph, &f->err);
    plait_graph_destroy(&graph);
    return status;
}

static plait_status make_store(fixture *f, void *opts) {
    plait_graph       *graph = NULL;
    plait_table_store *store = NULL;
    plait_status       status = plait_graph_create(NULL, 0, &graph, &f->err); /* none of its variables is taken */
    if (status == PLAIT_OK) status = told(f, plait_table_store_create(f->job, graph, opts, &store));
    plait_table_store_destroy(&store);
    plait_graph_destroy(&graph);
    return status;
}

static plait_status make_session(fixture *f, void *opts) {
    plait_session *session = NULL;
    plait_status   status = plait_session_create(f->graph, opts, &session, &f->err);
    plait_session_destroy(&session);
    return status;
}
static plait_status make_part(fixture *f, void *cut) {
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.cut = cut;
    return make_session(f, &opts);
}

static plait_status save(fixture *f, void *opts) {
    plait_checkpoint_opts *o = opts;
    o->dir = f->ckpt;
    return told(f, plait_checkpoint_save(f->job, &f->table, 1, o));
}

#define ROW(name, last, call) { #name, sizeof(plait_##name), UP_TO(plait_##name, last), name##_fill, call }
static const sized all[] = {
    ROW(comm_opts, log, run), ROW(job_opts, spares, run_job), ROW(table_opts, initial, make_table),
    ROW(data_opts, log, read_data), ROW(data_opts, log, train_file), ROW(train_opts, names_bytes, train),
    ROW(place_opts, seed, place), ROW(schedule_opts, user, make_schedule), ROW(graph_file_opts, values_bytes, parse),
    ROW(table_store_opts, user, make_store), ROW(session_opts, trace_user, make_session), ROW(cut, channel, make_part),
    ROW(checkpoint_opts, keep, save),
    ROW(memory_opts, lend, take_memory), ROW(arrow_opts, n_columns, take_arrow),
    ROW(edges_opts, drop_doubles, take_edges), ROW(vertex_program, user, run_vertices),
    ROW(vertex_opts, order, run_vertices_with),
};
enum { ALL = sizeof all / sizeof *all };

/* --- the tests -------------------------------------------------------------------------------------------------- */

static int bad;

static void expect(fixture *f, const sized *s, size_t size, plait_status wanted, plait_status got) {
    const int named = wanted >= 0 || strstr(f->err.text, s->name) != NULL;
    if (got == wanted && named) return;
    print_error("plait_%s of %zu bytes: expected %s, but got %s: %s\n", s->name, size, plait_status_text(wanted),
                plait_status_text(got), f->err.text);
    bad++;
}

/* Calls with a struct of this size, behind which there is something else. */
static void call(fixture *f, const sized *s, size_t size, plait_status wanted) {
    unsigned char *memory = malloc(s->bytes + 2 * MORE);
    assert_non_null(memory);
    memset(memory, GARBAGE, s->bytes + 2 * MORE);
    s->init(memory, size);
    for (size_t i = size; i < s->bytes + 2 * MORE; i++)
        if (memory[i] != GARBAGE) bad++, print_error("plait_%s_init writes behind %zu bytes\n", s->name, size);
    f->err = (plait_error){ .rank = -1 };
    expect(f, s, size, wanted, s->call(f, memory));
    if (size > s->bytes) {
        s->init(memory, size);
        memory[size - 1] = 1;
        expect(f, s, size, PLAIT_EVERSION, s->call(f, memory));
    }
    free(memory);
}

/* The size says less than what the first version had, or what no version will have. */
static void call_unfilled(fixture *f, const sized *s, size_t size) {
    unsigned char *memory = calloc(1, s->bytes + MORE);
    assert_non_null(memory);
    s->init(memory, s->bytes);
    memcpy(memory, &size, sizeof size);
    f->err = (plait_error){ .rank = -1 };
    expect(f, s, size, PLAIT_EINVAL, s->call(f, memory));
    free(memory);
}

static void call_all(fixture *f, void *user) {
    FILE *file = fopen(f->out_path, "w");
    assert_non_null(file);
    for (int i = 0; i < 40; i++) fprintf(file, "%d 1:%d 2:%d\n", i % 2, 1 + i % 2, 1 + i % 3);
    assert_int_equal(fclose(file), 0);
    (void)user;
    for (int i = 0; i < ALL; i++) {
        call(f, &all[i], all[i].bytes, PLAIT_OK);
        call(f, &all[i], all[i].least, PLAIT_OK);
        call(f, &all[i], all[i].bytes + MORE, PLAIT_OK);
        call_unfilled(f, &all[i], 0);
        call_unfilled(f, &all[i], all[i].least - 1);
        call_unfilled(f, &all[i], SIZE_MAX);
    }
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void test_structs_of_other_versions(void **state) {
    (void)state;
    char        dir[] = "/tmp/plait-sizes-XXXXXX";
    plait_error err = { 0 };
    assert_non_null(mkdtemp(dir));
    plait_status status = with_fixture(dir, call_all, NULL, &err);
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    if (status < 0) print_error("%s\n", err.text);
    assert_int_equal(status, PLAIT_OK);
    assert_int_equal(bad, 0);
}

static void test_every_struct_has_a_case(void **state) {
    (void)state;
    static const char end[] = "_init_sized";
    char              folder[1024];
    int32_t           n, missing = 0, found = 0;
    assert_non_null(getenv("PLAIT_SOURCE_DIR"));
    snprintf(folder, sizeof folder, "%s/include/plait", getenv("PLAIT_SOURCE_DIR"));
    declared *functions = read_headers(folder, &n);
    assert_non_null(functions);
    for (int32_t i = 0; i < n; i++) {
        char *at = strstr(functions[i].function, end);
        int   known = 0;
        if (at == NULL || at[sizeof end - 1] != '\0') continue;
        *at = '\0';
        for (int k = 0; k < ALL; k++) known |= strcmp(all[k].name, functions[i].function) == 0;
        if (!known) missing++, print_error("plait_%s has no case\n", functions[i].function);
        found++;
    }
    free(functions);
    assert_true(found > 0);
    assert_int_equal(missing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_struct_has_a_case),
        cmocka_unit_test(test_structs_of_other_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
