/* table/server/leases.h - the lease book: which worker computes which block of the data, from which clock to which.
 *
 * A block is a fixed set of rows, of which every clock takes its share; the book only says who computes the share. It
 * begins with the blocks that the workers bring. From time to time a worker asks, at the beginning of a clock, and says
 * how many rows it has computed in how many seconds. Shares should follow speed: a worker that holds clearly more rows
 * than its part of all workers' speed gives whole blocks to those that hold clearly fewer. (Work moves from slow
 * workers to fast ones, in pieces that are worth the move: Harlap et al., "Addressing the straggler problem for
 * iterative convergent parallel ML", SoCC 2016, whose FlexRR does so within a clock; here at clocks, for the rows of a
 * batch may not depend on who computes them.)
 *
 * A block changes hands at a clock T that both sides hear of before they reach it: the holder, who is just asking, is
 * at a clock <= T, and the heir asks again at a clock <= T. The holder computes the shares of the clocks before T, the
 * heir those from T on, each at its own clock T, whoever comes to it first. Therefore, whatever the policy of the
 * tables:
 *   1 For each block and each clock there is exactly one worker whose leases, as it has them in that clock, cover both.
 *   2 Nobody waits for anybody, and no message passes between the two.
 *   3 A block has one transfer under way at most; it is over when its old holder has asked at a clock >= T.
 *   4 Every worker keeps a block, so that its speed stays known.
 *
 * The book is a pure state machine without time of its own. It lives at one server (server_lease.c), is opened by the
 * first that asks, and costs one small message each way every `every` clocks and at the beginning of an epoch. In a run
 * that goes on when a worker dies each worker has a copy instead, and all ask the same of it (learn/solve/balance.h).
 */
#ifndef PLI_TABLE_LEASES_H
#define PLI_TABLE_LEASES_H

#include "base/base.h"

enum { PLI_LEASE_EVERY = 8 }; /* clocks between two questions of one worker */

/* Clocks are counted over all epochs. until == PLI_LEASE_OPEN: no end is known yet. */
typedef struct pli_lease {
    int64_t block, rows, from, until;
} pli_lease;
#define PLI_LEASE_OPEN INT64_MAX

/* The terms of a job's leases, the same from all workers. */
typedef struct pli_lease_terms {
    int64_t blocks, clocks; /* clocks: of one epoch */
    int64_t tenants;        /* so many workers have blocks, the first of the job; the others never ask */
    int64_t first;          /* the clock at which a worker asks for the first time: 0, unless a run goes on there */
} pli_lease_terms;

/* What a worker has done since it last asked. */
typedef struct pli_pace {
    double rows, seconds;
} pli_pace;

/** The clock at which a worker asks next, after it has asked at `clock`. */
static inline int64_t pli_lease_next(int64_t clock, int64_t clocks) {
    int64_t epoch_end = (clock / clocks + 1) * clocks;
    return clock + PLI_LEASE_EVERY < epoch_end ? clock + PLI_LEASE_EVERY : epoch_end;
}

/** Where workers ask for the first time, if their first clock is this one: where those before them would ask next. */
static inline int64_t pli_lease_first(int64_t clock, int64_t clocks) {
    const int64_t done = clock % clocks / PLI_LEASE_EVERY * PLI_LEASE_EVERY, asked = clock - clock % clocks + done;
    return asked == clock ? clock : pli_lease_next(asked, clocks);
}

typedef struct pli_book pli_book;

/** Errors: EFORMAT the terms make no sense in a job of so many workers. */
plait_status pli_book_open(int32_t workers, const pli_lease_terms *terms, pli_book **book_out, plait_error *err);
void         pli_book_close(pli_book **book);
bool         pli_book_is_about(const pli_book *book, const pli_lease_terms *terms);

/** The worker brings blocks [n], before it asks for the first time. Errors: EFORMAT somebody else has a block, or it
 *  does not exist; or the worker is no tenant. */
plait_status pli_book_bring(pli_book *book, int32_t worker, const pli_lease *lease, int64_t n, plait_error *err);
/** The worker asks at the beginning of a clock; the book decides what it gives away. Errors: EFORMAT another clock was
 *  due. */
plait_status pli_book_ask(pli_book *book, int32_t worker, int64_t clock, const pli_pace *pace, plait_error *err);
/** Writes the worker's leases, by block, into lease (NULL: not wanted); returns how many there are. */
int64_t pli_book_leases(const pli_book *book, int32_t worker, pli_lease *lease);
/** The worker takes no further clock: nobody gives it anything. */
void pli_book_leave(pli_book *book, int32_t worker);
/** The worker has died: from this clock on each of its blocks is another's who would be done with it first. Called
 *  before anybody asks at that clock, of a book whose workers are in step. */
void pli_book_bury(pli_book *book, int32_t worker, int64_t clock);
/** The worker that computes a block's share of this clock, if workers are in step; -1: nobody has brought the block. */
int32_t pli_book_holder(const pli_book *book, int64_t block, int64_t clock);

#endif
