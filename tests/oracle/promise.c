/* promise.c - how often must, and may, a read hold an update? By docs/consistency.md and plait/table.h alone.
 *
 * `c` is the reader's clock, k the update's. The table there says which k a get of clock c must hold; what holds of
 * every consistency is said beside it:
 *   - a worker sees its own writes: on additive tables at once, on ruled ones from its next clock on;
 *   - gets between a barrier and the next clock contain all updates of clocks that had ended before the barrier;
 *   - nothing is held before it was made, and nothing twice.
 * That reads never go back is the judge's (judge.c), as it is about two reads. */
#include <string.h>

#include "oracle.h"

/* The one place where the manual promises less: of two steps of a rule that workers make to the same value of shared
 * memory at the same moment, one may be lost (docs/consistency.md, async). A row that one worker alone updates loses
 * nothing, and an additive table nothing at all. */
bool may_lose_steps(const plan *t, const group *g) {
    if (t->way != LOCAL || t->policy != ASYNC || !t->ruled) return false;
    for (int32_t i = 1; i < g->n_updates; i++)
        if (g->updates[i].worker != g->updates[0].worker) return true;
    return false;
}

static bool at_clocks(const plan *t) { return t->policy == BSP || (t->policy == DELAY && t->bound == 0); }

/* Others' updates that the consistency says a get of clock c holds. */
static bool is_due(const plan *t, const reading *r, const update *u) {
    const int64_t c = r->clock, k = u->clock;
    switch (t->policy) {
    case BSP: return k < c;
    case SSP:
    case ESSP:
    case DELAY: return k <= c - 1 - t->bound;
    case ASP: return k <= c - 1 - t->bound || k < c / t->period * t->period;
    case SEQUENTIAL: return !r->turnless && (k < c || (k == c && u->worker < r->worker));
    case LOCAL_SGD: return k < c / t->bound * t->bound;
    default: return false;
    }
}

/* Others' updates that it says a get of clock c does not hold. */
static bool is_early(const plan *t, const reading *r, const update *u, bool settled) {
    const int64_t c = r->clock, k = u->clock;
    if (settled) return false;
    if (at_clocks(t)) return k >= c;
    if (t->policy == DELAY && t->way == SUMS) return k > c - 1 - t->bound;
    if (t->policy == SEQUENTIAL) return !r->turnless && (k > c || (k == c && u->worker > r->worker));
    if (t->policy == LOCAL_SGD) return k >= c / t->bound * t->bound;
    return false;
}

static limits own(const facts *f, const reading *r, const update *u) {
    const plan *t = &f->p->tables[r->table];
    const bool  done = f->p->calls[u->worker][u->call].until < r->from;
    limits      l = { 0, 0, "a worker sees its own updates at once on an additive table", "it is not made yet" };
    if (u->call >= r->to) return l;
    l.most = 1;
    l.least = done;
    if (r->left && u->clock >= f->left_in[u->worker]) l.least = 0; /* it may have been dropped */
    if (r->function) {                                             /* it sees what has been sent: downpour holds back */
        l.why_least = "a server function sees what a get would, less what the caller has not sent";
        l.least = u->clock < r->clock && t->policy != DOWNPOUR && !(t->policy == DELAY && t->way == SUMS);
    }
    if (!t->ruled || r->function) return l;
    l.why_least = "a worker sees its own updates from its next clock on";
    l.least = u->clock < r->clock;
    if (at_clocks(t) && u->clock >= r->clock) {
        l.most = 0;
        l.why_most =
            "on a ruled table a worker sees its own updates from its next clock on, since the clock's are summed first";
    }
    return l;
}

static limits others(const facts *f, const reading *r, const update *u, uint64_t evidence) {
    const plan   *t = &f->p->tables[r->table];
    const record *made = &f->diaries[u->worker].calls[u->call];
    const bool    settled = r->barrier >= 0 && u->clock < f->ended[r->barrier][u->worker];
    limits        l = { 0, 0, NULL, "it is not made yet" };
    if (made->begun >= r->ended) return l;
    l.most = 1;
    if (!r->left && is_early(t, r, u, settled)) {
        l.most = 0;
        l.why_most = "the consistency says that it is not there yet";
    }
    if (u->clock >= f->left_in[u->worker]) return l; /* its worker has left in that clock: it may have been dropped */
    if (!r->left && is_due(t, r, u)) {
        l.least = 1;
        l.why_least = "the consistency says that it is there";
    } else if (r->view && settled) {
        l.least = 1;
        l.why_least = "gets between a barrier and the next clock contain all of the clocks before it";
    } else if (evidence != 0 && evidence < r->fetched) {
        l.least = 1;
        l.why_least = "another worker had read it at the owner before";
    }
    return l;
}

/* Under local-sgd a ruled table's copy moves `workers` times as far until the round's average. */
static limits in_rounds(const facts *f, const reading *r, const update *u, limits l) {
    const plan   *t = &f->p->tables[r->table];
    const int32_t w = f->p->workers;
    const bool    settled = r->barrier >= 0 && u->clock < f->ended[r->barrier][u->worker];
    if (u->clock < r->clock / t->bound * t->bound || (r->view && settled) || l.most == 0) return l;
    if (u->worker != r->worker) return l;
    l.most = w;
    if (l.least > 0 && !settled) l.least = w;
    return l;
}

bool is_zeroed(const plan *t, int32_t clock, const update *u) {
    return t->zeroed >= 0 && clock >= t->zeroed && u->clock < t->zeroed;
}

limits promised(const facts *f, const reading *r, const update *u, uint64_t evidence) {
    const plan  *t = &f->p->tables[r->table];
    if (is_zeroed(t, r->clock, u)) return (limits){ 0, 0, NULL, "the table was zeroed since" };
    const limits l = u->worker == r->worker ? own(f, r, u) : others(f, r, u, evidence);
    return t->policy == LOCAL_SGD && t->ruled && t->way != GOSSIP ? in_rounds(f, r, u, l) : l;
}

void facts_find(facts *f, const program *p, const diary *diaries) {
    *f = (facts){ .p = p, .diaries = diaries };
    for (int32_t v = 0; v < p->workers; v++) {
        int32_t barrier = 0, clock = 0;
        f->left_in[v] = INT32_MAX;
        for (int32_t i = 0; i < p->n_calls[v]; i++) {
            const verb k = p->calls[v][i].kind;
            if ((k == BARRIER || k == ZERO) && barrier < BARRIERS) f->ended[barrier++][v] = clock;
            if (k == CLOCK || k == CLOCK_BEGIN) clock++;
            if (k == LEAVE) f->left_in[v] = clock;
        }
    }
}
