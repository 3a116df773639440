/* The tables of a group live in a *part* of the job: a job of the members alone. It has machines of its own, which know
 * the members by their numbers (comm/group.h), and so policies, barriers, server functions and clocks count them and
 * nobody else, without a word about groups. The job ends a clock in all parts of which its rank is a member; a part
 * that is made later begins at its members' clock. */
#include <stdatomic.h>
#include <string.h>

#include "table/events.h"
#include "table/pairs/pairs.h"
#include "table/table.h"

/* --- collectives of the job's workers ----------------------------------------------------------------------------- */

plait_status pli_job_meet(plait_job *job) {
    return job->group != NULL ? plait_group_barrier(job->group) : plait_comm_barrier(job->comm);
}

plait_status pli_job_allgather(plait_job *job, const void *mine, size_t bytes, void *all) {
    return job->group != NULL ? plait_group_allgather(job->group, mine, bytes, all)
                              : plait_comm_allgather(job->comm, mine, bytes, all);
}

plait_status pli_job_allreduce(plait_job *job, void *buf, int64_t n, plait_type type) {
    return job->group != NULL ? plait_group_allreduce(job->group, buf, n, type, PLAIT_SUM)
                              : plait_comm_allreduce(job->comm, buf, n, type, PLAIT_SUM);
}

void pli_job_slice(const plait_job *job, int64_t n, int32_t worker, int64_t *first_out, int64_t *count_out) {
    if (job->group != NULL) plait_group_slice(job->group, n, worker, first_out, count_out);
    else plait_comm_slice(job->comm, n, worker, first_out, count_out);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

/* A part's machines raise events by numbers. The log learns whose numbers they are. */
static void raise_in_part(void *user, const pli_event *event) {
    const plait_job *part = user;
    pli_event        with = *event;
    with.group = &part->as_group;
    pli_event_raise(pli_comm_events(part->comm), &with);
}

static void keep_in_part(void *user, const pli_event_group *group, int32_t rank, int side) {
    const plait_job      *part = user;
    const pli_event_sink *events = pli_comm_events(part->comm);
    (void)group; /* the machines know of none */
    if (events != NULL && events->keep != NULL) events->keep(events->user, &part->as_group, rank, side);
}

const pli_event_sink *pli_job_events(const plait_job *job) {
    const pli_event_sink *events = pli_comm_events(job->comm);
    return job->group == NULL || events == NULL ? events : &job->sink;
}

void pli_job_raise_done(plait_job *job) {
    for (int64_t i = 0; i < job->parts; i++) pli_job_raise_done(job->part[i]);
    if (job->worker) pli_raise(job->client.sink, pli_job_me(job), false, PLI_EVENT_DONE);
    if (job->serves) pli_raise(job->server.sink, pli_job_me(job), true, PLI_EVENT_DONE);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* The members that are spares of the job: the last ones. A group of spares alone has none, since somebody holds its
 * rows. */
static int32_t spares_of(const plait_job *job, const plait_group *group) {
    const int32_t n = plait_group_size(group), first = job->layout.workers - job->layout.spares;
    int32_t       spares = 0;
    while (spares < n && plait_group_member(group, n - 1 - spares) >= first) spares++;
    return spares < n ? spares : 0;
}

/* Options are those of the whole job, which outlives its parts. */
static plait_job *make(const plait_job *job, plait_group *group) {
    plait_job *part = pli_calloc(1, sizeof *part);
    if (part == NULL) return NULL;
    part->comm = job->comm;
    part->group = group;
    part->layout = job->layout;
    part->layout.workers = plait_group_size(group);
    part->layout.spares = spares_of(job, group);
    part->layout.servers = part->layout.workers - part->layout.spares;
    part->layout.first_server = 0;
    part->layout.homes = 0;
    part->layout.first_clock = plait_job_clock_now(job);
    part->as_group = (pli_event_group){ .id = group->id, .name = group->name,
                                        .first_clock = part->layout.first_clock, .n = group->numbers.count,
                                        .rank = group->numbers.rank };
    part->sink = (pli_event_sink){ .raise = raise_in_part, .keep = keep_in_part, .user = part };
    const uint32_t id = pli_group_id(group);
    part->layout.job_hash = pli_hash_bytes(&id, sizeof id, job->layout.job_hash);
    memcpy(part->topology, job->topology, sizeof part->topology);
    memcpy(part->consistency, job->consistency, sizeof part->consistency);
    memcpy(part->filter, job->filter, sizeof part->filter);
    part->batch = job->batch;
    part->exact = job->exact;
    atomic_store_explicit(&part->clock, part->layout.first_clock, memory_order_relaxed);
    return part;
}

/* Parts stand in the order of their groups' numbers. */
static bool insert(plait_job *job, plait_job *part) {
    if (!pli_grow((void **)&job->part, &job->parts_capacity, job->parts + 1, sizeof(void *))) return false;
    int64_t at = job->parts++;
    for (; at > 0 && pli_group_id(job->part[at - 1]->group) > pli_group_id(part->group); at--)
        job->part[at] = job->part[at - 1];
    job->part[at] = part;
    part->group->uses++;
    return true;
}

/* Before any machine is made: may the group's rows have two replicas? */
static plait_status check_copies(const plait_job *job, const plait_group *group, plait_error *err) {
    const pli_scope scope = pli_layout_scope(&job->layout);
    const int32_t   spares = spares_of(job, group), n = plait_group_size(group);
    if (job->layout.replicas <= 1) return PLAIT_OK;
    return pli_pair_check(&(pli_pair){ .topology = job->topology, .consistency = job->consistency, .scope = &scope,
                                       .group = plait_group_name(group),
                                       .one_process = plait_comm_one_process(job->comm) != 0,
                                       .replicas = job->layout.replicas, .spares = spares, .servers = n - spares },
                          err);
}

/* With two replicas the members' machines carry the group's collectives, from the first one of the part on. Members
 * that died before are absent from it, and the others begin without them. They do so without a member that has failed
 * to open its machines, too, as soon as it ends: it has no way to tell them. */
static plait_status open_part(plait_job *part, plait_error *err) {
    PLI_TRY(pli_job_open_machines(part, err));
    if (part->layout.replicas <= 1) return PLAIT_OK;
    return pli_group_carry(part->group, &(pli_carrier){ .gather = pli_job_gather, .user = part }, err);
}

plait_status pli_job_part(plait_job *job, plait_group *group, plait_job **part_out, plait_error *err) {
    for (int64_t i = 0; i < job->parts; i++) {
        if (job->part[i]->group != group) continue;
        *part_out = job->part[i];
        return PLAIT_OK;
    }
    if (job->left) return pli_fail(err, PLAIT_EINVAL, "plait_table_create after plait_job_leave");
    PLI_TRY(check_copies(job, group, err));
    plait_job *part = make(job, group);
    if (part == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for tables of a group");
    plait_status  status = open_part(part, err);
    const int64_t clock = part->layout.first_clock;
    if (status >= 0 || part->layout.replicas <= 1)
        status = pli_job_agree(part, "the first table of a group", pli_hash_bytes(&clock, sizeof clock, 17), status,
                               err);
    if (status >= 0 && !insert(job, part)) status = pli_fail(err, PLAIT_ENOMEM, "no memory for tables of a group");
    if (status < 0) pli_group_carry_no_more(group);
    if (status < 0) pli_job_free(part);
    else *part_out = part;
    return status;
}
