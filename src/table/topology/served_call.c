/* Server functions over tables on shards: one message to each shard that owns rows of the call's range, whose answers
 * are merged. A call that updates goes to all shards of the table: one that owns none of the range only compares the
 * workers' calls, so that workers with different ranges meet, and are told. */
#include <stdio.h>
#include <string.h>

#include "table/server/functions.h"
#include "table/table.h"

enum { WHAT_BYTES = 128 };

static pli_msg *make_call(const plait_job *job, plait_table *const *tables, int32_t n, const pli_function_call *call) {
    uint64_t      numbers = pli_pad8((uint64_t)n * 4);
    pli_wire_call wire = { .function = (uint32_t)(call->fn - job->layout.functions), .updates = call->fn->updates != 0,
                           .n_tables = (uint32_t)n, .met = job->client.met, .first = call->first, .rows = call->rows,
                           .number = call->fn->updates ? job->client.calls : 0,
                           .args_bytes = call->args_bytes, .answer_bytes = call->answer_bytes };
    pli_msg *msg = pli_msg_new(sizeof wire + numbers + call->args_bytes);
    if (msg == NULL) return NULL;
    unsigned char *body = pli_msg_body(msg);
    memset(body, 0, sizeof wire + numbers);
    memcpy(body, &wire, sizeof wire);
    for (int32_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)tables[i]->spec.id;
        memcpy(body + sizeof wire + 4 * i, &id, sizeof id);
    }
    if (call->args_bytes > 0) memcpy(body + sizeof wire + numbers, call->args, call->args_bytes);
    msg->head.clock = job->client.clock;
    return msg;
}

/* Does the shard own rows of the range? */
static bool owns(const pli_placement *placement, int32_t shard, const pli_function_call *call) {
    int64_t first, n;
    if (placement->rows == 0) return true;
    pli_placement_range(placement, shard, &first, &n);
    return call->rows > 0 && first < call->first + call->rows && call->first < first + n;
}

/* ran [shards]: digests of the answers. */
static plait_status merge_answers(const plait_table *table, const pli_function_call *call, const pli_ticket *ticket,
                                  void *answer, pli_event_ran *ran, plait_error *err) {
    const pli_placement *placement = &table->spec.placement;
    bool                 any = false;
    if (call->answer_bytes > 0) memset(answer, 0, call->answer_bytes);
    for (int32_t shard = 0; shard < placement->shards; shard++) {
        const pli_msg *reply = ticket->replies;
        ran[shard] = (pli_event_ran){ .shard = shard };
        if (!owns(placement, shard, call)) continue;
        while (reply != NULL && reply->head.src != pli_placement_rank(placement, shard)) reply = reply->next;
        if (reply == NULL || reply->head.body_bytes != call->answer_bytes)
            return pli_fail(err, PLAIT_EFORMAT, "shard %d of table %s answered a call wrongly", shard,
                            table->spec.name);
        ran[shard].answer = pli_function_answered(pli_msg_body(reply), call->answer_bytes);
        if (call->answer_bytes == 0) continue;
        if (!any) memcpy(answer, pli_msg_body(reply), call->answer_bytes);
        else PLI_TRY(pli_function_merge(call->fn, answer, pli_msg_body(reply), call->answer_bytes, err));
        any = true;
    }
    return PLAIT_OK;
}

static plait_status ask_call(plait_table *const *tables, int32_t n, const pli_function_call *call, pli_ticket *ticket,
                             plait_error *err) {
    plait_job           *job = tables[0]->job;
    const pli_placement *placement = &tables[0]->spec.placement;
    pli_exchange         x;
    char                 what[WHAT_BYTES];
    plait_status         status = PLAIT_OK;
    snprintf(what, sizeof what, "server function %s on table %s", call->fn->name, tables[0]->spec.name);
    pli_exchange_begin(&x, job, ticket);
    for (int32_t shard = 0; status >= 0 && shard < placement->shards; shard++) {
        if (!call->fn->updates && !owns(placement, shard, call)) continue;
        status = pli_client_send(&job->client, x.now_ns, pli_placement_rank(placement, shard) - placement->first_rank,
                                 PLI_CALL, make_call(job, tables, n, call), ticket, &x.out, err);
    }
    return pli_exchange_wait(&x, status, what, err);
}

/* A table's shards lie from server (its number) on; for one call all tables' must coincide. */
plait_status pli_served_call(plait_table *const *tables, int32_t n, const pli_function_call *call, void *answer,
                             plait_error *err) {
    pli_ticket ticket;
    if (call->fn->updates && tables[0]->job->client.lost_count)
        return pli_fail(err, PLAIT_EINVAL,
                        "server function %s by a worker that has joined the job: it does not know how many such calls "
                        "there were; let workers that stay call it before others join", call->fn->name);
    pli_served_finish_gets(tables[0]->job);
    for (int32_t i = 0; call->fn->updates && i < n; i++) pli_table_unpin(tables[i]);
    for (int32_t i = 0; call->fn->updates && i < n; i++) pli_cache_forget(pli_served_of(tables[i]));
    if (call->fn->updates) tables[0]->job->client.calls++;
    const int32_t  shards = tables[0]->spec.placement.shards;
    pli_event_ran *ran = pli_calloc((size_t)shards, sizeof *ran);
    if (ran == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the answers of %d shards", shards);
    plait_status status = ask_call(tables, n, call, &ticket, err);
    if (status >= 0) status = merge_answers(tables[0], call, &ticket, answer, ran, err);
    if (call->fn->updates) pli_table_raise_call(tables, n, call, status < 0 ? 0 : shards, ran);
    pli_free(ran);
    pli_ticket_free(&ticket);
    return status;
}
