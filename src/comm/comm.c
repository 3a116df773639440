/* The handle: what a rank may ask, tagged messages, and collectives over whichever form serves them. */
#include <stdio.h>
#include <string.h>

#include "comm/callback.h"
#include "comm/carried.h"
#include "comm/doctor.h"
#include "comm/world.h"

int32_t plait_comm_rank(const plait_comm *comm) { return comm == NULL ? -1 : comm->rank; }
int32_t plait_comm_size(const plait_comm *comm) { return comm == NULL ? 0 : comm->world->size; }
int32_t plait_comm_workers(const plait_comm *comm) { return comm == NULL ? 0 : comm->world->place.workers; }
int32_t plait_comm_servers(const plait_comm *comm) { return comm == NULL ? 0 : comm->world->place.servers; }
int32_t plait_comm_threads(const plait_comm *comm) { return comm == NULL ? 0 : comm->world->threads; }
const char *plait_comm_transport(const plait_comm *comm) { return comm == NULL ? "" : comm->world->ops->name; }
const char *plait_comm_host(const plait_comm *comm) { return comm == NULL ? "" : comm->world->place.host; }
int plait_comm_one_process(const plait_comm *comm) { return comm == NULL ? 0 : comm->world->ops->shares_memory; }
const pli_hosts   *pli_comm_hosts(const plait_comm *comm) { return &comm->world->hosts; }
const char        *pli_comm_collective(const plait_comm *comm) {
    const pli_world *world = comm->world;
    return world->form != NULL ? world->form->name : world->by_messages ? "messages" : "auto";
}
const plait_error *plait_comm_error(const plait_comm *comm) {
    static const plait_error of_nobody = { .code = PLAIT_EINVAL, .rank = -1, .text = "plait_comm_error: comm is NULL" };
    return comm == NULL ? &of_nobody : &comm->error;
}
uint64_t plait_comm_bytes_sent(const plait_comm *comm) {
    return comm == NULL ? 0 : atomic_load_explicit(&comm->bytes_sent, memory_order_relaxed);
}
void plait_comm_free(void *memory) { pli_free(memory); }

uint64_t pli_comm_now(const plait_comm *comm) {
    pli_world_settle(comm->world);
    return pli_world_now(comm->world);
}
uint64_t pli_comm_stamp(const plait_comm *comm) { return pli_world_now(comm->world); }
void pli_comm_tell_times(plait_comm *comm, pli_comm_times *times) {
    const pli_world *world = comm->world;
    uint64_t         waited = pli_comm_waited_ns(comm);
    times->in_flight = world->place.count == world->size;
    times->wait_ns = times->in_flight ? waited - comm->in_flight_ns : waited;
    times->network_ns = comm->in_calls_ns - times->wait_ns;
}

uint64_t pli_comm_waited_ns(const plait_comm *comm) {
    return atomic_load_explicit(&comm->waited_ns, memory_order_relaxed);
}

bool pli_comm_charges(const plait_comm *comm) { return comm->world->ops->work != NULL; }

void pli_comm_work(plait_comm *comm, pli_work_kind kind, uint64_t amount) {
    const pli_world *world = comm->world;
    if (world->ops->work != NULL && amount > 0) world->ops->work(world->transport, comm->rank, kind, amount);
}

void pli_comm_computed(plait_comm *comm) {
    if (comm->world->ops->work == NULL) return;
    uint64_t before_ns = pli_comm_stamp(comm);
    comm->entered_ns += pli_comm_now(comm) - before_ns;
}

bool pli_comm_shares_process(const plait_comm *comm) { return comm->world->place.count == comm->world->size; }
bool     pli_comm_is_worker(const plait_comm *comm) { return comm->rank < comm->world->place.workers; }

/* The job ends with the first rank that dies (member.c), save where collectives are carried, which tell who is
 * missing. */
int32_t pli_comm_lead(const plait_comm *comm) {
    int32_t lead = 0;
    while (pli_comm_is_absent(comm, lead)) lead++;
    return lead;
}

bool pli_comm_leads(const plait_comm *comm) { return comm->rank == pli_comm_lead(comm); }

void pli_comm_living(const plait_comm *comm, int32_t *place_out, int32_t *living_out) {
    *place_out = 0;
    *living_out = plait_comm_workers(comm) - pli_comm_absent(comm);
    for (int32_t w = 0; w < comm->rank; w++) *place_out += !pli_comm_is_absent(comm, w);
}

uint32_t pli_comm_epoch(const plait_comm *comm) { return (uint32_t)atomic_load(&comm->world->n_events) + 1; }
uint32_t pli_comm_incarnation(const plait_comm *comm) {
    (void)comm; /* in threads and mpi nobody is started anew */
    return 1;
}
bool             pli_comm_has_failed(plait_comm *comm) { return pli_comm_is_lost(comm, NULL, NULL) < 0; }
uint64_t         pli_comm_resend_after_ns(const plait_comm *comm) { return comm->world->place.resend_after_ns; }
const plait_log *pli_comm_log(const plait_comm *comm) { return comm->world->log; }
plait_error     *pli_comm_error(plait_comm *comm) { return &comm->error; }
void             pli_comm_set_events(plait_comm *comm, const pli_event_sink *sink) { comm->events = sink; }
const pli_event_sink *pli_comm_events(const plait_comm *comm) { return comm->events; }
void                  pli_comm_set_spans(plait_comm *comm, const pli_span_sink *sink) { comm->spans = sink; }
const pli_span_sink  *pli_comm_spans(const plait_comm *comm) { return comm->spans; }

uint64_t pli_comm_span_begin(const plait_comm *comm) { return comm->spans == NULL ? 0 : pli_comm_now(comm); }
uint64_t pli_comm_span_end(const plait_comm *comm, pli_span_kind kind, const char *name, int64_t number,
                           uint64_t begin_ns) {
    if (comm->spans == NULL) return 0;
    uint64_t end_ns = pli_comm_now(comm);
    comm->spans->take(comm->spans->user, &(pli_span){ .kind = kind, .rank = comm->rank, .name = name, .number = number,
                                                      .begin_ns = begin_ns, .end_ns = end_ns });
    return end_ns;
}

pli_pool *pli_comm_pool(plait_comm *comm) {
    if (comm->pool == NULL && comm->world->threads > 1 &&
        pli_pool_create(comm->world->threads, &comm->pool, NULL) < 0)
        comm->pool = NULL; /* serially then */
    return comm->pool;
}

/* Every failing call names its rank; where the job is lost, the first cause and not who ended because of it. */
static plait_status failed(plait_comm *comm) {
    if (comm->error.code == PLAIT_EPEER) (void)pli_comm_is_lost(comm, NULL, &comm->error);
    if (comm->error.rank < 0) comm->error.rank = comm->rank;
    return comm->error.code;
}

/* --- public calls --------------------------------------------------------------------------------------- */

/* The handle is there, and no server function calls. */
static plait_status usable(plait_comm *comm, const char *call) {
    if (comm == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    return pli_callback_refuses(call);
}

/* An argument that the call needs. */
static plait_status given(plait_comm *comm, const char *call, const char *name, const void *argument) {
    if (argument != NULL) return PLAIT_OK;
    pli_fail_null(&comm->error, call, name);
    return failed(comm);
}

/* The same of memory of so many bytes or elements. */
static plait_status given_memory(plait_comm *comm, const char *call, const char *name, const void *memory, bool some) {
    return some ? given(comm, call, name, memory) : PLAIT_OK;
}

/* The steps of a collective multiply by the number of workers, and by pieces of messages. */
static int64_t most_bytes(const plait_comm *comm) { return INT64_MAX / 4 / (comm->world->place.workers + 1); }

static plait_status at_most(plait_comm *comm, const char *call, size_t bytes, int64_t most) {
    if (bytes <= (size_t)most) return PLAIT_OK;
    pli_fail(&comm->error, PLAIT_EINVAL, "%s: bytes is %zu; expected at most %lld", call, bytes, (long long)most);
    return failed(comm);
}

plait_comm *plait_comm_at(plait_comm *comm, const char *file, int32_t line) {
    if (comm == NULL || comm->depth > 0) return comm;
    comm->at_file = file;
    comm->at_line = line;
    return comm;
}

void pli_comm_enter(plait_comm *comm, const char *call) {
    if (comm->depth++ > 0) return;
    comm->span_ns = comm->entered_ns = pli_comm_now(comm);
    comm->site = (pli_call_site){ .call = call, .file = comm->at_file, .line = comm->at_line,
                                  .ordinal = ++comm->calls };
    comm->at_file = NULL;
}

plait_status pli_comm_leave(plait_comm *comm, plait_status status) {
    if (--comm->depth > 0) return status;
    uint64_t now_ns = pli_comm_stamp(comm);
    comm->in_calls_ns += now_ns - comm->entered_ns;
    if (comm->spans != NULL)
        comm->spans->take(comm->spans->user, &(pli_span){ .kind = PLI_SPAN_CALL,
                                                          .rank = comm->rank,
                                                          .name = comm->site.call,
                                                          .number = -1,
                                                          .begin_ns = comm->span_ns,
                                                          .end_ns = now_ns });
    if (status == PLAIT_EPEER || status == PLAIT_ETIMEOUT || status == PLAIT_EMISMATCH) {
        char   site[160];
        size_t at = strlen(comm->error.text), room = sizeof comm->error.text - at;
        pli_doctor_tell_site(comm->site.call, comm->site.ordinal, comm->site.file, comm->site.line, site, sizeof site);
        if (at > 0 && strlen(site) + 4 < room) snprintf(comm->error.text + at, room, " (%s)", site);
    }
    comm->site = (pli_call_site){ 0 };
    return status;
}

/* --- tagged messages ------------------------------------------------------------------------------------ */

plait_status plait_comm_send(plait_comm *comm, int32_t to, int32_t tag, const void *data, size_t bytes) {
    PLI_TRY(usable(comm, __func__));
    PLI_TRY(given_memory(comm, __func__, "data", data, bytes > 0));
    PLI_TRY(at_most(comm, __func__, bytes, most_bytes(comm)));
    if (to >= 0 && to < comm->world->size && tag >= 0) return pli_comm_send(comm, to, tag, data, bytes);
    pli_fail(&comm->error, PLAIT_EINVAL, "send: rank %d of %d, tag %d", to, comm->world->size, tag);
    return failed(comm);
}

plait_status pli_comm_send(plait_comm *comm, int32_t to, int32_t tag, const void *data, size_t bytes) {
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "send: no memory for a message of %zu bytes", bytes);
        return failed(comm);
    }
    if (bytes > 0) memcpy(pli_msg_body(msg), data, bytes);
    return pli_comm_send_msg(comm, to, tag, msg);
}

plait_status pli_comm_send_msg(plait_comm *comm, int32_t to, int32_t tag, pli_msg *msg) {
    size_t bytes = msg->head.body_bytes;
    if (to != comm->rank && pli_world_has_ended(comm->world, to)) {
        pli_msg_free(&msg);
        if (pli_comm_is_lost(comm, NULL, &comm->error) == 0)
            pli_fail(&comm->error, PLAIT_EPEER, "send: rank %d has left", to);
        return failed(comm);
    }
    msg->head.dst = to;
    msg->head.arg32 = (uint32_t)tag;
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(comm->user_port, &now_ns, &out);
    bool sent = pli_links_send(&comm->user.links, now_ns, msg, &out);
    pli_port_leave(comm->user_port, &out);
    if (sent) return PLAIT_OK;
    pli_fail(&comm->error, PLAIT_ENOMEM, "send: no memory for a message of %zu bytes", bytes);
    return failed(comm);
}

struct receipt {
    plait_comm *comm;
    int32_t     from, tag;
    bool        found; /* else: it is over */
};

static bool has_come(void *arg) {
    struct receipt *r = arg;
    uint64_t        now_ns;
    pli_out         out;
    pli_port_enter(r->comm->user_port, &now_ns, &out);
    r->found = pli_user_find(&r->comm->user, r->from, r->tag) != NULL;
    bool over = pli_user_is_over(&r->comm->user, r->from) && r->from != r->comm->rank;
    pli_port_leave(r->comm->user_port, &out);
    return r->found || over;
}

static void tell_receipt(const void *arg, char *text, size_t bytes) {
    const struct receipt *r = arg;
    if (r->tag < 0) {
        snprintf(text, bytes, "what rank %d tells it", r->from);
    } else if (r->from < 0) {
        snprintf(text, bytes, "a message with tag %d of any rank", r->tag);
    } else {
        snprintf(text, bytes, "a message with tag %d, held up by rank %d", r->tag, r->from);
    }
}

static void show_receipt(const void *arg, pli_wait *wait) {
    const struct receipt *r = arg;
    wait->kind = PLI_WAIT_RECV;
    wait->peer = r->from;
}

static plait_status take_message(const struct receipt *r, void *data, size_t capacity, size_t *bytes_out,
                                 int32_t *from_out) {
    plait_comm *comm = r->comm;
    uint64_t    now_ns;
    pli_out     out;
    pli_port_enter(comm->user_port, &now_ns, &out);
    pli_msg **at = pli_user_find(&comm->user, r->from, r->tag);
    size_t    bytes = (*at)->head.body_bytes;
    if (bytes_out != NULL) *bytes_out = bytes;
    if (from_out != NULL) *from_out = (*at)->head.src;
    pli_msg *msg = bytes <= capacity ? pli_user_take(&comm->user, at) : NULL;
    pli_port_leave(comm->user_port, &out);
    if (msg == NULL) {
        pli_fail(&comm->error, PLAIT_ESHAPE, "recv: the message with tag %d has %zu bytes, there is room for %zu",
                 r->tag, bytes, capacity);
        return failed(comm);
    }
    if (bytes > 0) memcpy(data, pli_msg_body(msg), bytes);
    pli_msg_free(&msg);
    return PLAIT_OK;
}

plait_status plait_comm_recv(plait_comm *comm, int32_t from, int32_t tag, void *data, size_t capacity,
                             size_t *bytes_out, int32_t *from_out) {
    PLI_TRY(usable(comm, __func__));
    PLI_TRY(given_memory(comm, __func__, "data", data, capacity > 0));
    if (from < -1 || from >= comm->world->size || tag < 0) {
        pli_fail(&comm->error, PLAIT_EINVAL, "recv: rank %d of %d, tag %d", from, comm->world->size, tag);
        return failed(comm);
    }
    pli_comm_enter(comm, "plait_comm_recv");
    return pli_comm_leave(comm, pli_comm_recv(comm, from, tag, data, capacity, bytes_out, from_out));
}

static plait_status wait_for_message(struct receipt *receipt) {
    plait_comm *comm = receipt->comm;
    pli_reason  reason = { .tell = tell_receipt, .show = show_receipt, .arg = receipt };
    if (pli_comm_wait(comm, has_come, receipt, &reason, &comm->error) < 0) return failed(comm);
    if (receipt->found) return PLAIT_OK;
    if (receipt->from < 0) {
        pli_fail(&comm->error, PLAIT_EPEER, "recv: all other ranks have left, no message with tag %d will come",
                 receipt->tag);
    } else {
        pli_fail(&comm->error, PLAIT_EPEER, "recv: rank %d has left, no message with tag %d will come", receipt->from,
                 receipt->tag);
    }
    return failed(comm);
}

plait_status pli_comm_recv(plait_comm *comm, int32_t from, int32_t tag, void *data, size_t capacity, size_t *bytes_out,
                           int32_t *from_out) {
    struct receipt receipt = { .comm = comm, .from = from, .tag = tag };
    PLI_TRY(wait_for_message(&receipt));
    return take_message(&receipt, data, capacity, bytes_out, from_out);
}

plait_status pli_comm_take(plait_comm *comm, int32_t from, int32_t tag, pli_msg **msg_out) {
    struct receipt receipt = { .comm = comm, .from = from, .tag = tag };
    uint64_t       now_ns;
    pli_out        out;
    PLI_TRY(wait_for_message(&receipt));
    pli_port_enter(comm->user_port, &now_ns, &out);
    *msg_out = pli_user_take(&comm->user, pli_user_find(&comm->user, from, tag));
    pli_port_leave(comm->user_port, &out);
    return PLAIT_OK;
}

/* Collectives are the workers': each adds what its share of the servers tells it. */
static plait_status add_up_bytes(plait_comm *comm, uint64_t *bytes_out) {
    enum { TAG_BYTES = -2 };
    int32_t  workers = plait_comm_workers(comm);
    uint64_t theirs = 0, mine = plait_comm_bytes_sent(comm);
    if (!pli_comm_is_worker(comm))
        return pli_comm_send(comm, (comm->rank - workers) % workers, TAG_BYTES, &mine, sizeof mine);
    for (int32_t s = comm->rank; s < plait_comm_servers(comm); s += workers) {
        PLI_TRY(pli_comm_recv(comm, workers + s, TAG_BYTES, &theirs, sizeof theirs, NULL, NULL));
        mine += theirs;
    }
    PLI_TRY(plait_comm_allreduce(comm, &mine, 1, PLAIT_I64, PLAIT_SUM));
    *bytes_out = mine;
    return PLAIT_OK;
}

plait_status pli_comm_bytes_of_all(plait_comm *comm, uint64_t *bytes_out) {
    *bytes_out = 0;
    pli_comm_enter(comm, "the sum of the bytes sent");
    return pli_comm_leave(comm, add_up_bytes(comm, bytes_out));
}

/* --- collectives ------------------------------------------------------------------------------------------ */

static bool is_done(void *arg) { return pli_coll_is_done(&((pli_call *)arg)->run); }

void pli_comm_tell_call(const void *arg, char *text, size_t bytes) {
    const pli_call *call = arg;
    char            what[96];
    pli_coll_tell(&call->coll, what, sizeof what);
    int32_t for_rank = atomic_load_explicit(&call->run.waits_for, memory_order_relaxed);
    if (for_rank >= 0) {
        snprintf(text, bytes, "%s, held up by rank %d", what, for_rank);
    } else {
        snprintf(text, bytes, "%s", what);
    }
}

void pli_comm_show_call(const void *arg, pli_wait *wait) {
    const pli_call *call = arg;
    const pli_coll *coll = &call->coll;
    wait->kind = PLI_WAIT_COLLECTIVE;
    wait->peer = atomic_load_explicit(&call->run.waits_for, memory_order_relaxed);
    wait->number = call->number;
    wait->coll_kind = (uint8_t)(coll->kind | coll->begun << 7);
    wait->coll_form = coll->form != NULL ? coll->form->id : 0;
    wait->coll_type = (uint8_t)coll->type;
    wait->coll_op = (uint8_t)coll->op;
    wait->root = coll->root;
    wait->n = coll->n;
}

static void begin_messages(plait_comm *comm, pli_call *call, const pli_coll *coll) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(comm->collective_port, &now_ns, &out);
    pli_collective_begin(&comm->collective, now_ns, coll, &call->run, &out);
    pli_port_leave(comm->collective_port, &out);
}

/* Where a call goes on by itself, the workers may have to find out by messages that all have come. */
static bool meets_by_messages(const pli_world *world, const pli_coll *coll) {
    return coll->begun && world->ops->meets_by_messages;
}

static plait_status begin_native(plait_comm *comm, pli_call *call) {
    pli_world *world = comm->world;
    int32_t    workers = world->place.workers;
    pli_coll   charged = call->coll; /* as if by messages */
    if (charged.op == PLAIT_SUM_EXACT) charged.type = pli_cells_of(charged.type);
    pli_coll_choose(&charged, NULL, workers, &world->hosts);
    uint64_t bytes = pli_coll_bytes(&charged, comm->rank, workers);
    if (meets_by_messages(world, &call->coll)) {
        pli_coll meeting = call->coll;
        meeting.meet = true;
        bytes -= pli_coll_bytes(&meeting, comm->rank, workers); /* they count by themselves */
        begin_messages(comm, call, &meeting);
    }
    atomic_fetch_add_explicit(&comm->bytes_sent, bytes, memory_order_relaxed);
    return world->ops->begin(world->transport, call, &comm->error);
}

static bool is_native(const pli_world *world, const pli_coll *coll) {
    bool named = pli_coll_reduces(coll) && world->form != NULL;
    return world->place.workers > 1 && !named && !world->by_messages && world->ops->takes != NULL &&
           world->ops->takes(world->transport, coll);
}

static plait_status begin_call(plait_comm *comm, const pli_coll *coll, pli_call *call) {
    pli_world *world = comm->world;
    if (!pli_comm_is_worker(comm)) {
        pli_fail(&comm->error, PLAIT_EINVAL, "rank %d is a server; collectives are among the workers", comm->rank);
        return failed(comm);
    }
    if (pli_comm_is_lost(comm, NULL, &comm->error) < 0) return failed(comm);
    call->comm = comm;
    call->coll = *coll;
    call->carried = comm->carrier.gather != NULL;
    call->native = !call->carried && is_native(world, coll);
    if (coll->op == PLAIT_SUM_EXACT && !call->native && pli_exact_begin(call, &comm->error) < 0) return failed(comm);
    atomic_init(&call->run.waits_for, -1);
    /* pairs with the doctor's acquire, as joined does */
    call->number = atomic_fetch_add_explicit(&comm->begun, 1, memory_order_release) + 1;
    if (world->place.workers == 1) return PLAIT_OK;
    if (call->carried) {
        plait_status status = pli_carried_run(comm, &call->coll);
        if (status < 0 && call->cells != NULL) pli_exact_end(call, status);
        return status < 0 ? failed(comm) : PLAIT_OK;
    }
    if (call->native) return begin_native(comm, call) < 0 ? failed(comm) : PLAIT_OK;
    pli_coll_choose(&call->coll, world->form, world->place.workers, &world->hosts);
    begin_messages(comm, call, &call->coll);
    return PLAIT_OK;
}

/* The buffer is the caller's again: nothing may touch it. */
static void abort_call(plait_comm *comm, pli_call *call, const plait_error *why) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(comm->collective_port, &now_ns, &out);
    pli_collective_abort(&comm->collective, &call->run, why, &out);
    pli_port_leave(comm->collective_port, &out);
}

static plait_status wait_for_messages(plait_comm *comm, pli_call *call) {
    pli_reason  reason = { .tell = pli_comm_tell_call, .show = pli_comm_show_call, .arg = call };
    plait_error why = { .rank = -1 };
    if (pli_comm_wait(comm, is_done, call, &reason, &why) < 0) {
        abort_call(comm, call, &why);
        comm->error = why;
        return why.code;
    }
    if (call->run.error.code >= 0) return PLAIT_OK;
    comm->error = call->run.error;
    return comm->error.code;
}

static plait_status end_call(plait_comm *comm, pli_call *call) {
    const pli_world *world = comm->world;
    plait_status     status = PLAIT_OK;
    if (call->number > atomic_load_explicit(&comm->joined, memory_order_relaxed))
        atomic_store_explicit(&comm->joined, call->number, memory_order_release);
    if (world->place.workers > 1 && !call->carried)
        status = call->native ? world->ops->wait(world->transport, call, &comm->error) : wait_for_messages(comm, call);
    if (status < 0 && call->native && world->ops->meets_by_messages) abort_call(comm, call, &comm->error);
    if (call->cells != NULL) pli_exact_end(call, status);
    return status < 0 ? failed(comm) : PLAIT_OK;
}

static plait_status run_call(plait_comm *comm, const pli_coll *coll, const char *name) {
    pli_call call = { 0 };
    pli_comm_enter(comm, name);
    plait_status status = begin_call(comm, coll, &call);
    return pli_comm_leave(comm, status < 0 ? status : end_call(comm, &call));
}

plait_status plait_comm_barrier(plait_comm *comm) {
    PLI_TRY(usable(comm, __func__));
    pli_coll call = { .kind = PLI_COLL_BARRIER, .type = PLAIT_U8 };
    return run_call(comm, &call, "plait_comm_barrier");
}

static plait_status reduction(plait_comm *comm, const char *name, pli_coll_kind kind, void *buf, int64_t n,
                              plait_type type, plait_reduce op, pli_coll *call) {
    PLI_TRY(usable(comm, name));
    PLI_TRY(given_memory(comm, name, "buf", buf, n > 0));
    bool floats = type == PLAIT_F32 || type == PLAIT_F64, exact = op == PLAIT_SUM_EXACT;
    bool known = exact ? floats : (floats || type == PLAIT_I64) && pli_reducer_find(type, op) != NULL;
    if (!known) {
        pli_fail(&comm->error, PLAIT_EINVAL, "%s: type %d, op %d: there is no such reduction", name, (int)type,
                 (int)op);
        return failed(comm);
    }
    int64_t most = most_bytes(comm) / (int64_t)pli_type_bytes(exact ? pli_cells_of(type) : type);
    if (n < 0 || n > most) {
        pli_fail(&comm->error, PLAIT_EINVAL, "%s: n is %lld; expected 0 to %lld", name, (long long)n, (long long)most);
        return failed(comm);
    }
    *call = (pli_coll){ .kind = kind, .type = type, .op = op, .n = n, .buf = buf };
    return PLAIT_OK;
}

plait_status plait_comm_allreduce(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op) {
    pli_coll     call;
    plait_status status = reduction(comm, __func__, PLI_ALLREDUCE, buf, n, type, op, &call);
    return status < 0 ? status : run_call(comm, &call, "plait_comm_allreduce");
}

void plait_comm_slice(const plait_comm *comm, int64_t n, int32_t worker, int64_t *first_out, int64_t *count_out) {
    if (comm == NULL || first_out == NULL || count_out == NULL) return;
    int32_t workers = comm->world->place.workers;
    *first_out = pli_slice_first(n, worker, workers);
    *count_out = pli_slice_first(n, worker + 1, workers) - *first_out;
}

plait_status plait_comm_reduce_scatter(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op) {
    pli_coll     call;
    plait_status status = reduction(comm, __func__, PLI_REDUCE_SCATTER, buf, n, type, op, &call);
    return status < 0 ? status : run_call(comm, &call, "plait_comm_reduce_scatter");
}

static plait_status reduce_cells(plait_comm *comm, pli_coll_kind kind, bool wide, int64_t n, void *cells) {
    const pli_coll call = { .kind = kind, .type = wide ? PLI_CELLS_F64 : PLI_CELLS_F32, .op = PLAIT_SUM, .n = n,
                            .buf = cells };
    return run_call(comm, &call, "the exact sum of a clock");
}

plait_status pli_comm_sum_cells(plait_comm *comm, bool wide, int64_t n, void *cells) {
    return reduce_cells(comm, PLI_ALLREDUCE, wide, n, cells);
}

plait_status pli_comm_scatter_cells(plait_comm *comm, bool wide, int64_t n, void *cells) {
    return reduce_cells(comm, PLI_REDUCE_SCATTER, wide, n, cells);
}

/* --- begun, and waited for later -------------------------------------------------------------------------- */

static void free_pieces(pli_call *call) {
    for (int32_t r = 0; call->coll.piece != NULL && r < call->comm->world->place.workers; r++)
        pli_msg_free(&call->coll.piece[r]);
    pli_free(call->coll.piece);
}

static plait_status take_pieces(plait_comm *comm, const pli_call *call) {
    size_t         total = 0;
    int32_t        workers = comm->world->place.workers;
    pli_msg      **piece = call->coll.piece;
    if (call->piece_out != NULL) {
        memcpy(call->piece_out, piece, (size_t)workers * sizeof *piece);
        memset(piece, 0, (size_t)workers * sizeof *piece);
        return PLAIT_OK;
    }
    for (int32_t r = 0; r < workers; r++) total += call->sizes[r] = piece[r]->head.body_bytes;
    unsigned char *all = pli_malloc(total), *at = all;
    if (all == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %zu bytes", total);
        return failed(comm);
    }
    for (int32_t r = 0; r < workers; at += call->sizes[r++])
        if (call->sizes[r] > 0) memcpy(at, pli_msg_body(piece[r]), call->sizes[r]);
    *call->all_out = all;
    return PLAIT_OK;
}

static void free_begun(pli_call *call) {
    pli_call **at = &call->comm->under_way;
    while (*at != call) at = &(*at)->next;
    *at = call->next;
    free_pieces(call);
    pli_free(call->cells);
    pli_free(call);
}

static plait_status end_begun(pli_call *call) {
    plait_status status = end_call(call->comm, call);
    if (status >= 0 && call->coll.piece != NULL) status = take_pieces(call->comm, call);
    free_begun(call);
    return status;
}

void pli_comm_drop(plait_request **request_ptr) {
    pli_call *call = (pli_call *)*request_ptr;
    *request_ptr = NULL;
    if (call == NULL) return;
    const pli_world *world = call->comm->world;
    plait_error      why;
    pli_fail(&why, PLAIT_ECOMM, "a collective was given up; no further one can be run");
    if (world->place.workers > 1 && !call->carried) abort_call(call->comm, call, &why);
    if (call->native) world->ops->drop(world->transport, call);
    free_begun(call);
}

static plait_status wait_request(plait_request *request) {
    pli_call   *call = (pli_call *)request;
    plait_comm *comm = call->comm;
    pli_comm_enter(comm, call->coll.kind == PLI_PIECES ? "plait_request_wait of plait_comm_allgatherv_begin"
                                                       : call->coll.kind == PLI_REDUCE_SCATTER
                                                          ? "plait_request_wait of plait_comm_reduce_scatter_begin"
                                                          : "plait_request_wait of plait_comm_allreduce_begin");
    return pli_comm_leave(comm, end_begun(call));
}

static plait_status begin_later(plait_comm *comm, pli_call *call, const pli_coll *coll, plait_request **request_out) {
    plait_status status = begin_call(comm, coll, call);
    if (status < 0) {
        pli_free(call);
        return status;
    }
    call->request.wait = wait_request;
    call->next = comm->under_way;
    comm->under_way = call;
    *request_out = &call->request;
    return PLAIT_OK;
}

static pli_call *new_call(plait_comm *comm, const char *what) {
    pli_call *call = pli_calloc(1, sizeof *call);
    if (call == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "%s: no memory for a request", what);
        (void)failed(comm);
    }
    return call;
}

static plait_status begin_reduction(plait_comm *comm, pli_coll *coll, plait_request **request_out) {
    pli_call *call = new_call(comm, coll->kind == PLI_ALLREDUCE ? "allreduce" : "reduce-scatter");
    if (call == NULL) return comm->error.code;
    coll->begun = true;
    return begin_later(comm, call, coll, request_out);
}

plait_status pli_comm_sum_tables(plait_comm *comm, plait_type type, int64_t n, void *buf, plait_request **request_out) {
    pli_coll coll = {
        .kind = PLI_ALLREDUCE, .type = type, .op = PLAIT_SUM, .root = PLI_COLL_OF_TABLES, .n = n, .buf = buf
    };
    return request_out != NULL ? begin_reduction(comm, &coll, request_out)
                               : run_call(comm, &coll, "the sum of a clock");
}

plait_status plait_comm_allreduce_begin(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op,
                                        plait_request **request_out) {
    pli_coll coll;
    PLI_TRY(reduction(comm, __func__, PLI_ALLREDUCE, buf, n, type, op, &coll));
    PLI_TRY(given(comm, __func__, "request_out", request_out));
    return begin_reduction(comm, &coll, request_out);
}

plait_status plait_comm_reduce_scatter_begin(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op,
                                             plait_request **request_out) {
    pli_coll coll;
    PLI_TRY(reduction(comm, __func__, PLI_REDUCE_SCATTER, buf, n, type, op, &coll));
    PLI_TRY(given(comm, __func__, "request_out", request_out));
    return begin_reduction(comm, &coll, request_out);
}

/* to: where the outcome goes; of whom the pieces are. */
static plait_status begin_pieces(plait_comm *comm, pli_msg *own, const pli_call *to, plait_request **request_out) {
    pli_coll  coll = { .kind = PLI_PIECES, .type = PLAIT_U8, .root = to->coll.root, .begun = true };
    pli_call *call = new_call(comm, "allgatherv");
    if (call != NULL) coll.piece = pli_calloc((size_t)comm->world->place.workers, sizeof *coll.piece);
    if (coll.piece == NULL) {
        pli_free(call);
        pli_msg_free(&own);
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %d pieces", comm->world->place.workers);
        return failed(comm);
    }
    call->sizes = to->sizes;
    call->all_out = to->all_out;
    call->piece_out = to->piece_out;
    if (pli_comm_is_worker(comm)) coll.piece[comm->rank] = own;
    else pli_msg_free(&own);
    plait_status status = begin_later(comm, call, &coll, request_out);
    if (status >= 0) return status;
    for (int32_t r = 0; r < comm->world->place.workers; r++) pli_msg_free(&coll.piece[r]);
    pli_free(coll.piece);
    return status;
}

static plait_status pieces_given(plait_comm *comm, const char *call, const void *mine, size_t bytes,
                                 const size_t *sizes, void *const *all_out) {
    PLI_TRY(usable(comm, call));
    PLI_TRY(given_memory(comm, call, "mine", mine, bytes > 0));
    PLI_TRY(given(comm, call, "sizes", sizes));
    PLI_TRY(given(comm, call, "all_out", all_out));
    return at_most(comm, call, bytes, most_bytes(comm));
}

plait_status plait_comm_allgatherv_begin(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes,
                                         void **all_out, plait_request **request_out) {
    PLI_TRY(pieces_given(comm, __func__, mine, bytes, sizes, all_out));
    PLI_TRY(given(comm, __func__, "request_out", request_out));
    pli_msg *own = pli_msg_new(bytes);
    if (own == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %zu bytes", bytes);
        return failed(comm);
    }
    if (bytes > 0) memcpy(pli_msg_body(own), mine, bytes);
    return begin_pieces(comm, own, &(pli_call){ .sizes = sizes, .all_out = all_out }, request_out);
}

plait_status pli_comm_pieces_begin(plait_comm *comm, pli_msg *mine, pli_msg **piece, plait_request **request_out) {
    return begin_pieces(comm, mine, &(pli_call){ .coll.root = PLI_COLL_OF_TABLES, .piece_out = piece }, request_out);
}

plait_status plait_request_wait(plait_request **request_ptr) {
    plait_request *request = request_ptr == NULL ? NULL : *request_ptr;
    if (request != NULL) PLI_TRY(pli_callback_refuses(__func__));
    if (request != NULL) *request_ptr = NULL;
    return request == NULL ? PLAIT_OK : request->wait(request);
}

void pli_comm_end_calls(plait_comm *comm, bool failed_itself) {
    while (comm->under_way != NULL) {
        plait_request *request = &comm->under_way->request;
        if (failed_itself) pli_comm_drop(&request);
        else (void)plait_request_wait(&request);
    }
}

plait_status plait_comm_broadcast(plait_comm *comm, void *buf, size_t bytes, int32_t root) {
    PLI_TRY(usable(comm, __func__));
    PLI_TRY(given_memory(comm, __func__, "buf", buf, bytes > 0));
    PLI_TRY(at_most(comm, __func__, bytes, most_bytes(comm)));
    if (root < 0 || root >= comm->world->place.workers) {
        pli_fail(&comm->error, PLAIT_EINVAL, "broadcast: %zu bytes from worker %d of %d", bytes, root,
                 comm->world->place.workers);
        return failed(comm);
    }
    pli_coll call = { .kind = PLI_BROADCAST, .type = PLAIT_U8, .root = root, .n = (int64_t)bytes, .buf = buf };
    return run_call(comm, &call, "plait_comm_broadcast");
}

plait_status plait_comm_allgather(plait_comm *comm, const void *mine, size_t bytes, void *all) {
    PLI_TRY(usable(comm, __func__));
    PLI_TRY(given_memory(comm, __func__, "mine", mine, bytes > 0));
    PLI_TRY(given_memory(comm, __func__, "all", all, bytes > 0));
    PLI_TRY(at_most(comm, __func__, bytes, most_bytes(comm)));
    if (pli_comm_is_worker(comm) && bytes > 0) memmove((unsigned char *)all + (size_t)comm->rank * bytes, mine, bytes);
    pli_coll call = { .kind = PLI_ALLGATHER, .type = PLAIT_U8, .n = (int64_t)bytes, .buf = all };
    return run_call(comm, &call, "plait_comm_allgather");
}

static plait_status gather_pieces(plait_comm *comm, const void *mine, size_t bytes, const size_t *starts,
                                  void **all_out) {
    int32_t workers = comm->world->place.workers;
    size_t  total = starts[workers];
    void   *all = pli_malloc(total);
    if (all == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %zu bytes", total);
        return failed(comm);
    }
    if (bytes > 0) memcpy((unsigned char *)all + starts[comm->rank], mine, bytes);
    pli_coll     call = { .kind = PLI_ALLGATHER, .type = PLAIT_U8, .n = (int64_t)total, .buf = all, .starts = starts };
    plait_status status = run_call(comm, &call, "plait_comm_allgatherv");
    if (status < 0) {
        pli_free(all);
    } else {
        *all_out = all;
    }
    return status;
}

bool pli_comm_sums_by_messages(const plait_comm *comm, int64_t n, plait_type type) {
    const pli_coll sum = { .kind = PLI_ALLREDUCE, .type = type, .op = PLAIT_SUM, .n = n };
    return comm->world->place.workers > 1 && !is_native(comm->world, &sum);
}

bool pli_comm_scatters_alike(const plait_comm *comm, int64_t n, plait_type type) {
    const pli_world *world = comm->world;
    pli_coll         whole = { .kind = PLI_ALLREDUCE, .type = type, .op = PLAIT_SUM, .n = n }, part = whole;
    part.kind = PLI_REDUCE_SCATTER;
    bool native = is_native(world, &whole);
    if (pli_is_cells(type)) return true; /* any order gives the same bits */
    if (native || is_native(world, &part)) return native && is_native(world, &part);
    pli_coll_choose(&whole, world->form, world->place.workers, &world->hosts);
    return pli_form_scatters(&whole.form);
}

plait_status pli_comm_gather_slices(plait_comm *comm, void *buf, int64_t n, int64_t cut, size_t element_bytes) {
    int32_t workers = comm->world->place.workers;
    size_t *starts = pli_array((size_t)workers + 1, sizeof *starts);
    if (starts == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgather: no memory for %d sizes", workers);
        return failed(comm);
    }
    for (int32_t r = 0; r <= workers; r++) {
        int64_t first = pli_slice_first(cut, r, workers);
        starts[r] = (size_t)(first < n ? first : n) * element_bytes;
    }
    pli_coll     call = { .kind = PLI_ALLGATHER, .type = PLAIT_U8, .n = (int64_t)starts[workers], .buf = buf,
                          .starts = starts };
    plait_status status = run_call(comm, &call, "the allgather of a table's slices");
    pli_free(starts);
    return status;
}

static plait_status gather_lengths_and_pieces(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes,
                                              void **all_out) {
    PLI_TRY(plait_comm_allgather(comm, &bytes, sizeof bytes, sizes));
    int32_t workers = comm->world->place.workers;
    size_t *starts = pli_array((size_t)workers + 1, sizeof *starts);
    if (starts == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %d sizes", workers);
        return failed(comm);
    }
    starts[0] = 0;
    for (int32_t r = 0; r < workers; r++) starts[r + 1] = starts[r] + sizes[r];
    plait_status status = gather_pieces(comm, mine, bytes, starts, all_out);
    pli_free(starts);
    return status;
}

/* In one: who is gone between two would be missing from the second alone. */
static plait_status gather_at_once(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes, void **all_out) {
    plait_request *request;
    PLI_TRY(plait_comm_allgatherv_begin(comm, mine, bytes, sizes, all_out, &request));
    return plait_request_wait(&request);
}

plait_status plait_comm_allgatherv(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes, void **all_out) {
    PLI_TRY(pieces_given(comm, __func__, mine, bytes, sizes, all_out));
    pli_comm_enter(comm, "plait_comm_allgatherv");
    return pli_comm_leave(comm, comm->carrier.gather != NULL
                                    ? gather_at_once(comm, mine, bytes, sizes, all_out)
                                    : gather_lengths_and_pieces(comm, mine, bytes, sizes, all_out));
}
