/* Server functions over tables on shards: one message to each shard, whose answers are merged. */
#include <stdio.h>
#include <string.h>

#include "table/server/functions.h"
#include "table/table.h"

enum { WHAT_BYTES = 128 };

static pli_msg *make_call(const plait_job *job, plait_table *const *tables, int32_t n, int32_t function,
                          const void *args, size_t args_bytes, size_t answer_bytes) {
    uint64_t      numbers = pli_pad8((uint64_t)n * 4);
    pli_wire_call call = { .function = (uint32_t)function, .updates = job->functions[function].updates != 0,
                           .n_tables = (uint32_t)n, .met = job->client.met, .args_bytes = args_bytes,
                           .answer_bytes = answer_bytes };
    pli_msg *msg = pli_msg_new(sizeof call + numbers + args_bytes);
    if (msg == NULL) return NULL;
    unsigned char *body = pli_msg_body(msg);
    memset(body, 0, sizeof call + numbers);
    memcpy(body, &call, sizeof call);
    for (int32_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)tables[i]->spec.id;
        memcpy(body + sizeof call + 4 * i, &id, sizeof id);
    }
    if (args_bytes > 0) memcpy(body + sizeof call + numbers, args, args_bytes);
    msg->head.clock = job->client.clock;
    return msg;
}

static plait_status merge_answers(const plait_job *job, const plait_table *table, int32_t function,
                                  const pli_ticket *ticket, void *answer, size_t answer_bytes, plait_error *err) {
    const pli_placement *placement = &table->spec.placement;
    for (int32_t shard = 0; shard < placement->shards; shard++) {
        const pli_msg *reply = ticket->replies;
        while (reply != NULL && reply->head.src != pli_placement_rank(placement, shard)) reply = reply->next;
        if (reply == NULL || reply->head.body_bytes != answer_bytes)
            return pli_fail(err, PLAIT_EFORMAT, "shard %d of table %s answered a call wrongly", shard,
                            table->spec.name);
        if (answer_bytes == 0) continue;
        if (shard == 0) memcpy(answer, pli_msg_body(reply), answer_bytes);
        else PLI_TRY(pli_function_merge(&job->functions[function], answer, pli_msg_body(reply), answer_bytes, err));
    }
    return PLAIT_OK;
}

static plait_status ask_call(plait_table *const *tables, int32_t n, int32_t function, const void *args,
                             size_t args_bytes, size_t answer_bytes, pli_ticket *ticket, plait_error *err) {
    plait_job           *job = tables[0]->job;
    const pli_placement *placement = &tables[0]->spec.placement;
    pli_exchange         x;
    char                 what[WHAT_BYTES];
    plait_status         status = PLAIT_OK;
    snprintf(what, sizeof what, "server function %s on table %s", job->functions[function].name, tables[0]->spec.name);
    pli_exchange_begin(&x, job, ticket);
    for (int32_t shard = 0; status >= 0 && shard < placement->shards; shard++)
        status = pli_client_send(&job->client, x.now_ns, pli_placement_rank(placement, shard) - placement->first_rank,
                                 PLI_CALL, make_call(job, tables, n, function, args, args_bytes, answer_bytes), ticket,
                                 &x.out, err);
    return pli_exchange_wait(&x, status, what, err);
}

/* A table's shards lie from server (its number) on; for one call all tables' must coincide. */
plait_status pli_served_call(plait_table *const *tables, int32_t n, int32_t function, const void *args,
                             size_t args_bytes, void *answer, size_t answer_bytes, plait_error *err) {
    plait_job   *job = tables[0]->job;
    pli_ticket   ticket;
    pli_served_finish_gets(job);
    for (int32_t i = 0; job->functions[function].updates && i < n; i++) pli_table_unpin(tables[i]);
    for (int32_t i = 0; job->functions[function].updates && i < n; i++) pli_cache_forget(pli_served_of(tables[i]));
    plait_status status = ask_call(tables, n, function, args, args_bytes, answer_bytes, &ticket, err);
    if (status >= 0) status = merge_answers(job, tables[0], function, &ticket, answer, answer_bytes, err);
    pli_ticket_free(&ticket);
    return status;
}
