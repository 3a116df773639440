/* Checks value bounds: the sum of the norms of what a get misses. Only here are times of different ranks compared. So
 * the ranks must share one clock: they are threads, processes of one host, or simulated. */
#include <string.h>

#include "watch/audit/model.h"

bool audit_unseen_open(const pli_audit *audit, const audit_table *table, audit_unseen *unseen) {
    size_t workers = (size_t)audit->job.workers;
    unseen->made = pli_calloc(workers, sizeof *unseen->made);
    unseen->hint = pli_calloc(workers * (size_t)table->shards, sizeof *unseen->hint);
    return unseen->made != NULL && unseen->hint != NULL;
}

void audit_unseen_close(audit_unseen *unseen) {
    pli_free(unseen->made);
    pli_free(unseen->hint);
    memset(unseen, 0, sizeof *unseen);
}

/* How many updates the pusher had made before asked_ns; a reader's gets begin one after the other. */
static int64_t made_before(const audit_pusher *pusher, uint64_t asked_ns, int64_t *cursor) {
    while (*cursor < pusher->n_incs && pusher->inc[*cursor].time_ns < asked_ns) (*cursor)++;
    while (*cursor > 0 && pusher->inc[*cursor - 1].time_ns >= asked_ns) (*cursor)--;
    return *cursor;
}

double audit_unseen_norm(const pli_audit *audit, const audit_table *table, audit_unseen *unseen,
                         const audit_holder *shard, int64_t version, int32_t reader, uint64_t asked_ns) {
    double sum = 0;
    for (int32_t w = 0; w < audit->job.workers; w++) {
        const audit_pusher *pusher = &table->pusher[w];
        if (w == reader) continue;
        int64_t made = made_before(pusher, asked_ns, &unseen->made[w]);
        int64_t pushes = audit_contained(shard, w, version, INT64_MAX,
                                         &unseen->hint[(int64_t)shard->shard * audit->job.workers + w]);
        double  missed = 0;
        for (int64_t i = pushes == 0 ? 0 : (int64_t)pusher->push[pushes - 1].incs; i < made; i++)
            missed += pusher->inc[i].norm;
        if (!table->promise.value_each)
            sum += missed;
        else if (missed > sum)
            sum = missed;
    }
    return sum;
}
