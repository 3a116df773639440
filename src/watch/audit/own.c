/* Checks that a get holds what its own worker has done, once. */
#include "watch/audit/reads.h"

/* A version that holds pushes which the reader had not made yet cannot be the one that it was given. */
static bool check_own_future(pli_audit *audit, const reader *r, const view *v) {
    int64_t own = v->piece->to > v->piece->from && v->piece->to > (uint64_t)v->own ? (int64_t)v->piece->to : v->own;
    if (own >= 0 && own <= v->reads->pushes) return true;
    audit_wrong(audit, r, v, "versions", "which holds its own push %lld before it was made", (long long)own);
    return false;
}

/* Was one of the reader's pushes from there on applied to the version? */
static bool holds_one_of(const reader *r, const view *v, uint64_t from) {
    if (v->piece->shard < 0) return true;
    const audit_sender *sender = v->shard->sender[r->rank];
    for (int64_t i = v->seen->own - 1; sender != NULL && i >= 0 && (uint64_t)sender->part[i].push >= from; i--)
        if (sender->part[i].at > 0 && sender->part[i].at <= v->version) return true;
    return false;
}

/* Checks the pushes in the values and those added to the copy: no gap or overlap may lie between them. */
static void check_own_pushes(pli_audit *audit, const reader *r, const view *v) {
    uint64_t own = (uint64_t)v->own, from = v->piece->from, to = v->piece->to, all = (uint64_t)v->reads->pushes;
    bool     laid = to > from;
    if (laid && own > from && !holds_one_of(r, v, from)) own = from; /* a push that was dropped is only in the copy */
    if ((!laid && own == all) || (laid && own == from && to == all)) return;
    bool              twice = laid && from < own;
    uint64_t          which = twice ? from : !laid || own < from ? own : to; /* index of the push that is wrong */
    const audit_push *push = &v->table->pusher[r->rank].push[which];
    audit_wrong(audit, r, v, "own updates", "with its own push %llu (clock %lld, sent at %.6f s) %s in it",
                (unsigned long long)which + 1, (long long)push->clock, audit_seconds(audit, push->time_ns),
                twice ? "twice" : "not");
}

/* Ruled tables: the worker's own pushes of earlier clocks. */
static void check_own_clocks(pli_audit *audit, const reader *r, const view *v) {
    const audit_pusher *pusher = &v->table->pusher[r->rank];
    int64_t             own = v->own; /* counts also those that the copy lacks and that touch none of its rows */
    if (v->piece->from <= (uint64_t)own && v->piece->to > (uint64_t)own) own = (int64_t)v->piece->to;
    if (own >= v->reads->pushes || pusher->push[own].clock >= r->clock) return;
    audit_wrong(audit, r, v, "own updates", "without its own push %lld (clock %lld, sent at %.6f s)",
                (long long)own + 1, (long long)pusher->push[own].clock,
                audit_seconds(audit, pusher->push[own].time_ns));
}

void audit_check_own_incs(pli_audit *audit, const reader *r, const view *v) {
    const audit_pusher *pusher = &v->table->pusher[r->rank];
    uint64_t            pushed = v->reads->pushes == 0 ? 0 : pusher->push[v->reads->pushes - 1].incs;
    if (pushed < v->reads->left_incs) pushed = v->reads->left_incs;
    if (pushed < v->reads->stood_incs) pushed = v->reads->stood_incs;
    uint64_t pending = v->reads->incs - pushed;
    if (v->event->incs == pending) return;
    audit_wrong(audit, r, v, "own updates", "with %llu of its own %llu updates not yet pushed laid over it",
                (unsigned long long)v->event->incs, (unsigned long long)pending);
}

bool audit_check_own(pli_audit *audit, const reader *r, const view *v) {
    if (!check_own_future(audit, r, v)) return false;
    if (r->stands || (v->table->ruled && v->piece->to == v->piece->from))
        check_own_clocks(audit, r, v); /* otherwise own steps are added; a worker that stands in reads what the clock
                                        * began with */
    else
        check_own_pushes(audit, r, v);
    return true;
}
