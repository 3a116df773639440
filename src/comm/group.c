/* Groups: how they are made, and what they know. Their collectives are in collectives.c, with those of all workers. */
#include "comm/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "comm/callback.h"

/* --- numbers ------------------------------------------------------------------------------------------------------ */

int32_t pli_numbers_of(const pli_numbers *numbers, int32_t rank) {
    if (numbers == NULL) return rank;
    int32_t low = 0, high = numbers->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (numbers->rank[middle] < rank) low = middle + 1;
        else high = middle;
    }
    return low < numbers->count && numbers->rank[low] == rank ? low : -1;
}

bool pli_numbers_make(int32_t n, const int32_t *workers, int32_t first_server, int32_t servers, pli_numbers *out) {
    int32_t *rank = pli_array((size_t)n + (size_t)servers, sizeof *rank);
    if (rank == NULL) return false;
    memcpy(rank, workers, (size_t)n * sizeof *rank);
    for (int32_t s = 0; s < servers; s++) rank[n + s] = first_server + s;
    *out = (pli_numbers){ .members = n, .count = n + servers, .rank = rank };
    return true;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static bool is_printable(const char *name) {
    size_t bytes = strlen(name);
    for (size_t i = 0; i < bytes; i++)
        if (name[i] < ' ' || name[i] > '~') return false;
    return bytes > 0 && bytes < PLI_GROUP_NAME;
}

static plait_status check(const plait_comm *comm, const char *name, int32_t n, const int32_t *sorted,
                          plait_error *err) {
    if (!is_printable(name))
        return pli_fail(err, PLAIT_EINVAL, "a group's name has 1 to %d printable bytes", PLI_GROUP_NAME - 1);
    for (int32_t i = 0; i < n; i++) {
        if (sorted[i] < 0 || sorted[i] >= comm->world->place.workers)
            return pli_fail(err, PLAIT_EINVAL, "group %s: rank %d is no worker; they are 0 to %d", name, sorted[i],
                            comm->world->place.workers - 1);
        if (i > 0 && sorted[i] == sorted[i - 1])
            return pli_fail(err, PLAIT_EINVAL, "group %s: rank %d is named twice", name, sorted[i]);
    }
    return PLAIT_OK;
}

static int by_rank(const void *a, const void *b) {
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void free_group(plait_group *group) {
    pli_port_close(&group->port);
    if (group->me >= 0) pli_collective_destroy(&group->collective);
    pli_hosts_free(&group->hosts);
    pli_free(group->numbers.rank);
    pli_free(group->carriage.absent);
    pli_free(group);
}

static bool make_hosts(const pli_world *world, const pli_numbers *numbers, pli_hosts *out) {
    int32_t *host_of = pli_array((size_t)numbers->members, sizeof *host_of);
    for (int32_t i = 0; host_of != NULL && i < numbers->members; i++)
        host_of[i] = world->hosts.host[numbers->rank[i]];
    bool made = host_of != NULL && pli_hosts_make(host_of, numbers->members, out);
    pli_free(host_of);
    return made;
}

/* sorted [n] is checked. */
static plait_status make(plait_comm *comm, uint32_t id, const char *name, int32_t n, const int32_t *sorted,
                         plait_group **group_out, plait_error *err) {
    const pli_world *world = comm->world;
    plait_group     *group = pli_calloc(1, sizeof *group);
    if (group == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for group %s", name);
    group->comm = comm;
    group->id = id;
    group->me = -1;
    snprintf(group->name, sizeof group->name, "%s", name);
    bool made = pli_numbers_make(n, sorted, world->place.workers, world->place.servers, &group->numbers) &&
                make_hosts(world, &group->numbers, &group->hosts);
    int32_t me = made && pli_comm_is_worker(comm) ? pli_numbers_of(&group->numbers, comm->rank) : -1;
    if (made && me >= 0) {
        made = pli_collective_init(&group->collective, me, n, world->place.resend_after_ns);
        group->collective.rank = group->numbers.rank;
        if (made) group->me = me;
    }
    if (!made) {
        free_group(group);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for group %s", name);
    }
    *group_out = group;
    return PLAIT_OK;
}

static plait_status prepare(plait_comm *comm, const char *name, int32_t n, const int32_t *workers,
                            plait_group **group_out) {
    plait_error *err = &comm->error;
    if (n < 1 || n > comm->world->place.workers)
        return pli_fail(err, PLAIT_EINVAL, "group %.47s of %d workers; expected 1 to %d", name, n,
                        comm->world->place.workers);
    if (comm->n_groups + 1 >= PLI_GROUPS_MAX)
        return pli_fail(err, PLAIT_EREFUSED, "group %.47s: a run has at most %d groups, and that many were made", name,
                        PLI_GROUPS_MAX - 1);
    int32_t *sorted = pli_array((size_t)n, sizeof *sorted);
    if (sorted == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for group %.47s", name);
    memcpy(sorted, workers, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_rank);
    plait_status status = check(comm, name, n, sorted, err);
    if (status >= 0) status = make(comm, comm->n_groups + 1, name, n, sorted, group_out, err);
    pli_free(sorted);
    return status;
}

/* What each worker says of the group that it makes. */
typedef struct vote {
    uint64_t hash;
    int64_t  status;
} vote;

/* Do all workers make the same group? status: the caller's own part; its text is kept if it is a failure. */
static plait_status agree(plait_comm *comm, const char *name, uint64_t hash, plait_status status) {
    const int32_t workers = comm->world->place.workers;
    plait_error   own = comm->error;
    vote          mine = { .hash = hash, .status = status }, *all = pli_array((size_t)workers, sizeof *all);
    if (all == NULL) return pli_fail(&comm->error, PLAIT_ENOMEM, "no memory to agree on group %.47s", name);
    plait_status sent = plait_comm_allgather(comm, &mine, sizeof mine, all);
    if (status < 0) comm->error = own;
    else status = sent;
    for (int32_t w = 0; status >= 0 && w < workers; w++) {
        if (pli_comm_is_absent(comm, w)) continue;
        if (all[w].status < 0)
            status = pli_fail(&comm->error, PLAIT_EMISMATCH, "group %s: rank %d failed: %s", name, w,
                              plait_status_text((plait_status)all[w].status));
        else if (all[w].hash != hash)
            status = pli_fail(&comm->error, PLAIT_EMISMATCH,
                              "group %s: rank %d gives another name or other members than rank %d", name, w,
                              comm->rank);
    }
    pli_free(all);
    return status;
}

static plait_status create(plait_comm *comm, const char *name, int32_t n, const int32_t *workers,
                           plait_group **group_out) {
    plait_group *group = NULL;
    uint64_t     hash = 0;
    plait_status status = prepare(comm, name, n, workers, &group);
    if (status >= 0 && group->me >= 0) /* messages of others may come from now on */
        status = pli_port_open_in(comm, group, PLI_PORT_COLLECTIVE, &pli_collective_ops, &group->collective,
                                  &group->port, &comm->error);
    if (status >= 0)
        hash = pli_hash_bytes(group->numbers.rank, (size_t)n * sizeof(int32_t),
                              pli_hash_bytes(name, strlen(name), group->id));
    status = agree(comm, name, hash, status);
    comm->n_groups++; /* the same on all workers, whatever the outcome */
    if (status < 0) {
        if (group != NULL) free_group(group);
        return pli_comm_failed(comm);
    }
    group->next = comm->groups;
    comm->groups = group;
    *group_out = group;
    return PLAIT_OK;
}

plait_status plait_group_create(plait_comm *comm, const char *name, int32_t n, const int32_t *workers,
                                plait_group **group_out) {
    static const char call[] = "plait_group_create";
    PLI_TRY(pli_comm_usable(comm, call));
    PLI_TRY(pli_comm_given(comm, call, "name", name));
    PLI_TRY(pli_comm_given(comm, call, "workers", workers));
    PLI_TRY(pli_comm_given(comm, call, "group_out", group_out));
    if (!pli_comm_is_worker(comm)) {
        pli_fail(&comm->error, PLAIT_EINVAL, "rank %d is a server; only workers make groups", comm->rank);
        return pli_comm_failed(comm);
    }
    pli_comm_enter(comm, call);
    return pli_comm_leave(comm, create(comm, name, n, workers, group_out));
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

plait_status plait_group_destroy(plait_group **group_ptr) {
    plait_group *group = group_ptr == NULL ? NULL : *group_ptr;
    if (group == NULL) return PLAIT_OK;
    PLI_TRY(pli_callback_refuses(__func__));
    plait_comm *comm = group->comm;
    if (group->uses > 0) {
        pli_fail(&comm->error, PLAIT_EINVAL, "group %s: %d calls or tables of it are still there", group->name,
                 group->uses);
        return pli_comm_failed(comm);
    }
    *group_ptr = NULL;
    group->ended = true;
    if (comm->world->place.resend_after_ns > 0) return PLAIT_OK; /* its last messages may have to be sent again */
    plait_group **at = &comm->groups;
    while (*at != group) at = &(*at)->next;
    *at = group->next;
    free_group(group);
    return PLAIT_OK;
}

void pli_groups_free(plait_comm *comm) {
    for (plait_group *group; (group = comm->groups) != NULL;) {
        comm->groups = group->next;
        group->port = NULL; /* closed with all others of the rank */
        free_group(group);
    }
}

/* --- what is known of a group ------------------------------------------------------------------------------------- */

const char *plait_group_name(const plait_group *group) { return group == NULL ? "" : group->name; }
int32_t     plait_group_size(const plait_group *group) { return group == NULL ? 0 : group->numbers.members; }
int32_t     plait_group_member(const plait_group *group, int32_t number) {
    return group == NULL || number < 0 || number >= group->numbers.members ? -1 : group->numbers.rank[number];
}
int32_t      plait_group_rank(const plait_group *group) { return group == NULL ? -1 : group->me; }
plait_group *plait_group_at(plait_group *group, const char *file, int32_t line) {
    if (group != NULL) (void)plait_comm_at(group->comm, file, line);
    return group;
}

/* --- the ports of a rank ------------------------------------------------------------------------------------------ */

/* Puts what was made into its place. If another thread was faster, made is freed, and its own is there. */
static pli_group_chunk *chunk_of(plait_comm *comm, uint32_t id) {
    _Atomic(pli_group_chunk *) *at = &comm->chunk[id / PLI_CHUNK];
    pli_group_chunk            *there = atomic_load_explicit(at, memory_order_acquire);
    if (there != NULL) return there;
    pli_group_chunk *made = pli_calloc(1, sizeof *made);
    if (made == NULL || atomic_compare_exchange_strong(at, &there, made)) return made;
    pli_free(made);
    return there;
}

static pli_group_ports *ports_of(plait_comm *comm, uint32_t id) {
    pli_group_chunk *chunk = chunk_of(comm, id);
    if (chunk == NULL) return NULL;
    _Atomic(pli_group_ports *) *at = &chunk->ports[id % PLI_CHUNK];
    pli_group_ports            *there = atomic_load_explicit(at, memory_order_acquire);
    if (there != NULL) return there;
    pli_group_ports *made = pli_aligned(sizeof *made);
    if (made == NULL) return NULL;
    for (uint32_t p = 0; p < PLI_PORT_MAX; p++) pli_port_init(&made->port[p], comm, id * PLI_PORT_MAX + p);
    if (!atomic_compare_exchange_strong(at, &there, made)) {
        pli_free(made);
        return there;
    }
    uint32_t to = atomic_load(&comm->groups_to);
    while (to <= id && !atomic_compare_exchange_weak(&comm->groups_to, &to, id + 1)) {}
    return made;
}

pli_port *pli_comm_port(plait_comm *comm, uint32_t number) {
    if (number < PLI_PORT_MAX) return &comm->ports[number];
    pli_group_ports *ports = ports_of(comm, number / PLI_PORT_MAX);
    return ports == NULL ? NULL : &ports->port[number % PLI_PORT_MAX];
}

pli_port *pli_comm_next_port(plait_comm *comm, uint32_t *at) {
    for (;;) {
        uint32_t number = *at, id = number / PLI_PORT_MAX;
        if (id == 0) {
            ++*at;
            return &comm->ports[number];
        }
        if (id >= atomic_load(&comm->groups_to)) return NULL;
        pli_group_chunk *chunk = atomic_load_explicit(&comm->chunk[id / PLI_CHUNK], memory_order_acquire);
        pli_group_ports *ports =
            chunk == NULL ? NULL : atomic_load_explicit(&chunk->ports[id % PLI_CHUNK], memory_order_acquire);
        if (ports != NULL) {
            ++*at;
            return &ports->port[number % PLI_PORT_MAX];
        }
        *at = (id + 1) * PLI_PORT_MAX;
    }
}

void pli_comm_free_ports(plait_comm *comm) {
    for (uint32_t c = 0; c < PLI_GROUPS_MAX / PLI_CHUNK; c++) {
        pli_group_chunk *chunk = atomic_load(&comm->chunk[c]);
        for (uint32_t i = 0; chunk != NULL && i < PLI_CHUNK; i++) pli_free(atomic_load(&chunk->ports[i]));
        pli_free(chunk);
    }
}
