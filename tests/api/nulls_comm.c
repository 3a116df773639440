/* Cases of plait/comm.h, plait/tensor.h, plait/op.h. */
#include <string.h>

#include "api/nulls.h"

static plait_status no_body(plait_comm *comm, void *user) {
    (void)comm;
    (void)user;
    return PLAIT_OK;
}

static int opts_init(fixture *f, int arg) {
    plait_comm_opts opts;
    (void)f;
    (plait_comm_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int run(fixture *f, int arg) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    return plait_comm_run(N(0, &opts), N(1, no_body), N(2, f), N(3, &f->err));
}
static int rank(fixture *f, int arg) { return NEUTRAL_IF(plait_comm_rank(N(0, f->comm)) == -1); }
static int size(fixture *f, int arg) { return NEUTRAL_IF(plait_comm_size(N(0, f->comm)) == 0); }
static int workers(fixture *f, int arg) { return NEUTRAL_IF(plait_comm_workers(N(0, f->comm)) == 0); }
static int servers(fixture *f, int arg) { return NEUTRAL_IF(plait_comm_servers(N(0, f->comm)) == 0); }
static int threads(fixture *f, int arg) { return NEUTRAL_IF(plait_comm_threads(N(0, f->comm)) == 0); }
static int transport(fixture *f, int arg) { return NEUTRAL_IF(strcmp(plait_comm_transport(N(0, f->comm)), "") == 0); }
static int host(fixture *f, int arg) { return NEUTRAL_IF(strcmp(plait_comm_host(N(0, f->comm)), "") == 0); }
static int life(fixture *f, int arg) { return NEUTRAL_IF(plait_comm_life(N(0, f->comm)) == 0); }
static int one_process(fixture *f, int arg) { return NEUTRAL_IF(plait_comm_one_process(N(0, f->comm)) == 0); }
static int error(fixture *f, int arg) {
    const plait_error *of_null = plait_comm_error(N(0, f->comm));
    return NEUTRAL_IF(of_null->code == PLAIT_EINVAL && strstr(of_null->text, "comm") != NULL);
}
static int bytes_sent(fixture *f, int arg) { return NEUTRAL_IF(plait_comm_bytes_sent(N(0, f->comm)) == 0); }
static int send(fixture *f, int arg) { return plait_comm_send(N(0, f->comm), 0, 7, N(3, "abc"), 3); }
static int recv(fixture *f, int arg) {
    char    data[3];
    size_t  bytes;
    int32_t from;
    plait_comm_send(f->comm, 0, 8, "abc", 3);
    return plait_comm_recv(N(0, f->comm), 0, 8, N(3, data), sizeof data, N(5, &bytes), N(6, &from));
}
static int barrier(fixture *f, int arg) { return plait_comm_barrier(N(0, f->comm)); }
static int allreduce(fixture *f, int arg) {
    float buf[2] = { 1, 2 };
    return plait_comm_allreduce(N(0, f->comm), N(1, buf), 2, PLAIT_F32, PLAIT_SUM);
}
static int allreduce_begin(fixture *f, int arg) {
    float        buf[2] = { 1, 2 };
    plait_status status =
        plait_comm_allreduce_begin(N(0, f->comm), N(1, buf), 2, PLAIT_F32, PLAIT_SUM, N(5, &f->request));
    return status < 0 ? status : plait_request_wait(&f->request);
}
static int slice(fixture *f, int arg) {
    int64_t first, count;
    plait_comm_slice(N(0, f->comm), 9, 0, N(3, &first), N(4, &count));
    return NEUTRAL;
}
static int reduce_scatter(fixture *f, int arg) {
    float buf[2] = { 1, 2 };
    return plait_comm_reduce_scatter(N(0, f->comm), N(1, buf), 2, PLAIT_F32, PLAIT_SUM);
}
static int reduce_scatter_begin(fixture *f, int arg) {
    float        buf[2] = { 1, 2 };
    plait_status status =
        plait_comm_reduce_scatter_begin(N(0, f->comm), N(1, buf), 2, PLAIT_F32, PLAIT_SUM, N(5, &f->request));
    return status < 0 ? status : plait_request_wait(&f->request);
}
static int broadcast(fixture *f, int arg) {
    char buf[3] = "ab";
    return plait_comm_broadcast(N(0, f->comm), N(1, buf), sizeof buf, 0);
}
static int allgather(fixture *f, int arg) {
    char all[3];
    return plait_comm_allgather(N(0, f->comm), N(1, "ab"), 3, N(3, all));
}
static int allgatherv(fixture *f, int arg) {
    size_t       sizes[1];
    void        *all = NULL;
    plait_status status = plait_comm_allgatherv(N(0, f->comm), N(1, "ab"), 3, N(3, sizes), N(4, &all));
    plait_comm_free(all);
    return status;
}
static int allgatherv_begin(fixture *f, int arg) {
    size_t       sizes[1];
    void        *all = NULL;
    plait_status status =
        plait_comm_allgatherv_begin(N(0, f->comm), N(1, "ab"), 3, N(3, sizes), N(4, &all), N(5, &f->request));
    if (status >= 0) status = plait_request_wait(&f->request);
    plait_comm_free(all);
    return status;
}
static int free_memory(fixture *f, int arg) {
    (void)f;
    plait_comm_free(N(0, NULL));
    return NEUTRAL;
}
static int request_wait(fixture *f, int arg) { return plait_request_wait(N(0, &f->request)); }
static int waits(fixture *f, int arg) {
    char text[200];
    return NEUTRAL_IF(plait_comm_waits(N(0, f->comm), N(1, text), sizeof text) == 0);
}
static int doctor(fixture *f, int arg) {
    char text[200];
    return NEUTRAL_IF(plait_comm_doctor(N(0, f->comm), 1000000, N(2, text), sizeof text) == 0);
}
static int at(fixture *f, int arg) {
    return arg == 1 ? NEUTRAL_IF(plait_comm_at(f->comm, NULL, 1) == f->comm)
                    : NEUTRAL_IF(plait_comm_at(N(0, f->comm), "here.c", 1) == NULL);
}
static int shape_elements(fixture *f, int arg) {
    plait_shape shape = plait_shape_1(2);
    (void)f;
    return NEUTRAL_IF(plait_shape_elements(N(0, &shape)) == -1);
}
static int call_fail(fixture *f, int arg) {
    plait_call call = { .error = &f->err };
    return NEUTRAL_IF(plait_call_fail(N(0, &call), PLAIT_ESHAPE, N(2, "%d"), 1) == PLAIT_ESHAPE);
}

/* --- groups: one of the single worker ------------------------------------------------------------------------- */

static const int32_t only[] = { 0 };

static plait_group *group_of(fixture *f) {
    plait_group *group = NULL;
    plait_group_create(f->comm, "one", 1, only, &group);
    return group;
}
static int group_create(fixture *f, int arg) {
    plait_group *group = NULL;
    return plait_group_create(N(0, f->comm), N(1, "one"), 1, N(3, only), N(4, &group));
}
static int group_destroy(fixture *f, int arg) {
    plait_group *group = group_of(f);
    return plait_group_destroy(N(0, &group));
}
static int group_name(fixture *f, int arg) { return NEUTRAL_IF(strcmp(plait_group_name(N(0, group_of(f))), "") == 0); }
static int group_size(fixture *f, int arg) { return NEUTRAL_IF(plait_group_size(N(0, group_of(f))) == 0); }
static int group_member(fixture *f, int arg) { return NEUTRAL_IF(plait_group_member(N(0, group_of(f)), 0) == -1); }
static int group_rank(fixture *f, int arg) { return NEUTRAL_IF(plait_group_rank(N(0, group_of(f))) == -1); }
static int group_at(fixture *f, int arg) {
    return arg == 1 ? NEUTRAL_IF(plait_group_at(group_of(f), NULL, 1) != NULL)
                    : NEUTRAL_IF(plait_group_at(N(0, group_of(f)), "here.c", 1) == NULL);
}
static int group_barrier(fixture *f, int arg) { return plait_group_barrier(N(0, group_of(f))); }
static int group_allreduce(fixture *f, int arg) {
    float buf[2] = { 1, 2 };
    return plait_group_allreduce(N(0, group_of(f)), N(1, buf), 2, PLAIT_F32, PLAIT_SUM);
}
static int group_allreduce_begin(fixture *f, int arg) {
    float        buf[2] = { 1, 2 };
    plait_status status =
        plait_group_allreduce_begin(N(0, group_of(f)), N(1, buf), 2, PLAIT_F32, PLAIT_SUM, N(5, &f->request));
    return status < 0 ? status : plait_request_wait(&f->request);
}
static int group_slice(fixture *f, int arg) {
    int64_t first, count;
    plait_group_slice(N(0, group_of(f)), 9, 0, N(3, &first), N(4, &count));
    return NEUTRAL;
}
static int group_reduce_scatter(fixture *f, int arg) {
    float buf[2] = { 1, 2 };
    return plait_group_reduce_scatter(N(0, group_of(f)), N(1, buf), 2, PLAIT_F32, PLAIT_SUM);
}
static int group_reduce_scatter_begin(fixture *f, int arg) {
    float        buf[2] = { 1, 2 };
    plait_status status =
        plait_group_reduce_scatter_begin(N(0, group_of(f)), N(1, buf), 2, PLAIT_F32, PLAIT_SUM, N(5, &f->request));
    return status < 0 ? status : plait_request_wait(&f->request);
}
static int group_broadcast(fixture *f, int arg) {
    char buf[3] = "ab";
    return plait_group_broadcast(N(0, group_of(f)), N(1, buf), sizeof buf, 0);
}
static int group_allgather(fixture *f, int arg) {
    char all[3];
    return plait_group_allgather(N(0, group_of(f)), N(1, "ab"), 3, N(3, all));
}
static int group_allgatherv(fixture *f, int arg) {
    size_t       sizes[1];
    void        *all = NULL;
    plait_status status = plait_group_allgatherv(N(0, group_of(f)), N(1, "ab"), 3, N(3, sizes), N(4, &all));
    plait_comm_free(all);
    return status;
}
static int group_allgatherv_begin(fixture *f, int arg) {
    size_t       sizes[1];
    void        *all = NULL;
    plait_status status = plait_group_allgatherv_begin(N(0, group_of(f)), N(1, "ab"), 3, N(3, sizes), N(4, &all),
                                                       N(5, &f->request));
    if (status >= 0) status = plait_request_wait(&f->request);
    plait_comm_free(all);
    return status;
}

/* --- a rank without a body -------------------------------------------------------------------------------------- */

static int open_comm(fixture *f, int arg) {
    plait_comm     *comm = NULL;
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    plait_status status = plait_comm_open(N(0, &opts), N(1, &comm), N(2, &f->err));
    plait_comm_close(&comm, PLAIT_OK, NULL);
    return status;
}
static int close_comm(fixture *f, int arg) {
    plait_comm  *comm = NULL;
    plait_status status = plait_comm_open(NULL, &comm, &f->err);
    if (status >= 0) status = plait_comm_close(N(0, &comm), PLAIT_OK, N(2, &f->err));
    plait_comm_close(&comm, PLAIT_OK, NULL);
    return status;
}

/* --- event logs: each of a run of its own ----------------------------------------------------------------------- */

static int events_create(fixture *f, int arg) {
    plait_events *events = NULL;
    plait_status  status = plait_events_create(N(0, f->out_path), N(1, &events), N(2, &f->err));
    plait_events_close(&events, NULL);
    return status;
}

typedef struct to_record {
    plait_events *events;
    int           arg;
    plait_status  status;
} to_record;

static plait_status record_in(plait_comm *comm, void *user) {
    to_record *r = user;
    const int  arg = r->arg;
    r->status = plait_events_record(N(0, comm), N(1, r->events));
    return arg != 0 ? r->status : PLAIT_OK; /* without comm there is no text */
}
static int events_record(fixture *f, int arg) {
    plait_comm_opts opts;
    to_record       r = { .arg = arg };
    plait_comm_opts_init(&opts);
    plait_status status = plait_events_create(f->out_path, &r.events, &f->err);
    if (status >= 0) status = plait_comm_run(&opts, record_in, &r, &f->err);
    plait_events_close(&r.events, NULL);
    return status < 0 ? status : r.status;
}

static int events_close(fixture *f, int arg) {
    plait_events *events = NULL;
    plait_events_create(f->out_path, &events, &f->err);
    plait_status status = plait_events_close(N(0, &events), N(1, &f->err));
    plait_events_close(&events, NULL);
    return status;
}

const null_case comm_cases[] = {
    { "comm_opts_init", opts_init, NULL },
    { "comm_run", run, "opts" },
    { "comm_open", open_comm, "opts" },
    { "comm_close", close_comm, "comm" },
    { "comm_rank", rank, NULL },
    { "comm_size", size, NULL },
    { "comm_workers", workers, NULL },
    { "comm_servers", servers, NULL },
    { "comm_threads", threads, NULL },
    { "comm_transport", transport, NULL },
    { "comm_host", host, NULL },
    { "comm_life", life, NULL },
    { "comm_one_process", one_process, NULL },
    { "comm_error", error, NULL },
    { "comm_bytes_sent", bytes_sent, NULL },
    { "comm_send", send, NULL },
    { "comm_recv", recv, "bytes_out from_out" },
    { "comm_barrier", barrier, NULL },
    { "comm_allreduce", allreduce, NULL },
    { "comm_allreduce_begin", allreduce_begin, NULL },
    { "comm_slice", slice, NULL },
    { "comm_reduce_scatter", reduce_scatter, NULL },
    { "comm_reduce_scatter_begin", reduce_scatter_begin, NULL },
    { "comm_broadcast", broadcast, NULL },
    { "comm_allgather", allgather, NULL },
    { "comm_allgatherv", allgatherv, NULL },
    { "comm_allgatherv_begin", allgatherv_begin, NULL },
    { "comm_free", free_memory, NULL },
    { "request_wait", request_wait, "request" },
    { "comm_waits", waits, NULL },
    { "comm_doctor", doctor, NULL },
    { "comm_at", at, NULL },
    { "group_create", group_create, NULL },
    { "group_destroy", group_destroy, "group" },
    { "group_name", group_name, NULL },
    { "group_size", group_size, NULL },
    { "group_member", group_member, NULL },
    { "group_rank", group_rank, NULL },
    { "group_at", group_at, NULL },
    { "group_barrier", group_barrier, NULL },
    { "group_allreduce", group_allreduce, NULL },
    { "group_allreduce_begin", group_allreduce_begin, NULL },
    { "group_slice", group_slice, NULL },
    { "group_reduce_scatter", group_reduce_scatter, NULL },
    { "group_reduce_scatter_begin", group_reduce_scatter_begin, NULL },
    { "group_broadcast", group_broadcast, NULL },
    { "group_allgather", group_allgather, NULL },
    { "group_allgatherv", group_allgatherv, NULL },
    { "group_allgatherv_begin", group_allgatherv_begin, NULL },
    { "shape_elements", shape_elements, NULL },
    { "call_fail", call_fail, NULL },
    { "events_create", events_create, NULL },
    { "events_record", events_record, NULL },
    { "events_close", events_close, "events" },
    { NULL, NULL, NULL },
};
