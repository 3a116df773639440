/* Cases of plait/table.h, plait/table_store.h. */
#include <string.h>

#include "api/nulls.h"

static const uint64_t keys[2] = { 0, 3 };
static const float    delta[4] = { 1, 2, 3, 4 };

static plait_status no_work(plait_job *job, void *user) {
    (void)job;
    (void)user;
    return PLAIT_OK;
}

static int rule_opts_init(fixture *f, int arg) {
    plait_rule_opts opts;
    (void)f;
    (plait_rule_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int job_opts_init(fixture *f, int arg) {
    plait_job_opts opts;
    (void)f;
    (plait_job_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int table_opts_init(fixture *f, int arg) {
    plait_table_opts opts;
    (void)f;
    (plait_table_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int run(fixture *f, int arg) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.transport = "threads";
    return plait_run(N(0, &comm), N(1, &job), N(2, no_work), N(3, f), N(4, &f->err));
}

/* Creation needs a communicator without a job. */
typedef struct creation {
    int          arg;
    plait_status status;
} creation;
static plait_status create_in(plait_comm *comm, void *user) {
    creation      *c = user;
    int            arg = c->arg;
    plait_job     *job = NULL;
    plait_job_opts opts;
    plait_job_opts_init(&opts);
    c->status = plait_job_create(N(0, comm), N(1, &opts), N(2, &job));
    if (c->status < 0 && arg > 0) return c->status;
    return plait_job_destroy(&job);
}
static int job_create(fixture *f, int arg) {
    creation        c = { .arg = arg };
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    plait_comm_run(&opts, create_in, &c, &f->err);
    return c.status;
}
static int job_destroy(fixture *f, int arg) {
    (void)f;
    plait_job *none = NULL;
    return plait_job_destroy(N(0, &none));
}
static int job_describe(fixture *f, int arg) {
    int64_t           n = 0;
    plait_table_part *parts = NULL;
    plait_status status = plait_job_describe(N(0, f->comm), UINT64_MAX / 2, N(2, &n), N(3, &parts), N(4, &f->err));
    plait_comm_free(parts);
    return status;
}
static int job_comm(fixture *f, int arg) { return NEUTRAL_IF(plait_job_comm(N(0, f->job)) == NULL); }
static int clock_now(fixture *f, int arg) { return NEUTRAL_IF(plait_job_clock_now(N(0, f->job)) == 0); }
static int job_clock(fixture *f, int arg) {
    (void)f; /* a real clock would be too early: tables are made before the first */
    return arg == 0 ? plait_job_clock(NULL) : PLAIT_OK;
}
static int holder(fixture *f, int arg) { return NEUTRAL_IF(plait_job_holder(N(0, f->job), 0, 1) == -1); }
static int inherits(fixture *f, int arg) { return NEUTRAL_IF(plait_job_inherits(N(0, f->job), 0, 1) == 0); }
static int table_holder(fixture *f, int arg) {
    return NEUTRAL_IF(plait_table_holder(N(0, f->table), 0, 1) == -1);
}
static int table_inherits(fixture *f, int arg) {
    return NEUTRAL_IF(plait_table_inherits(N(0, f->table), 0, 1) == 0);
}
static int clock_begin(fixture *f, int arg) {
    return arg >= 0 ? plait_job_clock_begin(N(0, f->job), N(1, &f->request)) : PLAIT_OK;
}
static int is_late(fixture *f, int arg) { return NEUTRAL_IF(plait_job_is_late(N(0, f->job)) == 0); }
static int dropped(fixture *f, int arg) { return NEUTRAL_IF(plait_job_dropped(N(0, f->job)) == 0); }
static int job_barrier(fixture *f, int arg) { return plait_job_barrier(N(0, f->job)); }
static int job_leave(fixture *f, int arg) {
    (void)f;
    return arg == 0 ? plait_job_leave(NULL) : PLAIT_OK;
}
static int job_join(fixture *f, int arg) {
    (void)f;
    return arg == 0 ? plait_job_join(NULL, 0) : PLAIT_OK;
}
static int wanted(fixture *f, int arg) { return NEUTRAL_IF(plait_job_wanted(N(0, f->job)) == 0); }
static int present(fixture *f, int arg) { return NEUTRAL_IF(plait_job_present(N(0, f->job)) == 0); }
static int moved(fixture *f, int arg) { return NEUTRAL_IF(plait_job_moved(N(0, f->job)) == 0); }
static int moved_bytes(fixture *f, int arg) { return NEUTRAL_IF(plait_job_moved_bytes(N(0, f->job)) == 0); }
static int table_create(fixture *f, int arg) {
    plait_table     *table = NULL;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "further";
    opts.rows = 2;
    return plait_table_create(N(0, f->job), N(1, &opts), N(2, &table));
}
static int name(fixture *f, int arg) { return NEUTRAL_IF(strcmp(plait_table_name(N(0, f->table)), "") == 0); }
static int rows(fixture *f, int arg) { return NEUTRAL_IF(plait_table_rows(N(0, f->table)) == 0); }
static int cols(fixture *f, int arg) { return NEUTRAL_IF(plait_table_cols(N(0, f->table)) == 0); }
static int topology(fixture *f, int arg) { return NEUTRAL_IF(strcmp(plait_table_topology(N(0, f->table)), "") == 0); }
static int consistency(fixture *f, int arg) {
    return NEUTRAL_IF(strcmp(plait_table_consistency(N(0, f->table)), "") == 0);
}
static int get(fixture *f, int arg) {
    float values[4];
    return plait_table_get(N(0, f->table), 2, N(2, keys), N(3, values));
}
static int ended(fixture *f, plait_status status) { return status < 0 ? status : plait_request_wait(&f->request); }
static int get_begin(fixture *f, int arg) {
    float values[4];
    return ended(f, plait_table_get_begin(N(0, f->table), 2, N(2, keys), N(3, values), N(4, &f->request)));
}
static int get_range(fixture *f, int arg) {
    float values[4];
    return plait_table_get_range(N(0, f->table), 1, 2, N(3, values));
}
static int get_range_begin(fixture *f, int arg) {
    float values[4];
    return ended(f, plait_table_get_range_begin(N(0, f->table), 1, 2, N(3, values), N(4, &f->request)));
}
static int read_rows(fixture *f, int arg) {
    const void *values;
    return plait_table_read(N(0, f->table), 1, 2, N(3, &values));
}
static int inc(fixture *f, int arg) { return plait_table_inc(N(0, f->table), 2, N(2, keys), N(3, delta), 0); }
static int inc_begin(fixture *f, int arg) {
    return ended(f, plait_table_inc_begin(N(0, f->table), 2, N(2, keys), N(3, delta), 0, N(5, &f->request)));
}
static int inc_range(fixture *f, int arg) { return plait_table_inc_range(N(0, f->table), 1, 2, N(3, delta), 0); }
static int inc_range_begin(fixture *f, int arg) {
    return ended(f, plait_table_inc_range_begin(N(0, f->table), 1, 2, N(3, delta), 0, N(5, &f->request)));
}
static int zero(fixture *f, int arg) {
    (void)f;
    return arg == 0 ? plait_table_zero(NULL) : PLAIT_OK;
}

static int drop(fixture *f, int arg) {
    plait_table *none = NULL;
    (void)f;
    return NEUTRAL_IF(plait_table_drop(N(0, &none)) == PLAIT_OK);
}

static int flush(fixture *f, int arg) {
    (void)f;
    return arg == 0 ? plait_table_flush(NULL) : PLAIT_OK;
}
static int call(fixture *f, int arg) {
    const double       args[1] = { 2 };
    double             answer[1];
    plait_table *const tables[1] = { f->table };
    return plait_table_call(N(0, tables), 1, N(2, "sum"), N(3, args), sizeof args, N(5, answer), sizeof answer);
}
static int call_range(fixture *f, int arg) {
    const double       args[1] = { 2 };
    double             answer[1];
    plait_table *const tables[1] = { f->table };
    return plait_table_call_range(N(0, tables), 1, 0, 2, N(4, "sum"), N(5, args), sizeof args, N(7, answer),
                                  sizeof answer);
}
static int dump(fixture *f, int arg) {
    int64_t      n;
    uint64_t    *held = NULL;
    void        *values = NULL;
    plait_status status = plait_table_dump(N(0, f->table), N(1, &n), N(2, &held), N(3, &values));
    plait_comm_free(held);
    plait_comm_free(values);
    return status;
}
static int job_at(fixture *f, int arg) {
    return arg == 1 ? NEUTRAL_IF(plait_job_at(f->job, NULL, 1) == f->job)
                    : NEUTRAL_IF(plait_job_at(N(0, f->job), "here.c", 1) == NULL);
}
static int table_at(fixture *f, int arg) {
    return arg == 1 ? NEUTRAL_IF(plait_table_at(f->table, NULL, 1) == f->table)
                    : NEUTRAL_IF(plait_table_at(N(0, f->table), "here.c", 1) == NULL);
}

/* --- the store of a graph --------------------------------------------------------------------------------------- */

static int store_opts_init(fixture *f, int arg) {
    plait_table_store_opts opts;
    (void)f;
    (plait_table_store_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int store_create(fixture *f, int arg) {
    plait_table_store_opts opts;
    plait_table_store     *store = NULL;
    const float            first[2] = { 0, 0 };
    plait_graph           *graph = fresh_graph(f);
    plait_graph_variable(graph, arg == 2 ? "without" : "with", plait_tensor_of(PLAIT_F32, plait_shape_1(2), first));
    plait_table_store_opts_init(&opts);
    plait_status status = plait_table_store_create(N(0, f->job), N(1, graph), N(2, &opts), N(3, &store));
    plait_table_store_destroy(&store);
    return status;
}
static int store_destroy(fixture *f, int arg) {
    plait_table_store *none = NULL;
    (void)f;
    plait_table_store_destroy(N(0, &none));
    return NEUTRAL;
}
static int store_calls(fixture *f, int arg) { return NEUTRAL_IF(plait_table_store_calls(N(0, f->store)) == NULL); }
static int store_examples(fixture *f, int arg) {
    plait_table_store_examples(N(0, f->store), 0);
    return NEUTRAL;
}
static int store_table(fixture *f, int arg) { return NEUTRAL_IF(plait_table_store_table(N(0, f->store), 0) == NULL); }

const null_case table_cases[] = {
    { "rule_opts_init", rule_opts_init, NULL },
    { "job_opts_init", job_opts_init, NULL },
    { "table_opts_init", table_opts_init, NULL },
    { "run", run, "comm_opts job_opts" },
    { "job_create", job_create, "opts" },
    { "job_destroy", job_destroy, "job" },
    { "job_describe", job_describe, NULL },
    { "job_comm", job_comm, NULL },
    { "job_clock_now", clock_now, NULL },
    { "job_clock", job_clock, NULL },
    { "job_holder", holder, NULL },
    { "table_holder", table_holder, NULL },
    { "table_inherits", table_inherits, NULL },
    { "job_inherits", inherits, NULL },
    { "job_clock_begin", clock_begin, NULL },
    { "job_is_late", is_late, NULL },
    { "job_dropped", dropped, NULL },
    { "job_barrier", job_barrier, NULL },
    { "job_leave", job_leave, NULL },
    { "job_join", job_join, NULL },
    { "job_wanted", wanted, NULL },
    { "job_present", present, NULL },
    { "job_moved", moved, NULL },
    { "job_moved_bytes", moved_bytes, NULL },
    { "table_create", table_create, NULL },
    { "table_name", name, NULL },
    { "table_rows", rows, NULL },
    { "table_cols", cols, NULL },
    { "table_topology", topology, NULL },
    { "table_consistency", consistency, NULL },
    { "table_get", get, NULL },
    { "table_get_begin", get_begin, NULL },
    { "table_get_range", get_range, NULL },
    { "table_get_range_begin", get_range_begin, NULL },
    { "table_read", read_rows, NULL },
    { "table_inc", inc, NULL },
    { "table_inc_begin", inc_begin, NULL },
    { "table_inc_range", inc_range, NULL },
    { "table_inc_range_begin", inc_range_begin, NULL },
    { "table_flush", flush, NULL },
    { "table_zero", zero, NULL },
    { "table_drop", drop, "table" },
    { "table_call", call, NULL },
    { "table_call_range", call_range, NULL },
    { "table_dump", dump, NULL },
    { "job_at", job_at, NULL },
    { "table_at", table_at, NULL },
    { "table_store_opts_init", store_opts_init, NULL },
    { "table_store_create", store_create, "opts" },
    { "table_store_destroy", store_destroy, "store" },
    { "table_store_calls", store_calls, NULL },
    { "table_store_examples", store_examples, NULL },
    { "table_store_table", store_table, NULL },
    { NULL, NULL, NULL },
};
