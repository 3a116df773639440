/* plait_table_zero: what a worker pushed before it must be in the values that are zeroed, what it pushes behind it must
 * not, and no get behind it may return older values. All workers zero a table equally often, in the same clocks; each
 * shard is zeroed as often, a version of its own. */
#include "watch/audit/reads.h"

/* --- passes ------------------------------------------------------------------------------------------------------- */

plait_status audit_add_zero(audit_table *table, const pli_event *event, plait_error *err) {
    audit_pusher *pusher = &table->pusher[event->rank];
    if (!pli_grow((void **)&pusher->zero, &pusher->zeros_capacity, pusher->zeros + 1, sizeof *pusher->zero))
        return audit_no_memory(err);
    pusher->zero[pusher->zeros++] = (struct audit_zero){
        .pushes = pusher->n,
        .sums = table->way == PLI_WAY_SUMMED ? table->mirror[event->rank].n : 0,
        .clock = event->clock,
        .time_ns = event->time_ns,
    };
    return PLAIT_OK;
}

plait_status audit_zero_shard(pli_audit *audit, audit_table *table, const pli_event *event, plait_error *err) {
    audit_holder *shard = audit_holder_of(audit, table, event->shard, event->place);
    if (shard == NULL || (shard->of == NULL && event->place > 0)) return PLAIT_OK; /* nothing was ever sent there */
    if (!pli_grow((void **)&shard->apply, &shard->capacity, shard->n + 1, sizeof *shard->apply) ||
        !pli_grow((void **)&shard->zero, &shard->zeros_capacity, shard->zeros + 1, sizeof *shard->zero))
        return audit_no_memory(err);
    shard->apply[shard->n++] = (audit_apply){ .worker = -1, .part = -1, .time_ns = event->time_ns };
    shard->zero[shard->zeros++] = shard->n;
    return PLAIT_OK;
}

/* --- what is wrong ------------------------------------------------------------------------------------------------ */

/* k: which zeroing of the worker. */
static pli_audit_violation violation_of(const audit_table *table, int32_t worker, int64_t k) {
    const struct audit_zero *zero = &table->pusher[worker].zero[k];
    return (pli_audit_violation){ .rule = "zeroing", .rank = worker, .clock = zero->clock, .time_ns = zero->time_ns };
}

/* before: the push should have been applied before the k-th zeroing of the shard; otherwise it belongs behind it. */
static void wrong_side(pli_audit *audit, audit_table *table, const audit_holder *shard, int32_t worker, int64_t k,
                       const audit_part *part, bool before) {
    const audit_push         *push = &table->pusher[worker].push[part->push];
    const pli_audit_violation v = violation_of(table, worker, k);
    audit_violation(audit, table, &v,
                    "push %lld of rank %d to shard %d of table %s (clock %lld, sent at %.6f s) was made %s the worker "
                    "zeroed the table at %.6f s, but applied %s the shard was zeroed",
                    (long long)part->push + 1, audit_rank(audit, worker), shard->shard, table->name,
                    (long long)push->clock, audit_seconds(audit, push->time_ns), before ? "before" : "after",
                    audit_seconds(audit, v.time_ns), before ? "after" : "before");
}

/* Parts come in the order of their pushes: k is the first zeroing behind this one. */
static void check_parts(pli_audit *audit, audit_table *table, const audit_holder *shard, int32_t worker, int64_t both) {
    const struct audit_zero *zero = table->pusher[worker].zero;
    const audit_sender      *sender = shard->sender[worker];
    int64_t                  k = 0;
    for (int64_t i = 0; sender != NULL && i < sender->n; i++) {
        const audit_part *part = &sender->part[i];
        while (k < both && part->push >= zero[k].pushes) k++;
        if (part->at < 0) continue;
        const bool late = k < both && (part->at == PART_LOST || part->at > shard->zero[k]);
        const bool early = k > 0 && part->at != PART_LOST && part->at < shard->zero[k - 1];
        if (late || early) wrong_side(audit, table, shard, worker, late ? k : k - 1, part, late);
    }
}

static void check_shard(pli_audit *audit, audit_table *table, const audit_holder *shard, int32_t worker) {
    const audit_pusher *pusher = &table->pusher[worker];
    const int64_t       both = shard->zeros < pusher->zeros ? shard->zeros : pusher->zeros;
    check_parts(audit, table, shard, worker, both);
    if (shard->zeros >= pusher->zeros) return;
    const pli_audit_violation v = violation_of(table, worker, both);
    audit_violation(audit, table, &v,
                    "rank %d zeroed table %s in clock %lld, at %.6f s, for the %lld. time, and shard %d was not",
                    audit_rank(audit, worker), table->name, (long long)v.clock, audit_seconds(audit, v.time_ns),
                    (long long)both + 1, shard->shard);
}

/* Before a mirror is zeroed it has applied the sums of all clocks before. (In rounds not every clock has one.) */
static void check_mirror(pli_audit *audit, audit_table *table, int32_t worker) {
    const audit_pusher *pusher = &table->pusher[worker];
    for (int64_t k = 0; k < pusher->zeros && table->promise.rounds <= 1; k++) {
        const struct audit_zero *zero = &pusher->zero[k];
        if (zero->sums == zero->clock - audit->first_clock ||
            (zero->sums > 0 && table->mirror[worker].sum[zero->sums - 1].clock == zero->clock - 1))
            continue;
        const pli_audit_violation v = violation_of(table, worker, k);
        audit_violation(audit, table, &v,
                        "rank %d zeroed its mirror of table %s in clock %lld, at %.6f s, when it had applied %lld "
                        "sums: that of clock %lld was under way",
                        audit_rank(audit, worker), table->name, (long long)zero->clock,
                        audit_seconds(audit, zero->time_ns), (long long)zero->sums, (long long)zero->clock - 1);
    }
}

/* Did the worker not come to the job's end? */
static bool ends_early(const pli_audit *audit, int32_t worker) {
    return !audit->worker[worker].done || audit->worker[worker].left;
}

/* All workers zero in the same clocks; a worker that did not come to the end, or was away then, may lack the last. */
static void check_clocks(pli_audit *audit, audit_table *table, int32_t worker) {
    const audit_pusher *first = &table->pusher[0], *pusher = &table->pusher[worker];
    const int64_t       both = first->zeros < pusher->zeros ? first->zeros : pusher->zeros;
    int64_t             k = 0;
    while (k < both && first->zero[k].clock == pusher->zero[k].clock) k++;
    const bool lacks = k < first->zeros ? ends_early(audit, worker) : k < pusher->zeros && ends_early(audit, 0);
    if (k == first->zeros && k == pusher->zeros) return;
    if (k == both && lacks) return;
    const int32_t             whose = k < pusher->zeros ? worker : 0;
    const pli_audit_violation v = violation_of(table, whose, k);
    audit_violation(audit, table, &v, "rank %d zeroed table %s in clock %lld, at %.6f s, and rank %d did not",
                    audit_rank(audit, whose), table->name, (long long)v.clock, audit_seconds(audit, v.time_ns),
                    audit_rank(audit, whose == worker ? 0 : worker));
}

void audit_check_zeros(pli_audit *audit) {
    for (int64_t t = 0; t < audit->tables; t++) {
        audit_table *table = &audit->table[t];
        for (int32_t w = 0; table->known && w < audit->job.workers; w++) {
            check_clocks(audit, table, w);
            if (table->way == PLI_WAY_SUMMED) check_mirror(audit, table, w);
            for (int32_t s = 0; s < table->shards; s++)
                for (int32_t i = 0; i < table->shard[s].replicas; i++)
                    if (table->shard[s].replica[i].of != NULL && table->shard[s].replica[i].counts)
                        check_shard(audit, table, &table->shard[s].replica[i], w);
        }
    }
}

/* --- gets --------------------------------------------------------------------------------------------------------- */

void audit_check_zeroed(pli_audit *audit, const reader *r, const view *v) {
    const audit_holder *shard = v->shard;
    const int64_t       k = v->reads->zeros;
    if (v->piece->shard < 0 || shard->of == NULL) return;
    if (k > 0 && k <= shard->zeros && v->version < shard->zero[k - 1])
        audit_wrong(audit, r, v, "zeroing", "which is from before the worker zeroed the table: that is version %lld",
                    (long long)shard->zero[k - 1]);
    if (k < shard->zeros && v->version >= shard->zero[k])
        audit_wrong(audit, r, v, "zeroing", "which was zeroed as version %lld, before the worker zeroed the table",
                    (long long)shard->zero[k]);
}
