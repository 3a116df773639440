/* topologies ps and local - rows on shards, read and updated by messages. Under ps shards lie on servers (the ranks
 * of the workers, or ranks of their own); under local there is one shard a table in the one process, the same
 * machines are run in place by whoever calls, and what read() returns is the published slab itself.
 *
 * Paper: Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014. */
#include <stdio.h>
#include <string.h>

#include "table/events.h"
#include "table/state/rest.h"
#include "table/state/state.h"
#include "table/state/values.h"
#include "table/table.h"

enum { WHAT_BYTES = 128 };

/* --- creation -------------------------------------------------------------------------------------------------- */

/* One shard's CREATE: the description, and its rows of initial values and penalty factors. */
static pli_msg *make_create(const plait_table *table, int32_t shard, const void *initial, const void *penalty) {
    const pli_spec *spec = &table->spec;
    int64_t         first = 0, n = 0, row_bytes = pli_row_bytes(spec);
    if (spec->rows > 0) pli_placement_range(&spec->placement, shard, &first, &n);
    uint64_t        bytes = (uint64_t)(n * row_bytes);
    pli_wire_create create = { .job_hash = table->job->layout.job_hash,
                               .spec_hash = pli_spec_hash(spec, initial, penalty),
                               .initial_bytes = initial == NULL ? 0 : bytes,
                               .penalty_bytes = penalty == NULL ? 0 : bytes };
    pli_spec_encode(spec, &create.spec);
    uint64_t names = spec->filter[0] == '\0' ? 0 : pli_pad8(strlen(spec->filter) + 1);
    pli_msg *msg = pli_msg_new(sizeof create + pli_pad8(create.initial_bytes) + pli_pad8(create.penalty_bytes) + names);
    if (msg == NULL) return NULL;
    unsigned char *body = pli_msg_body(msg);
    msg->head.clock = plait_job_clock_now(table->job);
    memcpy(body, &create, sizeof create);
    body += sizeof create;
    if (initial != NULL) memcpy(body, pli_at_const(initial, first * row_bytes), bytes);
    if (penalty != NULL) memcpy(body + pli_pad8(create.initial_bytes), pli_at_const(penalty, first * row_bytes), bytes);
    if (names > 0)
        strncpy((char *)body + pli_pad8(create.initial_bytes) + pli_pad8(create.penalty_bytes), spec->filter, names);
    return msg;
}

static plait_status create_shards(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    plait_job           *job = table->job;
    const pli_placement *placement = &table->spec.placement;
    pli_ticket           ticket;
    pli_exchange         x;
    char                 what[WHAT_BYTES];
    plait_status         status = PLAIT_OK;
    snprintf(what, sizeof what, "creation of table %s", table->spec.name);
    pli_exchange_begin(&x, job, &ticket);
    pli_client_count_bytes(&job->client, pli_served_of(table));
    for (int32_t shard = 0; status >= 0 && shard < placement->shards; shard++)
        status = pli_client_send(&job->client, x.now_ns, pli_placement_rank(placement, shard) - placement->first_rank,
                                 PLI_CREATE, make_create(table, shard, initial, penalty), &ticket, &x.out, err);
    status = pli_exchange_wait(&x, status, what, err);
    pli_ticket_free(&ticket);
    return status;
}

static int32_t teller_of(const plait_table *table) {
    const plait_job *job = table->job;
    return pli_heir_of(pli_job_absentees(job), job->layout.workers, job->layout.spares,
                       table->spec.id % job->layout.workers, (uint64_t)table->spec.id);
}

/* One worker, not always the same, tells the servers. Nobody else uses the table before they have answered. If that
 * worker dies meanwhile, and the job goes on, another tells them once more. A worker that was started anew tells all of
 * them by itself: a server that knows the table compares the options, and answers. */
static plait_status served_open(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    plait_job   *job = table->job;
    pli_client_table *served = NULL;
    plait_status      status = pli_client_table_open(&table->spec, &job->layout, &served, err);
    if (status >= 0) status = pli_client_filters_penalty(served, penalty, err);
    table->state = served;
    char    what[WHAT_BYTES];
    int32_t teller;
    snprintf(what, sizeof what, "table %s", table->spec.name);
    do {
        teller = teller_of(table);
        if (status >= 0 && (pli_job_me(job) == teller || pli_job_lives_anew(job)))
            status = create_shards(table, initial, penalty, err);
        status = pli_job_agree(job, what, 0, status, err);
    } while (status >= 0 && pli_job_is_absent(job, teller));
    if (status < 0) return status;
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(job->client_port, &now_ns, &out); /* the machine sees which servers are used */
    status = pli_client_add_table(&job->client, served, err);
    pli_raise_table(job->client.sink, pli_job_me(job), &table->spec, PLI_WAY_SERVED);
    pli_port_leave(job->client_port, &out);
    return status;
}

/* One worker tells the servers, as when a table is created. */
static plait_status served_drop(plait_table *table, plait_error *err) {
    plait_job   *job = table->job;
    plait_status status = PLAIT_OK;
    if (pli_job_me(job) == teller_of(table)) status = pli_state_drop(table, err);
    PLI_TRY(pli_job_agree(job, "a table's end", 0, status, err));
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(job->client_port, &now_ns, &out);
    pli_client_remove_table(&job->client, pli_served_of(table));
    pli_port_leave(job->client_port, &out);
    return PLAIT_OK;
}

static void served_close(plait_table *table) {
    pli_table_unpin(table);
    pli_client_table *served = table->state;
    table->state = NULL;
    pli_client_table_close(&served);
}

/* --- get --------------------------------------------------------------------------------------------------------- */

struct pli_get_request {
    plait_request     base; /* first: a plait_request is this */
    plait_job        *job;
    pli_ask           ask;
    bool              complete;
    plait_status      status;
    plait_error       error;
    pli_get_request **at, *next; /* in job->gets while not complete */
};

/* Enters the port and asks; pli_exchange_send or await follows. */
static plait_status begin(pli_exchange *x, plait_table *table, const pli_rows *rows, void *values, pli_ask *ask,
                          plait_error *err) {
    pli_client *client = &table->job->client;
    pli_exchange_enter(x, table->job, &ask->ticket);
    if (rows->keys != NULL)
        return pli_ask_keys(client, x->now_ns, pli_served_of(table), rows->n, rows->keys, values, ask, &x->out, err);
    return pli_ask_range(client, x->now_ns, pli_served_of(table), rows->first, rows->n, values, ask, &x->out, err);
}

/* Waits, and fills in the answers; the caller abandons the ask. status: how asking went. */
static plait_status await(pli_exchange *x, plait_status status, pli_ask *ask, plait_error *err) {
    status = pli_exchange_wait(x, status, NULL, err);
    return status < 0 ? status : pli_ask_finish(&x->job->client, ask, err);
}

static plait_status served_get(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    pli_ask      ask;
    pli_exchange x;
    plait_status status = begin(&x, table, rows, values, &ask, err);
    status = await(&x, status, &ask, err);
    pli_ask_abandon(&ask);
    return status;
}

static void complete_request(pli_get_request *request) {
    plait_job *job = request->job;
    pli_ask   *ask = &request->ask;
    if (request->complete) return;
    request->status = pli_job_wait(job, &ask->ticket, NULL, &request->error);
    if (request->status >= 0) request->status = pli_ask_finish(&job->client, ask, &request->error);
    request->complete = true;
    pli_ask_abandon(&request->ask);
    *request->at = request->next;
    if (request->next != NULL) request->next->at = request->at;
}

static plait_status wait_for_get(plait_request *base) {
    pli_get_request *request = (pli_get_request *)base;
    plait_comm      *comm = request->job->comm;
    pli_comm_enter(comm, "plait_request_wait of plait_table_get_begin");
    complete_request(request);
    plait_status status = request->status;
    if (status < 0) *pli_job_error(request->job) = request->error;
    pli_free(request);
    return pli_comm_leave(comm, status);
}

void pli_served_finish_gets(plait_job *job) {
    while (job->gets != NULL) complete_request(job->gets);
}

static plait_status served_get_begin(plait_table *table, const pli_rows *rows, void *values,
                                     plait_request **request_out, plait_error *err) {
    plait_job       *job = table->job;
    pli_get_request *request = pli_calloc(1, sizeof *request);
    if (request == NULL) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a get", table->spec.name);
    request->base.wait = wait_for_get;
    request->job = job;
    pli_exchange x;
    plait_status status = begin(&x, table, rows, values, &request->ask, err);
    if (pli_exchange_send(&x, status) < 0) {
        pli_ask_abandon(&request->ask);
        pli_free(request);
        return status;
    }
    request->at = &job->gets;
    request->next = job->gets;
    if (job->gets != NULL) job->gets->at = &request->next;
    job->gets = request;
    *request_out = &request->base;
    return PLAIT_OK;
}

/* --- read --------------------------------------------------------------------------------------------------------- */

static bool is_pinned(const plait_table *table, const pli_msg *msg) {
    for (const pli_msg *at = table->pins; at != NULL; at = at->next)
        if (at->body == msg->body && at->offset == msg->offset) return true;
    return false;
}

/* The one piece that covers the range and needs no update laid over it, or NULL. */
static const pli_held *sole_piece(const plait_table *table, const pli_ask *ask) {
    const pli_pending *pending = &pli_served_of(table)->pending;
    if (pending->touched && pli_client_own_scale(&table->job->client, pli_served_of(table)) != 0) return NULL;
    for (int32_t s = 0; s < table->spec.placement.shards; s++) {
        const pli_held *piece = &ask->piece[s];
        if (piece->msg != NULL && piece->first <= ask->first && piece->first + piece->n >= ask->first + ask->n)
            return piece;
    }
    return NULL;
}

/* Pieces side by side in memory of their own. */
static plait_status assemble(plait_table *table, pli_ask *ask, const void **values_out, plait_error *err) {
    pli_msg *whole = pli_msg_new((size_t)(ask->n * pli_row_bytes(&table->spec)));
    if (whole == NULL) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a read", table->spec.name);
    ask->values = pli_msg_body(whole);
    pli_ticket_free(&ask->ticket); /* its answers are pieces already */
    plait_status status = pli_ask_finish(&table->job->client, ask, err);
    *values_out = ask->values;
    pli_table_pin(table, whole);
    return status;
}

static plait_status lend(plait_table *table, pli_ask *ask, const void **values_out, plait_error *err) {
    const pli_held *piece = sole_piece(table, ask);
    if (piece == NULL) return assemble(table, ask, values_out, err);
    *values_out = pli_at_const(pli_msg_body(piece->msg), (ask->first - piece->first) * pli_row_bytes(&table->spec));
    pli_raise_get(&table->job->client, ask);
    if (is_pinned(table, piece->msg)) return PLAIT_OK;
    pli_msg *pinned = pli_msg_copy(piece->msg);
    if (pinned == NULL) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a read", table->spec.name);
    pli_table_pin(table, pinned);
    return PLAIT_OK;
}

static plait_status served_read(plait_table *table, int64_t first, int64_t n, const void **values_out,
                                plait_error *err) {
    pli_ask      ask;
    pli_exchange x;
    plait_status status = begin(&x, table, &(pli_rows){ .first = first, .n = n }, NULL, &ask, err);
    status = await(&x, status, &ask, err);
    if (status >= 0) status = lend(table, &ask, values_out, err);
    pli_ask_abandon(&ask);
    return status;
}

/* --- inc ---------------------------------------------------------------------------------------------------------- */

static pli_get_request *get_under_way(const plait_job *job, const pli_client_table *served) {
    pli_get_request *request = job->gets;
    while (request != NULL && request->ask.table != served) request = request->next;
    return request;
}

static void finish_gets_of(const plait_job *job, const pli_client_table *served) {
    pli_get_request *request;
    while ((request = get_under_way(job, served)) != NULL) complete_request(request);
}

/* Sends what is pending on the table, after the gets of it that are under way. */
static plait_status send_pending(plait_job *job, pli_client_table *served, plait_error *err) {
    if (!served->pending.touched) return PLAIT_OK;
    finish_gets_of(job, served);
    return pli_job_push(job, served, PLI_PUSH, err);
}

/* Waits until the servers let the worker into its clock (PLAIT_TURN), or have applied what was sent (PLAIT_SETTLE). */
static plait_status wait_for_servers(plait_table *table, int what, plait_error *err) {
    plait_job   *job = table->job;
    pli_ask      ask;
    pli_exchange x;
    char         name[WHAT_BYTES];
    pli_exchange_enter(&x, job, &ask.ticket);
    plait_status status = pli_ask_turn(&job->client, x.now_ns, pli_served_of(table), what, &ask, &x.out, err);
    pli_exchange_name_get(job, &ask, name, sizeof name); /* the ticket has no ask, since it gets no values */
    status = pli_exchange_wait(&x, status, name, err);
    if (status >= 0) status = pli_ask_finish(&job->client, &ask, err);
    pli_ask_abandon(&ask);
    return status;
}

static plait_status settle(plait_table *table, plait_error *err) {
    PLI_TRY(send_pending(table->job, table->state, err));
    return wait_for_servers(table, PLAIT_SETTLE, err);
}

static plait_status accept_inc(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                               plait_error *err) {
    pli_pending *pending = &pli_served_of(table)->pending;
    PLI_TRY(pli_pending_add_rows(pending, rows->n, rows->keys, rows->first, delta, examples, err));
    pli_served_of(table)->incs++;
    pli_raise_inc(table->job->client.sink, pli_job_me(table->job), &table->spec, rows->n, rows->keys,
                  rows->first, delta);
    return PLAIT_OK;
}

/* Does the worker stand in for a dead one, where nobody does? What the dead one had pushed in the clock to a table that
 * applies at once may be there. Beside sums a worker may be told to stand in for one that it has replaced already. */
static bool is_in_vain(const plait_job *job, const pli_client_table *served) {
    const pli_client *client = &job->client;
    return client->ending &&
           (!served->at_clock || memcmp(client->replaced, client->next, (size_t)client->layout.workers) == 0);
}

/* If pushes are applied at clocks, sending early gains nothing. */
static plait_status served_inc(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                               plait_error *err) {
    pli_client_resume(&table->job->client);
    int want;
    if (is_in_vain(table->job, pli_served_of(table))) return PLAIT_OK;
    PLI_TRY(pli_client_on_inc(&table->job->client, pli_served_of(table), rows->n, rows->keys, delta, &want, err));
    if (want & PLAIT_TURN) PLI_TRY(wait_for_servers(table, PLAIT_TURN, err));
    if (pli_served_of(table)->at_clock) want = 0;
    if (want & PLAIT_SETTLE_FIRST) PLI_TRY(settle(table, err));
    PLI_TRY(accept_inc(table, rows, delta, examples, err));
    if (want & PLAIT_SETTLE) return settle(table, err);
    return want & PLAIT_SEND ? send_pending(table->job, table->state, err) : PLAIT_OK;
}

/* One worker tells the servers, as when a table is created. Behind the barrier nobody holds a copy. */
static plait_status served_zero(plait_table *table, int64_t number, plait_error *err) {
    plait_job   *job = table->job;
    plait_status status = PLAIT_OK;
    int32_t      teller;
    do {
        teller = teller_of(table);
        if (pli_job_me(job) == teller) status = pli_state_zero(table, number, err);
        status = pli_job_agree(job, "a table's zeroing", 0, status, err);
    } while (status >= 0 && pli_job_is_absent(job, teller));
    pli_rest_forget(table);
    return status;
}

static void served_refresh(plait_table *table) {
    uint64_t now_ns;
    pli_out  out;
    pli_cache_forget(pli_served_of(table));
    pli_port_enter(table->job->client_port, &now_ns, &out);
    pli_cache_drop_fresh(pli_served_of(table));
    pli_port_leave(table->job->client_port, &out);
}

static void served_leave(plait_table *table) {
    pli_pending_clear(&pli_served_of(table)->pending);
    pli_served_of(table)->incs = 0;
    served_refresh(table);
}

static plait_status served_flush(plait_table *table, bool wait, bool *sent_out, plait_error *err) {
    pli_client_table *served = table->state;
    *sent_out = served->at_clock || wait || get_under_way(table->job, served) == NULL;
    return served->at_clock || !*sent_out ? PLAIT_OK : send_pending(table->job, served, err);
}

/* What a network moves in the time of about one message. */
enum { DEPART_BYTES = 32 << 10 };

/* Does a policy of the program end clocks without some workers? Plait's own policies do so with backup workers only. */
static bool ends_clocks_without_some(const pli_layout *layout, const pli_policy *policy) {
    const plait_consistency *own = layout->policies;
    for (int32_t i = 0; i < layout->n_policies; i++)
        if (policy->ops == &own[i]) return own[i].server.complete != NULL;
    return false;
}

/* If a clock may end without a worker, all of its updates must come with the end of its clock, or only some would
 * count. If a worker reads its own updates, they must be at hand until they are applied. */
static bool may_depart(const plait_table *table) {
    const plait_job  *job = table->job;
    const pli_layout *layout = &job->layout;
    const pli_policy *policy = &pli_served_of(table)->policy;
    for (int64_t i = 0; i < job->client.tables; i++) {
        const pli_client_table *served = job->client.table[i];
        if (served->at_clock && ends_clocks_without_some(layout, &served->policy)) return false;
    }
    return !table->spec.topology.kind->one_process && !layout->aggregates && layout->backup == 0 &&
           policy->ops->worker.on_clock == NULL && !(pli_served_of(table)->at_clock && policy->ops->sees_own);
}

/* A small push waits for company: the next table that is done, or the clock. */
static plait_status served_depart(plait_table *table, plait_error *err) {
    plait_job *job = table->job;
    if (!may_depart(table)) return PLAIT_OK;
    pli_served_of(table)->departs = true;
    if (pli_client_departing_bytes(&job->client) < DEPART_BYTES) return PLAIT_OK;
    for (int64_t i = 0; i < job->client.tables; i++)
        if (job->client.table[i]->departs) finish_gets_of(job, job->client.table[i]);
    return pli_job_push(job, NULL, PLI_PUSH, err);
}

/* Sends whole what filters have kept back, and with it what is pending of clocks that have ended. */
static plait_status send_kept_back(plait_job *job, pli_client_table *served, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(job->client_port, &now_ns, &out);
    plait_status status = pli_client_take_back(served, err);
    job->client.lossless = true;
    pli_port_leave(job->client_port, &out);
    if (status >= 0) status = send_pending(job, served, err);
    job->client.lossless = false;
    return status;
}

plait_status pli_served_send_kept(plait_job *job, plait_error *err) {
    for (int64_t i = 0; i < job->client.tables; i++) {
        pli_client_table *served = job->client.table[i];
        if (served->kept) PLI_TRY(send_pending(job, served, err));
        if (!served->at_clock && pli_filters_have(&served->filters, PLAIT_KEPT_BACK))
            PLI_TRY(send_kept_back(job, served, err));
    }
    return PLAIT_OK;
}

const pli_topology_ops pli_served_ops = {
    .open = served_open,
    .close = served_close,
    .get = served_get,
    .get_begin = served_get_begin,
    .read = served_read,
    .inc = served_inc,
    .flush = served_flush,
    .depart = served_depart,
    .refresh = served_refresh,
    .leave = served_leave,
    .zero = served_zero,
    .drop = served_drop,
    .call = pli_served_call,
    .dump = pli_served_dump,
    .rest_take = pli_served_rest_take,
    .rest_add = pli_served_rest_add,
    .rest_forget = pli_served_rest_forget,
};
