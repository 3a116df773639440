/* Says in words which values break a promise. */
#include <stdarg.h>

#include "watch/audit/reads.h"

/* "rank 2 in clock 7 got row 17 of table w, at 0.5 s, from version 12 of shard 1" */
static void name_get(const pli_audit *audit, const reader *r, const view *v, uint64_t row, char text[256]) {
    int n = snprintf(text, 256, "rank %d in clock %lld got row %llu of table %s, at %.6f s, from version %llu of ",
                     audit_rank(audit, r->rank), (long long)r->clock, (unsigned long long)row, v->table->name,
                     audit_seconds(audit, v->event->time_ns), (unsigned long long)v->piece->version);
    if (v->piece->shard < 0)
        snprintf(text + n, 256 - (size_t)n, "its mirror");
    else
        n += snprintf(text + n, 256 - (size_t)n, "shard %d", v->piece->shard);
    if (v->piece->place > 0)
        snprintf(text + n, 256 - (size_t)n, " (place %d, rank %d)", v->piece->place,
                 audit_rank_at(audit, audit_rank_of(audit, v->table->shard[v->piece->shard].home, v->piece->place)));
}

/* Which push a turn stands for: "push 4 of rank 0 (clock 3, sent at 0.1 s, applied at 0.6 s)". */
static void name_turn(const pli_audit *audit, const view *v, int64_t turn, bool newest, char text[256]) {
    int32_t             worker = (int32_t)(turn % audit->job.workers);
    int64_t             clock = turn / audit->job.workers, i = 0;
    const audit_pusher *pusher = &v->table->pusher[worker];
    while (i < pusher->n && pusher->push[i].clock < clock) i++;
    snprintf(text, 256, "the updates of clock %lld of rank %d", (long long)clock, audit_rank(audit, worker));
    if (i == pusher->n || v->piece->shard < 0) return;
    const audit_holder *shard = v->shard;
    const audit_sender *sender = shard->sender[worker];
    int64_t             p = 0; /* the first push of the clock that is missing, or contained */
    if (sender == NULL) return;
    while (p < sender->n && (sender->part[p].push < i ||
                             (!newest && sender->part[p].at != PART_LOST && sender->part[p].at <= v->version)))
        p++;
    if (p == sender->n) return;
    const audit_part *part = &sender->part[p];
    int               n =
        snprintf(text, 256, "push %lld of rank %d (clock %lld, sent at %.6f s, ", (long long)part->push + 1,
                 audit_rank(audit, worker), (long long)clock, audit_seconds(audit, pusher->push[part->push].time_ns));
    if (part->at > 0)
        snprintf(text + n, 256 - (size_t)n, "applied at %.6f s as update %lld)",
                 audit_seconds(audit, shard->apply[part->at - 1].time_ns), (long long)part->at);
    else
        snprintf(text + n, 256 - (size_t)n, "never applied)");
}

void audit_wrong_row(pli_audit *audit, const reader *r, const view *v, const char *rule, uint64_t row, const char *fmt,
                     ...) {
    char                got[256], rest[384];
    va_list             list;
    pli_audit_violation violation = {
        .rule = rule, .rank = r->rank, .clock = r->clock, .has_row = true, .row = row, .time_ns = v->event->time_ns
    };
    name_get(audit, r, v, row, got);
    va_start(list, fmt);
    vsnprintf(rest, sizeof rest, fmt, list);
    va_end(list);
    audit_violation(audit, v->table, &violation, "%s, %s", got, rest);
}

void audit_misses(pli_audit *audit, const reader *r, const view *v, const char *rule) {
    char push[256];
    name_turn(audit, v, v->missing, false, push);
    audit_wrong(audit, r, v, rule, "which misses %s; %s promises it", push, v->table->promise.spec);
}

void audit_sees_too_much(pli_audit *audit, const reader *r, const view *v, const char *rule) {
    char push[256];
    name_turn(audit, v, v->newest, true, push);
    audit_wrong(audit, r, v, rule, "which holds %s; %s promises that it does not", push, v->table->promise.spec);
}
