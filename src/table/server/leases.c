/* The lease book. See leases.h. */
#include "table/server/leases.h"

#include <math.h>

/* Blocks move only if a worker takes longer or shorter than its share's time by more than this part of it, so that
 * noise moves nothing. */
static const double dead_zone = 1.0 / 5;
/* The weight of a report relative to the one that follows it. */
static const double memory = 1.0 / 2;

typedef struct tenant {
    double  rows, seconds; /* of the last reports (memory)                                 */
    double  load;          /* rows of the blocks that are its own, with transfers counted as done */
    int64_t asked, blocks; /* asked: the clock of its last question, -1: none; blocks: how many with rows */
    bool    left, dead;
} tenant;

typedef struct estate {
    int32_t holder, heir, home; /* -1: nobody; home: who brought the block, and has its rows at hand */
    int64_t rows, from, handed; /* from: the holder's; handed: the clock T, from which on the heir has it */
} estate;

struct pli_book {
    int32_t         tenants;
    pli_lease_terms terms;
    tenant         *tenant; /* [tenants] */
    estate         *estate; /* [blocks]  */
};

/* --- life ---------------------------------------------------------------------------------------------------- */

plait_status pli_book_open(int32_t workers, const pli_lease_terms *terms, pli_book **book_out, plait_error *err) {
    if (workers < terms->tenants || terms->tenants < 1 || terms->blocks < 1 || terms->blocks > INT32_MAX ||
        terms->clocks < 1 || terms->first < 0)
        return pli_fail(err, PLAIT_EFORMAT, "leases of %lld blocks over %lld clocks for %lld of %d workers",
                        (long long)terms->blocks, (long long)terms->clocks, (long long)terms->tenants, workers);
    pli_book *book = pli_calloc(1, sizeof *book);
    if (book == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for leases");
    book->tenants = (int32_t)terms->tenants;
    book->terms = *terms;
    book->tenant = pli_calloc((size_t)book->tenants, sizeof *book->tenant);
    book->estate = pli_calloc((size_t)terms->blocks, sizeof *book->estate);
    if (book->tenant == NULL || book->estate == NULL) {
        pli_book_close(&book);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for leases of %lld blocks", (long long)terms->blocks);
    }
    for (int32_t w = 0; w < book->tenants; w++) book->tenant[w].asked = -1;
    for (int64_t b = 0; b < terms->blocks; b++) book->estate[b] = (estate){ .holder = -1, .heir = -1, .home = -1 };
    *book_out = book;
    return PLAIT_OK;
}

void pli_book_close(pli_book **book) {
    if (*book == NULL) return;
    pli_free((*book)->tenant);
    pli_free((*book)->estate);
    pli_free(*book);
    *book = NULL;
}

bool pli_book_is_about(const pli_book *book, const pli_lease_terms *terms) {
    return book->terms.blocks == terms->blocks && book->terms.clocks == terms->clocks &&
           book->terms.tenants == terms->tenants && book->terms.first == terms->first;
}

plait_status pli_book_bring(pli_book *book, int32_t worker, const pli_lease *lease, int64_t n, plait_error *err) {
    if (worker >= book->tenants)
        return pli_fail(err, PLAIT_EFORMAT, "rank %d asks for leases; only ranks below %d have rows", worker,
                        book->tenants);
    for (int64_t i = 0; i < n; i++) {
        if (lease[i].block < 0 || lease[i].block >= book->terms.blocks || lease[i].rows < 0)
            return pli_fail(err, PLAIT_EFORMAT, "rank %d brings block %lld of %lld rows; there are %lld blocks", worker,
                            (long long)lease[i].block, (long long)lease[i].rows, (long long)book->terms.blocks);
        estate *e = &book->estate[lease[i].block];
        if (e->holder >= 0)
            return pli_fail(err, PLAIT_EFORMAT, "ranks %d and %d both bring block %lld", e->holder, worker,
                            (long long)lease[i].block);
        *e = (estate){ .holder = worker, .heir = -1, .home = worker, .rows = lease[i].rows };
        book->tenant[worker].load += (double)e->rows;
        book->tenant[worker].blocks += e->rows > 0;
    }
    return PLAIT_OK;
}

/* --- who gives what to whom ------------------------------------------------------------------------------------ */

static double rate_of(const tenant *t) { return t->rows / t->seconds; }

/* Finds the seconds that all workers take if shares fit speeds. false: some worker's speed is not known yet. */
static bool unit_of_speed(const pli_book *book, double *unit_out) {
    double rows = 0, speed = 0;
    for (int32_t w = 0; w < book->tenants; w++) {
        const tenant *t = &book->tenant[w];
        if (t->dead) continue;
        if (t->asked < 0 || !(t->rows > 0) || !(t->seconds > 0)) return false;
        rows += t->load;
        speed += rate_of(t);
    }
    *unit_out = rows / speed;
    return rows > 0;
}

/* How long the worker would compute on the rows that it holds and `more`, in the unit of speed: 1 is its share. */
static double time_of(const pli_book *book, int32_t worker, double more, double unit) {
    const tenant *t = &book->tenant[worker];
    return (t->load + more) / (rate_of(t) * unit);
}

/* The worker that would be done first with a block of the usual size. -1: nobody. */
static int32_t heir_of(const pli_book *book, int32_t giver, double unit) {
    int32_t best = -1;
    double  rows = 0, least = INFINITY;
    for (int32_t w = 0; w < book->tenants; w++) rows += book->tenant[w].load;
    for (int32_t w = 0; w < book->tenants; w++) {
        double time = time_of(book, w, rows / (double)book->terms.blocks, unit);
        if (w == giver || book->tenant[w].left || time >= least) continue;
        least = time;
        best = w;
    }
    return best;
}

/* Chooses the block that giver hands to heir. The heir must be done with it sooner than giver now is with all its rows.
 * The first choice is a block that heir has at hand, then one that giver itself had to fetch, then the last. -1:
 * none. */
static int64_t block_for(const pli_book *book, int32_t giver, int32_t heir, double unit) {
    int64_t best = -1;
    int     best_rank = 0;
    for (int64_t b = book->terms.blocks - 1; b >= 0; b--) {
        const estate *e = &book->estate[b];
        if (e->holder != giver || e->heir >= 0 || e->rows == 0) continue;
        if (time_of(book, heir, (double)e->rows, unit) >= time_of(book, giver, 0, unit)) continue;
        int rank = e->home == heir ? 3 : e->home != giver ? 2 : 1;
        if (rank > best_rank) {
            best_rank = rank;
            best = b;
        }
    }
    return best;
}

static void hand_over(pli_book *book, int64_t block, int32_t heir, int64_t clock) {
    estate *e = &book->estate[block];
    tenant *from = &book->tenant[e->holder], *to = &book->tenant[heir];
    int64_t next = pli_lease_next(to->asked, book->terms.clocks);
    e->heir = heir;
    e->handed = clock > next ? clock : next;
    if (e->handed < e->from) e->handed = e->from; /* the holder has not reached its own lease yet */
    from->load -= (double)e->rows;
    to->load += (double)e->rows;
    from->blocks--;
    to->blocks++;
}

static void give(pli_book *book, int32_t worker, int64_t clock) {
    const tenant *t = &book->tenant[worker];
    double        unit;
    int32_t       heir = -1;
    if (unit_of_speed(book, &unit)) heir = heir_of(book, worker, unit);
    if (heir < 0 || !(time_of(book, worker, 0, unit) > 1 + dead_zone || time_of(book, heir, 0, unit) < 1 - dead_zone))
        return;
    for (; heir >= 0 && t->blocks > 1; heir = heir_of(book, worker, unit)) {
        int64_t block = block_for(book, worker, heir, unit);
        if (block < 0) return;
        hand_over(book, block, heir, clock);
    }
}

/* --- events ---------------------------------------------------------------------------------------------------- */

static void note_pace(tenant *t, const pli_pace *pace) {
    if (!(pace->rows > 0) || !(pace->seconds > 0) || !isfinite(pace->rows) || !isfinite(pace->seconds)) return;
    t->rows = memory * t->rows + pace->rows;
    t->seconds = memory * t->seconds + pace->seconds;
}

static void finish_transfers(pli_book *book, int32_t worker, int64_t clock) {
    for (int64_t b = 0; b < book->terms.blocks; b++) {
        estate *e = &book->estate[b];
        if (e->holder != worker || e->heir < 0 || clock < e->handed) continue;
        e->holder = e->heir;
        e->from = e->handed;
        e->heir = -1;
    }
}

plait_status pli_book_ask(pli_book *book, int32_t worker, int64_t clock, const pli_pace *pace, plait_error *err) {
    tenant *t = &book->tenant[worker];
    int64_t due = t->asked < 0 ? book->terms.first : pli_lease_next(t->asked, book->terms.clocks);
    if (clock != due)
        return pli_fail(err, PLAIT_EFORMAT, "rank %d asks for its leases at clock %lld, clock %lld was due", worker,
                        (long long)clock, (long long)due);
    t->asked = clock;
    note_pace(t, pace);
    finish_transfers(book, worker, clock);
    give(book, worker, clock);
    finish_transfers(book, worker, clock); /* those that are handed over in this very clock */
    return PLAIT_OK;
}

int64_t pli_book_leases(const pli_book *book, int32_t worker, pli_lease *lease) {
    int64_t n = 0;
    for (int64_t b = 0; b < book->terms.blocks; b++) {
        const estate *e = &book->estate[b];
        if (e->holder != worker && e->heir != worker) continue;
        pli_lease held = { b, e->rows, e->from, e->heir >= 0 ? e->handed : PLI_LEASE_OPEN };
        pli_lease coming = { b, e->rows, e->handed, PLI_LEASE_OPEN };
        if (lease != NULL) lease[n] = e->holder == worker ? held : coming;
        n++;
    }
    return n;
}

/* The living worker that would be done with a block first; -1: nobody lives. While speeds are not known they count as
 * equal. */
static int32_t next_of(const pli_book *book, const estate *e) {
    double     unit, least = INFINITY;
    int32_t    best = -1;
    const bool known = unit_of_speed(book, &unit);
    for (int32_t w = 0; w < book->tenants; w++) {
        const tenant *t = &book->tenant[w];
        const double  rows = (double)e->rows, time = known ? time_of(book, w, rows, unit) : t->load + rows;
        if (t->dead || time >= least) continue;
        least = time;
        best = w;
    }
    return best;
}

static void count_block(tenant *t, const estate *e, int32_t times) {
    t->load += times * (double)e->rows;
    t->blocks += e->rows > 0 ? times : 0;
}

void pli_book_bury(pli_book *book, int32_t worker, int64_t clock) {
    tenant *dead = &book->tenant[worker];
    if (dead->dead) return;
    dead->dead = dead->left = true;
    for (int64_t b = 0; b < book->terms.blocks; b++) {
        estate       *e = &book->estate[b];
        const int32_t owner = e->heir >= 0 ? e->heir : e->holder;
        if (e->holder != worker && e->heir != worker) continue;
        const int32_t next = owner != worker ? owner : e->holder != worker ? e->holder : next_of(book, e);
        if (next < 0) return;
        count_block(&book->tenant[owner], e, -1);
        count_block(&book->tenant[next], e, 1);
        e->holder = next;
        e->from = clock;
        e->heir = -1;
    }
}

int32_t pli_book_holder(const pli_book *book, int64_t block, int64_t clock) {
    const estate *e = &book->estate[block];
    return e->heir >= 0 && clock >= e->handed ? e->heir : e->holder;
}

void pli_book_leave(pli_book *book, int32_t worker) {
    if (worker < book->tenants) book->tenant[worker].left = true;
}
