/* comm/membership.h - who lives, as numbered views that no two sides of a cut can disagree on.
 *
 * A *view* is a number and a set of ranks, each with its incarnation. View 1 has all ranks. Every rank of a view has a
 * machine like this one; together they decide the next view, which lacks some ranks, or has some again. Deaths reach
 * the rooms above from views alone. There are two kinds of news:
 *
 *   attested   the rank is gone for certain: its process has ended, or it says itself that it has failed.
 *   suspected  nothing is heard of the rank. It may be dead, frozen or behind a cut link, and may think the same of us.
 *
 * The next view is decided by Paxos, one instance for each number; its voters are the ranks of the view before. A rank
 * proposes the ranks that hear each other: the lowest of these at once, the next ones later, each after its turn. The
 * votes of a *quorum* decide:
 *
 *   Q1  more than half of the voters, or
 *   Q2  exactly half, if one of the others was attested dead before this ballot began.
 *
 * So one of two ranks may die, but neither may go on because of a mere suspicion. Two quorums always share a voter:
 * halves S and T that do not would need a voter of S that had died before some voter of T voted, and a voter of T that
 * had died before some voter of S voted; since a whole half votes, each of these two dead would have died before the
 * other. (So only a death that is known when a ballot begins counts for its Q2; later ones need a new ballot.)
 *
 * Ranks that leave in good order vote no more. Their last word has their vote (what they promised and accepted), which
 * each later ballot reads, so they need not be voters: all counts are of the voters that have not left.
 *
 *   M1  A voter that has promised a ballot accepts no lower one.
 *   M2  A ballot proposes what the quorum that promised, or a leaver, has accepted at the highest ballot, if any has.
 *   M3  A voter accepts no view without itself; so the ranks of a new view hold a quorum of the view before.
 *   M4  Votes count by incarnation: a rank that was started anew has forgotten its promises, and is no voter before a
 *       view has this life of it.
 *   M5  A rank that has stopped, or has been left out of a view, votes no more.
 *
 * A suspicion is withdrawn when the rank is heard again before it was proposed to leave it out. Word of that may be
 * lost, and others would propose it still; so who has heard of a suspicion asks again until it proposes. Later the rank
 * is left out all the same, and told so when it is heard. A rank that reaches no quorum until the deadline *stops*: it
 * is on a side without the right to go on. What it has done by then was not acknowledged, since the others had not
 * confirmed it.
 *
 * A rank that was started anew is another *life* of it, with a higher incarnation. It asks to return (RETURN) until a
 * view has it: it is proposed as the others are, but has no vote before. That it asks proves that its life before is
 * over. The ranks of a view forget what they knew of a former life. A new life has promised nothing, and need not have:
 * a vote on view n + 1 counts of the lives that view n has, and no view has had this one before.
 *
 * Where a transport has an outside judge (a store of leases), the judge decides in place of the quorum: the first side
 * that asks for view n gets it. pli_judge_ops says how a driver asks.
 *
 * Pure: no clock, thread or socket. comm/views.c drives it; tests/comm/views_test.c and ballots_test.c drive many of
 * them over bad networks, and tests/audit/mutants.txt has the mistakes that these refute. Files: membership.c (the view
 * and what is known), membership_vote.c (ballots), membership_wire.c (messages).
 *
 * Papers: Lamport, "The part-time parliament", ACM TOCS 1998; Howard, Malkhi, Spiegelman, "Flexible Paxos", 2016 (only
 * quorums of different phases must meet); Birman, Joseph, "Exploiting virtual synchrony in distributed systems", SOSP
 * 1987 (deaths as views); Ricciardi, Birman, "Using process groups to implement failure detection in asynchronous
 * environments", PODC 1991 (who is taken for dead must be told out). */
#ifndef PLI_COMM_MEMBERSHIP_H
#define PLI_COMM_MEMBERSHIP_H

#include "comm/machine.h"

/* Kinds of messages to port 0, beside those of rounds.h. */
enum {
    PLI_MEMBERSHIP_STATE = 32, /* accepted: the receiver's last one taken; first: attested; second: suspected */
    PLI_MEMBERSHIP_PREPARE,    /* ballot; first: attested                                   */
    PLI_MEMBERSHIP_PROMISE,    /* ballot; accepted, second: what was accepted at that ballot */
    PLI_MEMBERSHIP_ACCEPT,     /* ballot; first: attested, second: the view proposed        */
    PLI_MEMBERSHIP_ACCEPTED,   /* ballot                                                    */
    PLI_MEMBERSHIP_REFUSED,    /* ballot: the one that was promised                         */
    PLI_MEMBERSHIP_RETURN,     /* from a rank that was started anew: it asks to be in the next view */
    PLI_MEMBERSHIP_KINDS
};

typedef enum pli_membership_state {
    PLI_MEMBERSHIP_GOES_ON,
    PLI_MEMBERSHIP_OUT,     /* a view has been decided that lacks this rank */
    PLI_MEMBERSHIP_STOPPED, /* no quorum was reached: this side has no right to go on */
    PLI_MEMBERSHIP_LEFT,
    PLI_MEMBERSHIP_WAITS    /* it was started anew, and no view has it yet */
} pli_membership_state;

/* Sets of ranks: bit r % 64 of word r / 64. */
static inline bool pli_ranks_has(const uint64_t *set, int32_t r) { return (set[r / 64] >> (r % 64) & 1) != 0; }
static inline void pli_ranks_add(uint64_t *set, int32_t r) { set[r / 64] |= UINT64_C(1) << (r % 64); }
static inline void pli_ranks_remove(uint64_t *set, int32_t r) { set[r / 64] &= ~(UINT64_C(1) << (r % 64)); }

typedef struct pli_membership {
    int32_t   size, me, words;        /* words of a set */
    uint32_t  incarnation;            /* of this rank                                         */
    uint64_t  retry_ns, deadline_ns;
    bool      has_judge;
    pli_membership_state state;
    uint64_t  view;                   /* its number */
    uint64_t *members;                /* the sets are [words] each; those who left stay members */
    uint32_t *lives;                  /* [size] incarnations that the view has, or a view before had last */
    uint32_t *returns;                /* [size] that ask to return; 0: none                   */
    bool      renewed;                /* it has met an incarnation other than the first, and says them in messages */
    bool      presses;                /* a new view is needed, and not only because ranks return */
    uint64_t *attested, *left;        /* known for certain                                    */
    uint64_t *suspected;              /* by this rank                                         */
    uint64_t **complaints;            /* [size] whom the others suspect; NULL: nobody         */
    uint64_t *serial, *seen;          /* [size] of the last STATE taken; the newest view it is known to have */
    uint64_t  states;                 /* the serial of the last STATE sent */
    uint64_t  withdrew;               /* of the first STATE sent since a suspicion was withdrawn last; 0: none was */
    uint64_t  newest;                 /* the newest view that any rank has been heard to be in, ... */
    int32_t   newest_rank;            /* ... and which */
    uint64_t  promised, accepted;     /* as a voter on view + 1: ballots, 0 none; and ... */
    uint64_t *value;                  /* ... what was accepted, with its incarnations */
    uint32_t *value_lives;
    uint64_t  left_promised, left_accepted, *left_value; /* the highest of those that have left */
    uint32_t *left_lives;
    uint64_t  ballot, highest;        /* the ballot under way, 0: none; the highest seen */
    bool      accepting;              /* it is in its second phase */
    uint64_t *voters, *dead;          /* as the ballot began: members that had not left; attested dead */
    uint64_t *votes;                  /* of this phase */
    uint64_t  best, *proposal;        /* the highest ballot accepted among the promises; what is proposed */
    uint32_t *proposal_lives;
    uint64_t *together, *scratch;     /* scratch; together: the ranks that would be the next view */
    int32_t  *degree;                 /* scratch [size] */
    bool      unsettled, tells;       /* a new view is needed; this rank tells the others of the last one */
    uint64_t  since_ns, ballot_ns, tick_ns; /* unsettled since; when to begin the next ballot; the next wake-up */
    int32_t   ticks, wait;            /* since then; how long the next ballot waits for news, in retries */
    bool      asks;                   /* ask the judge for view + 1 with the ranks of proposal; the driver clears it */
} pli_membership;

/* An outside judge. It keeps, for each view number of a job, the first set of ranks that was proposed for it. */
typedef struct pli_judge_ops {
    /** Proposes a view; never blocks. The judge keeps it if it has none with this number. */
    void (*propose)(void *judge, uint64_t number, const uint64_t *members, int32_t words);
    /** Has the judge a view with this number? Fills members_out [words]. Never blocks. */
    bool (*decided)(void *judge, uint64_t number, uint64_t *members_out, int32_t words);
    /** This rank asks for nothing more. */
    void (*leave)(void *judge);
} pli_judge_ops;

/** View 1 has all ranks, in their first incarnation; incarnation is this rank's own, and no two lives of a rank have
 *  the same. A rank whose incarnation is not 1 waits to return; without a judge it may. retry_ns: between attempts;
 *  deadline_ns: how long a rank without a quorum waits before it stops. false: no memory. */
bool pli_membership_init(pli_membership *m, int32_t size, int32_t me, uint32_t incarnation, uint64_t retry_ns,
                         uint64_t deadline_ns, bool has_judge);
void pli_membership_destroy(pli_membership *m);

/* Events. Each answers in out: messages, and when to wake it. Afterwards the driver looks at state, view and members:
 * a rank that is in members no more has died, one whose incarnation in lives is another one has returned. What is
 * attested is the death of the life that the view has. */
void pli_membership_attest(pli_membership *m, uint64_t now_ns, int32_t rank, pli_out *out);
void pli_membership_suspect(pli_membership *m, uint64_t now_ns, int32_t rank, pli_out *out);
/** Something has come from the rank: head.incarnation and head.epoch, the number of its view, stand in every message.
 *  A rank that is out of the view, or was started anew, is told of the view. A rank that hears of a newer view, and has
 *  not been told that view by the deadline, stops. */
void pli_membership_hear(pli_membership *m, uint64_t now_ns, int32_t rank, uint32_t incarnation, uint64_t view,
                         pli_out *out);
/** A message of one of the kinds above, lent; what is malformed is dropped. */
void pli_membership_take(pli_membership *m, uint64_t now_ns, const pli_msg *msg, pli_out *out);
void pli_membership_wake(pli_membership *m, uint64_t now_ns, pli_out *out);
/** The judge has decided this view. */
void pli_membership_judged(pli_membership *m, uint64_t now_ns, uint64_t number, const uint64_t *members, pli_out *out);
/** This rank leaves in good order: it votes no more. Returns its last word, a message of kind PLI_MEMBERSHIP_STATE
 *  without receiver, whose body goes with the news; NULL: no memory, and others will take it for one without vote. */
pli_msg *pli_membership_leave(pli_membership *m);
/** Another has left; word is the body [bytes] of its last word. */
void pli_membership_take_leave(pli_membership *m, uint64_t now_ns, int32_t rank, const void *word, size_t bytes,
                               pli_out *out);

/** How many ranks are in the set. */
int32_t pli_ranks_count(const uint64_t *set, int32_t words);
/** Writes why this rank has stopped or is out: whom it hears, and what a quorum is. */
void pli_membership_tell(const pli_membership *m, char *text, size_t bytes);

#endif
