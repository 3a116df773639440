/* The handle: what a rank may ask about itself and its job, and what its calls have in common. */
#include "comm/handle.h"

#include <stdio.h>
#include <string.h>

#include "comm/callback.h"
#include "comm/cluster.h"
#include "comm/doctor.h"

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
    uint64_t bytes = 0;
    for (int32_t p = 0; comm != NULL && p < PLI_PORT_MAX; p++)
        bytes += atomic_load_explicit(&comm->sent[p], memory_order_relaxed);
    return bytes;
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

const pli_cluster *pli_comm_cluster(const plait_comm *comm) {
    const pli_world *world = comm->world;
    return world->ops->cluster != NULL ? world->ops->cluster(world->transport) : NULL;
}

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

/* Without carried collectives the first death ends the job (member.c), so only these know absent workers. */
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

uint32_t pli_comm_epoch(const plait_comm *comm) {
    return atomic_load_explicit(&comm->members->view, memory_order_relaxed);
}
uint32_t pli_comm_incarnation(const plait_comm *comm) { return comm->life; }
int32_t  plait_comm_life(const plait_comm *comm) { return comm == NULL ? 0 : (int32_t)comm->life; }
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
        comm->pool = NULL; /* then it runs serially */
    return comm->pool;
}

/* --- public calls ------------------------------------------------------------------------------------------------- */

plait_status pli_comm_failed(plait_comm *comm) {
    if (comm->error.code == PLAIT_EPEER) (void)pli_comm_is_lost(comm, NULL, &comm->error);
    if (comm->error.rank < 0) comm->error.rank = comm->rank;
    return comm->error.code;
}

plait_status pli_comm_usable(plait_comm *comm, const char *call) {
    if (comm == NULL) return PLAIT_EINVAL; /* without a handle there is no place for the text */
    return pli_callback_refuses(call);
}

plait_status pli_comm_given(plait_comm *comm, const char *call, const char *name, const void *argument) {
    if (argument != NULL) return PLAIT_OK;
    pli_fail_null(&comm->error, call, name);
    return pli_comm_failed(comm);
}

plait_status pli_comm_given_memory(plait_comm *comm, const char *call, const char *name, const void *memory,
                                   bool some) {
    return some ? pli_comm_given(comm, call, name, memory) : PLAIT_OK;
}

int64_t pli_comm_most_bytes(const plait_comm *comm) { return INT64_MAX / 4 / (comm->world->place.workers + 1); }

plait_status pli_comm_at_most(plait_comm *comm, const char *call, size_t bytes, int64_t most) {
    if (bytes <= (size_t)most) return PLAIT_OK;
    pli_fail(&comm->error, PLAIT_EINVAL, "%s: bytes is %zu; expected at most %lld", call, bytes, (long long)most);
    return pli_comm_failed(comm);
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
    pli_tally(&comm->in_calls_ns, now_ns - comm->entered_ns);
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
