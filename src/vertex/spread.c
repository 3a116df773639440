/* What processes tell each other while they load a graph. See spread.h. */
#include "vertex/spread.h"

#include "comm/comm.h"
#include "data/edges/edges.h"

#ifdef PLI_TESTING
enum { IDS = 24, HELD = 32 }; /* so that a small graph takes many rounds */
#else
enum {
    IDS = 1 << 14, /* small ids that are added up at once, and others that a worker tells at once */
    HELD = 1 << 14 /* entries of a round */
};
#endif
enum {
    PRESENT_BITS = 16, /* of how many workers have an id */
    PRESENTS = 64 / PRESENT_BITS
};

static plait_status no_memory(plait_comm *comm) {
    return pli_fail(pli_comm_error(comm), PLAIT_ENOMEM, "no memory for what a graph's readers tell each other");
}

/* Is there memory at all workers? */
static plait_status all_have(plait_comm *comm, bool has) {
    int64_t lacks = !has;
    PLI_TRY(plait_comm_allreduce(comm, &lacks, 1, PLAIT_I64, PLAIT_MAX));
    return lacks == 0 ? PLAIT_OK : no_memory(comm);
}

/* --- ids ---------------------------------------------------------------------------------------------------------- */

/* Ids first .. first + n - 1: both counts in one number, which no sum of edges exceeds, and who has it. */
static void pack(const pli_counted *small, int64_t n, int64_t *sum) {
    memset(sum, 0, (size_t)(n + (n + PRESENTS - 1) / PRESENTS) * sizeof *sum);
    for (int64_t i = 0; i < n; i++) {
        if (small[i].in == 0) continue;
        sum[i] = (int64_t)((uint64_t)small[i].out << 32 | (small[i].in - 1));
        sum[n + i / PRESENTS] |= (int64_t)(UINT64_C(1) << (i % PRESENTS * PRESENT_BITS));
    }
}

static void unpack(const int64_t *sum, int64_t n, pli_counted *small) {
    for (int64_t i = 0; i < n; i++) {
        const uint64_t who = (uint64_t)sum[n + i / PRESENTS] >> (i % PRESENTS * PRESENT_BITS) & 0xffff,
                       both = (uint64_t)sum[i];
        small[i] = (pli_counted){ who > 0 ? 1 + (uint32_t)both : 0, (uint32_t)(both >> 32) };
    }
}

static plait_status add_small(plait_comm *comm, pli_census *c) {
    int64_t ids = c->smalls;
    PLI_TRY(plait_comm_allreduce(comm, &ids, 1, PLAIT_I64, PLAIT_MAX));
    int64_t     *sum = pli_array(IDS + IDS / PRESENTS + 1, sizeof *sum);
    plait_status status = all_have(comm, sum != NULL && pli_census_reach(c, ids));
    for (int64_t at = 0; status == PLAIT_OK && at < ids; at += IDS) {
        const int64_t n = ids - at < IDS ? ids - at : IDS;
        pack(c->small + at, n, sum);
        status = plait_comm_allreduce(comm, sum, n + (n + PRESENTS - 1) / PRESENTS, PLAIT_I64, PLAIT_SUM);
        if (status == PLAIT_OK) unpack(sum, n, c->small + at);
    }
    pli_free(sum);
    return status;
}

typedef struct far {
    uint64_t id;
    uint32_t in, out;
} far;

/* Those of the own piece, in no order. */
static far *list_far(const pli_census *c) {
    far    *own = pli_array((size_t)c->others + 1, sizeof *own);
    int64_t n = 0;
    for (int64_t i = 0; own != NULL && i < c->slots; i++)
        if (c->other[i].in != 0) own[n++] = (far){ c->other_id[i], c->other[i].in - 1, c->other[i].out };
    return own;
}

static bool take_far(plait_comm *comm, pli_census *c, const far *all, const size_t *sizes) {
    bool taken = true;
    for (int32_t w = 0; w < plait_comm_workers(comm); w++) {
        const int64_t n = (int64_t)(sizes[w] / sizeof *all);
        for (int64_t i = 0; w != plait_comm_rank(comm) && taken && i < n; i++)
            taken = pli_census_add(c, all[i].id, all[i].in, all[i].out);
        all += n;
    }
    return taken;
}

static plait_status add_far(plait_comm *comm, pli_census *c, const far *own, int64_t owns, size_t *sizes) {
    int64_t most = owns;
    bool    taken = true;
    PLI_TRY(plait_comm_allreduce(comm, &most, 1, PLAIT_I64, PLAIT_MAX));
    for (int64_t at = 0; at < most; at += IDS) {
        const int64_t n = at >= owns ? 0 : owns - at < IDS ? owns - at : IDS;
        void         *all = NULL;
        PLI_TRY(plait_comm_allgatherv(comm, own + (n > 0 ? at : 0), (size_t)n * sizeof *own, sizes, &all));
        taken = taken && take_far(comm, c, all, sizes);
        plait_comm_free(all);
    }
    return all_have(comm, taken);
}

plait_status pli_census_merge(plait_comm *comm, pli_census *c) {
    PLI_TRY(add_small(comm, c));
    const int64_t owns = c->others;
    far          *own = list_far(c);
    size_t       *sizes = pli_array((size_t)plait_comm_workers(comm), sizeof *sizes);
    plait_status  status = all_have(comm, own != NULL && sizes != NULL);
    if (status == PLAIT_OK) status = add_far(comm, c, own, owns, sizes);
    pli_free(own);
    pli_free(sizes);
    return status;
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

/* A message: how many entries of rows in, and out, and whether the sender goes on; then these entries. */
typedef struct head {
    uint32_t n[2];
    uint32_t more, failed;
} head;

static size_t entry_bytes(const pli_spread *s) { return s->weighted ? 12 : 8; }

plait_status pli_spread_begin(pli_spread *s) {
    if (s->comm == NULL) return PLAIT_OK;
    s->held = pli_array(HELD, sizeof *s->held);
    return s->held != NULL ? PLAIT_OK : no_memory(s->comm);
}

static void write_entry(const pli_spread *s, const pli_row_entry *e, unsigned char *to) {
    memcpy(to, &e->row, 4);
    memcpy(to + 4, &e->near, 4);
    if (s->weighted) memcpy(to + 8, &e->weight, 4);
}

/* Messages for all others, of what is held. given [workers] is NULL before. false: no memory. */
static bool write_all(const pli_spread *s, const head *mine, pli_msg **given) {
    const int32_t workers = plait_comm_workers(s->comm), me = plait_comm_rank(s->comm);
    head         *to = pli_calloc((size_t)workers, sizeof *to);
    bool          made = to != NULL;
    for (int64_t k = 0; made && k < s->n; k++) to[s->held[k].part].n[s->held[k].out]++;
    for (int32_t w = 0; made && w < workers; w++) {
        if (w == me) continue;
        to[w].more = mine->more;
        to[w].failed = mine->failed;
        given[w] = pli_msg_new(sizeof *to + ((size_t)to[w].n[0] + to[w].n[1]) * entry_bytes(s));
        made = given[w] != NULL;
        if (made) memcpy(pli_msg_body(given[w]), &to[w], sizeof *to);
        to[w].n[1] = to[w].n[0]; /* from now on: where the next one goes */
        to[w].n[0] = 0;
    }
    for (int64_t k = 0; made && k < s->n; k++) {
        const pli_row_entry *e = &s->held[k];
        unsigned char   *body = pli_msg_body(given[e->part]);
        write_entry(s, e, body + sizeof *to + to[e->part].n[e->out]++ * entry_bytes(s));
    }
    pli_free(to);
    return made;
}

/* false: it is no such message, or there is no place for an entry. */
static bool read_one(const pli_spread *s, const pli_msg *msg, int32_t from, head *h) {
    const unsigned char *body = pli_msg_body(msg);
    if (msg->head.body_bytes < sizeof *h) return false;
    memcpy(h, body, sizeof *h);
    const uint64_t n = (uint64_t)h->n[0] + h->n[1];
    if (msg->head.body_bytes != sizeof *h + n * entry_bytes(s)) return false;
    body += sizeof *h;
    for (uint64_t k = 0; k < n; k++, body += entry_bytes(s)) {
        pli_row_entry e = { .out = k >= h->n[0] };
        memcpy(&e.row, body, 4);
        memcpy(&e.near, body + 4, 4);
        if (s->weighted) memcpy(&e.weight, body + 8, 4);
        if (!s->take(s->user, &e, from)) return false;
    }
    return true;
}

static plait_status exchange(const pli_spread *s, pli_msg **given, pli_msg **came) {
    plait_request *request = NULL;
    PLI_TRY(pli_comm_exchange_begin(s->comm, NULL, given, came, &request));
    return plait_request_wait(&request);
}

/* *more: does anybody go on? given and came [workers] are NULL. */
static plait_status round_of(pli_spread *s, bool *more, pli_msg **given, pli_msg **came) {
    const int32_t workers = plait_comm_workers(s->comm), me = plait_comm_rank(s->comm);
    const head    mine = { .more = *more, .failed = s->status < 0 };
    bool          placed = true;
    if (!write_all(s, &mine, given)) {
        for (int32_t w = 0; w < workers; w++) pli_msg_free(&given[w]);
        return no_memory(s->comm);
    }
    s->n = 0;
    PLI_TRY(exchange(s, given, came));
    s->broken = mine.failed != 0;
    for (int32_t w = 0; w < workers; w++) {
        head h = { 0 };
        if (w == me) continue;
        placed = read_one(s, came[w], w, &h) && placed;
        *more = *more || h.more != 0;
        s->broken = s->broken || h.failed != 0;
        pli_msg_free(&came[w]);
    }
    if (!placed && s->status == PLAIT_OK) s->status = pli_edges_changed(pli_comm_error(s->comm));
    return PLAIT_OK;
}

static plait_status go_round(pli_spread *s, bool *more) {
    const size_t workers = (size_t)plait_comm_workers(s->comm);
    pli_msg    **given = pli_calloc(workers, sizeof(pli_msg *)), **came = pli_calloc(workers, sizeof(pli_msg *));
    plait_status status = given != NULL && came != NULL ? round_of(s, more, given, came) : no_memory(s->comm);
    pli_free(given);
    pli_free(came);
    return status;
}

bool pli_spread_put(pli_spread *s, const pli_row_entry *e) {
    bool more = true;
    if (e->part == plait_comm_rank(s->comm)) return s->take(s->user, e, e->part);
    s->held[s->n++] = *e;
    if (s->n < HELD) return true;
    const plait_status status = go_round(s, &more);
    if (status < 0) s->status = status;
    return status == PLAIT_OK && !s->broken;
}

/* What comes in the last round may have no place, and no round is left to say so. A worker that fails alone would leave
 * the others in their next collective. */
static plait_status hear_of_the_last(pli_spread *s) {
    int64_t failed = s->status < 0;
    plait_status status = plait_comm_allreduce(s->comm, &failed, 1, PLAIT_I64, PLAIT_MAX);
    s->broken = failed != 0;
    return s->status < 0 ? s->status : status;
}

plait_status pli_spread_end(pli_spread *s, plait_status status) {
    bool more = true;
    if (s->status == PLAIT_OK && !s->broken) s->status = status;
    while (more && !s->broken && s->comm != NULL) {
        more = false;
        const plait_status went = go_round(s, &more);
        if (went < 0) s->status = went, more = false;
    }
    pli_free(s->held);
    s->held = NULL;
    if (s->comm != NULL && !s->broken) PLI_TRY(hear_of_the_last(s));
    if (s->status < 0 || !s->broken) return s->status;
    return pli_fail(pli_comm_error(s->comm), PLAIT_EPEER, "another process could not go on to read the graph");
}
