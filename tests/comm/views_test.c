/* Seeded schedules of bare membership machines over a network that delays, doubles, reorders and loses: ranks die, are
 * frozen, leave, or are started anew; links are cut between two or three sides, or one way, for a while or for good.
 *
 * The first schedules are all ways in which four and five ranks can be split for good into up to three sides; the
 * others draw what happens. Besides, each rank ends clocks: it asks all ranks of its view to confirm a clock, and
 * counts it as acknowledged once all have. A rank confirms nothing to one that is not in its view.
 *
 *   V1  No two ranks ever have views of the same number and other content.
 *   V2  In the end, when all is quiet, no two sides go on: all that go on have the same view and are in it.
 *   V3  Whatever was acknowledged to anybody, every rank that goes on in the end has confirmed.
 *   V4  If all that happens is one split for good, a majority goes on, and so does everybody after a short cut.
 *   V5  A rank that goes on hears all ranks of its view that have not left.
 *   V6  A rank that dies and returns is a voter again: if nothing else happens than that another is cut off then, both
 *       of three that are left go on.
 *
 * Of the ranks that are started anew, some do not know that they were, and act as if they had the first life's votes;
 * the others ask to return, and may die and return again.
 *
 * A failing seed is replayed by PLAIT_SEED=seed; PLAIT_SCHEDULES=n runs n of them, PLAIT_TRACE=1 shows
 * the end of each. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/membership.h"

#define MS UINT64_C(1000000)
enum { RANKS = 7, VIEWS_MAX = 64, CLOCKS_MAX = 256, EVENTS_MAX = 1 << 17, FOUR = 81, FIVE = 243 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SCHEDULES = 500, SCHEDULES_FULL = 5000 };
#else
enum { SCHEDULES = 2000, SCHEDULES_FULL = 20000 };
#endif
#define BEAT     (1000 * MS)
#define PATIENCE (5000 * MS)
#define QUIET    (150000 * MS) /* after the last thing that happens */
#define NEVER    UINT64_MAX

/* Kinds of network messages beside those of the machine. */
enum { A_BEAT, A_WORD /* the machine's */, A_LAST_WORD, A_FAILURE, A_CLOCK, A_CONFIRM, A_TURN, A_HAPPENING };

typedef struct event {
    uint64_t at_ns, order;
    int32_t  kind, from, to, what; /* what: the clock, or the happening */
    uint32_t incarnation;
    uint64_t view; /* of the sender */
    pli_msg *msg;
} event;

typedef enum what { DIES, IS_ATTESTED, FREEZES, LEAVES, RETURNS, RETURNS_CONFUSED } what;

typedef struct node {
    pli_membership m;
    bool           alive, left, ends;
    bool           confused; /* it was started anew, and does not know it */
    uint32_t       incarnation, knows[RANKS]; /* knows: the lives that its view has */
    uint64_t       frozen_until_ns, wake_ns, heard_ns[RANKS], beat_ns;
    int32_t        clock;                                /* the one it asks for */
    uint64_t       confirmed_by;                         /* bits of ranks */
    bool           has[RANKS][CLOCKS_MAX];               /* it has confirmed this clock of that rank */
} node;

typedef struct world {
    uint64_t   seed, now_ns, order, last_ns; /* last_ns: when the last thing happens */
    pli_random random;
    int32_t    size;
    node       node[RANKS];
    event     *heap;
    int64_t    n;
    uint64_t   cut_from_ns[RANKS][RANKS], cut_until_ns[RANKS][RANKS];
    uint64_t   patience_ns, retry_ns, deadline_ns;
    uint64_t   delay_ns, slow_from_ns, slow_until_ns; /* a rank that hears everything late */
    int32_t    slow;
    double     lost, doubled;
    bool       split, brief, judged;   /* V4; judged: an outside judge decides */
    bool       back;                   /* V6 */
    bool       hot;                    /* ballots meet: messages take longer than ranks wait */
    bool       judge_hears[RANKS];
    int32_t    side[RANKS];
    uint64_t   view[VIEWS_MAX];        /* V1: its members; 0: not seen yet */
    uint32_t   lives[VIEWS_MAX][RANKS];
    uint64_t   judgement[VIEWS_MAX];
    bool       acknowledged[RANKS][CLOCKS_MAX];
} world;

/* What happened over all schedules: a test whose machines never meet a case would prove nothing. */
static struct {
    int64_t views, went_on, stopped, out, left, acknowledged, judged, returned;
} seen;

__attribute__((format(printf, 2, 3), noreturn)) static void refute(const world *w, const char *format, ...) {
    char    why[300];
    va_list list;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    fail_msg("%s at %.3f s\nreplay: PLAIT_SEED=%llu %s", why, (double)w->now_ns * 1e-9, (unsigned long long)w->seed,
             program_invocation_name);
    abort();
}

static uint64_t below(world *w, uint64_t n) { return pli_random_below(&w->random, n); }
static bool     one_in(world *w, uint64_t n) { return below(w, n) == 0; }

/* --- what is to come ---------------------------------------------------------------------------------------------- */

static bool is_before(const event *a, const event *b) {
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void add(world *w, event e) {
    if (w->n >= EVENTS_MAX) refute(w, "the network is full");
    e.order = w->order++;
    int64_t at = w->n++;
    for (; at > 0 && is_before(&e, &w->heap[(at - 1) / 2]); at = (at - 1) / 2) w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = e;
}

static event take(world *w) {
    const event first = w->heap[0], last = w->heap[--w->n];
    int64_t     at = 0;
    for (int64_t child; (child = 2 * at + 1) < w->n; at = child) {
        if (child + 1 < w->n && is_before(&w->heap[child + 1], &w->heap[child])) child++;
        if (!is_before(&w->heap[child], &last)) break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = last;
    return first;
}

static bool is_cut(const world *w, int32_t from, int32_t to) {
    return w->now_ns >= w->cut_from_ns[from][to] && w->now_ns < w->cut_until_ns[from][to];
}

/* A cut for a while holds messages, or loses them; last words come as long as the link is not cut for good. */
static void send(world *w, event e) {
    const bool sure = e.kind == A_LAST_WORD, cut = is_cut(w, e.from, e.to);
    const uint64_t until_ns = w->cut_until_ns[e.from][e.to];
    const bool     calm = w->now_ns > w->last_ns + 2000 * MS;
    const bool     quiet = w->now_ns > w->last_ns + QUIET - 40000 * MS; /* with some patience, lost beats are a cut */
    const bool     lost = (cut && (until_ns == NEVER || (!sure && w->seed % 2 == 0))) ||
                      (!sure && !quiet && pli_random_f64(&w->random) < w->lost);
    e.incarnation = w->node[e.from].incarnation;
    e.view = w->node[e.from].m.view;
    for (int copy = 0; !lost && copy < (pli_random_f64(&w->random) < w->doubled ? 2 : 1); copy++) {
        event c = e;
        c.at_ns = (cut ? until_ns : w->now_ns) + 1 + below(w, calm ? 20 * MS : w->delay_ns);
        if (e.to == w->slow && w->now_ns >= w->slow_from_ns && w->now_ns < w->slow_until_ns)
            c.at_ns += below(w, 4000 * MS);
        c.msg = e.msg != NULL ? pli_msg_copy(e.msg) : NULL;
        add(w, c);
    }
    pli_msg_free(&e.msg);
}

/* --- the judge ---------------------------------------------------------------------------------------------------- */

static void judge_propose(void *judge, uint64_t number, const uint64_t *members, int32_t words) {
    world *w = judge;
    assert_int_equal(words, 1);
    assert_true(number < VIEWS_MAX);
    if (w->judgement[number] == 0) w->judgement[number] = members[0];
}

static bool judge_decided(void *judge, uint64_t number, uint64_t *members_out, int32_t words) {
    const world *w = judge;
    assert_int_equal(words, 1);
    if (number >= VIEWS_MAX || w->judgement[number] == 0) return false;
    members_out[0] = w->judgement[number];
    return true;
}

static void judge_leave(void *judge) { (void)judge; }

static const pli_judge_ops judge_ops = { judge_propose, judge_decided, judge_leave };

/* --- a rank ------------------------------------------------------------------------------------------------------- */

static bool is_up(const world *w, int32_t r) {
    const node *n = &w->node[r];
    return n->alive && !n->left && n->m.state == PLI_MEMBERSHIP_GOES_ON;
}

/* Has a view this life of the rank, as far as the rank knows? */
static bool is_in(const world *w, int32_t r) { return is_up(w, r) && !w->node[r].confused; }

static void note_view(world *w, int32_t r) { /* V1 */
    const pli_membership *m = &w->node[r].m;
    if (m->view >= VIEWS_MAX) refute(w, "rank %d is in view %llu", r, (unsigned long long)m->view);
    if (w->view[m->view] == 0) seen.views++;
    if (w->view[m->view] == 0) {
        w->view[m->view] = m->members[0];
        memcpy(w->lives[m->view], m->lives, (size_t)w->size * sizeof *m->lives);
    }
    for (int32_t o = 0; o < w->size; o++)
        if (pli_ranks_has(m->members, o) && w->lives[m->view][o] != m->lives[o])
            refute(w, "view %llu has life %u of rank %d, and at rank %d %u", (unsigned long long)m->view,
                   w->lives[m->view][o], o, r, m->lives[o]);
    if (w->view[m->view] != m->members[0])
        refute(w, "view %llu has ranks %llx, and at rank %d %llx", (unsigned long long)m->view,
               (unsigned long long)w->view[m->view], r, (unsigned long long)m->members[0]);
}

static void try_to_acknowledge(world *w, int32_t r) {
    node    *n = &w->node[r];
    uint64_t needed = n->m.members[0] & ~n->m.left[0];
    if (!is_up(w, r) || (needed & ~n->confirmed_by) != 0 || n->clock + 1 >= CLOCKS_MAX || n->incarnation > 1) return;
    w->acknowledged[r][n->clock++] = true;
    n->confirmed_by = UINT64_C(1) << r;
    n->has[r][n->clock] = true;
    seen.acknowledged++;
}

/* A rank that has stopped or is out ends, and says so. */
static void end_if_lost(world *w, int32_t r) {
    node *n = &w->node[r];
    if (n->ends || (n->m.state != PLI_MEMBERSHIP_STOPPED && n->m.state != PLI_MEMBERSHIP_OUT)) return;
    n->ends = true;
    for (int32_t to = 0; to < w->size; to++)
        if (to != r) send(w, (event){ .kind = A_FAILURE, .from = r, .to = to });
    add(w, (event){ .at_ns = w->now_ns + 500 * MS, .kind = A_HAPPENING, .from = r, .to = r, .what = DIES });
    n->m.state == PLI_MEMBERSHIP_STOPPED ? seen.stopped++ : seen.out++;
}

/* A rank that has just returned is listened to from now on. */
static void note_lives(world *w, int32_t r) {
    node *n = &w->node[r];
    for (int32_t o = 0; o < w->size; o++) {
        if (n->knows[o] == n->m.lives[o]) continue;
        n->knows[o] = n->m.lives[o];
        n->heard_ns[o] = w->now_ns;
        seen.returned += o == r;
    }
}

/* Takes what the machine says. */
static void settle(world *w, int32_t r, pli_out *out) {
    node *n = &w->node[r];
    note_lives(w, r);
    for (pli_msg *msg = out->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        send(w, (event){ .kind = A_WORD, .from = r, .to = msg->head.dst, .msg = msg });
    }
    if (out->wake_at_ns < n->wake_ns) {
        n->wake_ns = out->wake_at_ns;
        add(w, (event){ .at_ns = n->wake_ns > w->now_ns ? n->wake_ns : w->now_ns, .kind = A_TURN, .from = r, .to = r,
                        .incarnation = n->incarnation });
    }
    if (n->m.asks && w->judge_hears[r]) {
        judge_ops.propose(w, n->m.view + 1, n->m.proposal, n->m.words);
        n->m.asks = false;
    }
    if (n->incarnation == 1 || is_in(w, r)) note_view(w, r);
    end_if_lost(w, r);
    try_to_acknowledge(w, r);
}

static void ask_judge(world *w, int32_t r) {
    uint64_t members;
    pli_out  out;
    node    *n = &w->node[r];
    if (!w->judged || !w->judge_hears[r] || !judge_ops.decided(w, n->m.view + 1, &members, 1)) return;
    pli_out_init(&out);
    pli_membership_judged(&n->m, w->now_ns, n->m.view + 1, &members, &out);
    seen.judged++;
    settle(w, r, &out);
}

static void ask_for_clock(world *w, int32_t r) {
    const node *n = &w->node[r];
    for (int32_t to = 0; to < w->size && n->incarnation == 1; to++)
        if (to != r && pli_ranks_has(n->m.members, to))
            send(w, (event){ .kind = A_CLOCK, .from = r, .to = to, .what = n->clock });
}

static void turn(world *w, int32_t r) {
    node   *n = &w->node[r];
    pli_out out;
    if (w->now_ns < n->wake_ns && w->now_ns < n->beat_ns) return; /* a later wake-up that was asked for earlier */
    pli_out_init(&out);
    if (w->now_ns >= n->wake_ns) n->wake_ns = NEVER;
    if (w->now_ns >= n->beat_ns) {
        for (int32_t to = 0; to < w->size; to++)
            if (to != r) send(w, (event){ .kind = A_BEAT, .from = r, .to = to });
        ask_for_clock(w, r);
        n->beat_ns = w->now_ns + BEAT;
        add(w, (event){ .at_ns = n->beat_ns, .kind = A_TURN, .from = r, .to = r, .incarnation = n->incarnation });
        ask_judge(w, r);
    }
    for (int32_t o = 0; o < w->size; o++)
        if (o != r && w->now_ns - n->heard_ns[o] >= w->patience_ns && !pli_ranks_has(n->m.suspected, o))
            pli_membership_suspect(&n->m, w->now_ns, o, &out);
    pli_membership_wake(&n->m, w->now_ns, &out);
    settle(w, r, &out);
}

static void start(world *w, int32_t r, uint32_t incarnation, bool confused) {
    node *n = &w->node[r];
    n->confused = confused;
    n->alive = true;
    n->ends = false;
    n->incarnation = incarnation;
    n->wake_ns = NEVER;
    n->confirmed_by = UINT64_C(1) << r;
    n->has[r][0] = true;
    n->beat_ns = w->now_ns + below(w, BEAT);
    for (int32_t o = 0; o < w->size; o++) n->heard_ns[o] = w->now_ns;
    for (int32_t o = 0; o < w->size; o++) n->knows[o] = 1;
    assert_true(pli_membership_init(&n->m, w->size, r, confused ? 1 : incarnation, w->retry_ns, w->deadline_ns,
                                    w->judged));
    n->m.incarnation = incarnation; /* one that is confused votes as if it still had the first life's votes */
    add(w, (event){ .at_ns = n->beat_ns, .kind = A_TURN, .from = r, .to = r, .incarnation = incarnation });
}

static void leave(world *w, int32_t r) {
    node    *n = &w->node[r];
    pli_msg *word;
    if (!is_up(w, r) || (word = pli_membership_leave(&n->m)) == NULL) return;
    for (int32_t to = 0; to < w->size; to++)
        if (to != r) send(w, (event){ .kind = A_LAST_WORD, .from = r, .to = to, .msg = pli_msg_copy(word) });
    pli_msg_free(&word);
    n->left = true;
    seen.left++;
}

static void happen(world *w, const event *e) {
    node *n = &w->node[e->to];
    switch ((what)e->what) {
    case DIES: n->alive = false; break; /* of a rank that was started anew: its second death */
    case IS_ATTESTED:
        if (is_up(w, e->to) && w->node[e->from].incarnation == 1 && !w->node[e->from].alive &&
            n->m.lives[e->from] == 1) {
            pli_out out;
            pli_out_init(&out);
            pli_membership_attest(&n->m, w->now_ns, e->from, &out);
            settle(w, e->to, &out);
        }
        break;
    case FREEZES: n->frozen_until_ns = w->now_ns + below(w, 12000 * MS); break;
    case LEAVES: leave(w, e->to); break;
    case RETURNS:
    case RETURNS_CONFUSED:
        if (n->alive || n->left) break;
        pli_membership_destroy(&n->m);
        start(w, e->to, n->incarnation + 1, e->what == RETURNS_CONFUSED);
        break;
    }
}

/* A frozen rank takes in what came meanwhile when it goes on; it has not listened, so it suspects nobody for that. */
static bool is_put_off(world *w, const event *e) {
    node *n = &w->node[e->to];
    if (e->kind == A_HAPPENING || w->now_ns >= n->frozen_until_ns) return false;
    event later = *e;
    later.at_ns = n->frozen_until_ns;
    for (int32_t o = 0; o < w->size; o++) n->heard_ns[o] = n->frozen_until_ns;
    add(w, later);
    return true;
}

static void hear(world *w, const event *e) {
    node *n = &w->node[e->to];
    const bool known_life = e->incarnation == n->m.lives[e->from];
    if (e->kind == A_BEAT || known_life) {
        pli_out out;
        pli_out_init(&out);
        if (known_life) n->heard_ns[e->from] = w->now_ns;
        pli_membership_hear(&n->m, w->now_ns, e->from, e->incarnation, e->view, &out);
        settle(w, e->to, &out);
    }
    if (!known_life && e->kind != A_WORD) return;
    if (e->kind == A_WORD && (is_up(w, e->to) || n->m.state == PLI_MEMBERSHIP_WAITS)) {
        pli_out out;
        pli_out_init(&out);
        pli_membership_take(&n->m, w->now_ns, e->msg, &out);
        settle(w, e->to, &out);
    }
    if (e->kind == A_FAILURE && is_up(w, e->to)) {
        pli_out out;
        pli_out_init(&out);
        pli_membership_attest(&n->m, w->now_ns, e->from, &out);
        settle(w, e->to, &out);
    }
    if (e->kind == A_LAST_WORD && is_up(w, e->to)) {
        pli_out out;
        pli_out_init(&out);
        pli_membership_take_leave(&n->m, w->now_ns, e->from, pli_msg_body(e->msg), e->msg->head.body_bytes, &out);
        settle(w, e->to, &out);
    }
    const bool known = is_in(w, e->to) && pli_ranks_has(n->m.members, e->from);
    if (e->kind == A_CLOCK && known) {
        n->has[e->from][e->what] = true;
        send(w, (event){ .kind = A_CONFIRM, .from = e->to, .to = e->from, .what = e->what });
    }
    if (e->kind == A_CONFIRM && known && e->what == n->clock) {
        n->confirmed_by |= UINT64_C(1) << e->from;
        try_to_acknowledge(w, e->to);
    }
}

static void step(world *w) {
    event e = take(w);
    w->now_ns = e.at_ns;
    node *n = &w->node[e.to];
    if (!is_put_off(w, &e)) {
        if (e.kind == A_HAPPENING) happen(w, &e);
        else if (n->alive && !n->left && e.kind == A_TURN && e.incarnation == n->incarnation) turn(w, e.to);
        else if (n->alive && !n->left && e.kind != A_TURN) hear(w, &e);
        pli_msg_free(&e.msg);
    }
}

/* --- a schedule --------------------------------------------------------------------------------------------------- */

static void plan(world *w, uint64_t at_ns, what kind, int32_t from, int32_t to) {
    add(w, (event){ .at_ns = at_ns, .kind = A_HAPPENING, .from = from, .to = to, .what = (int32_t)kind });
    if (at_ns > w->last_ns) w->last_ns = at_ns;
}

static void cut(world *w, int32_t from, int32_t to, uint64_t from_ns, uint64_t until_ns) {
    w->cut_from_ns[from][to] = from_ns;
    w->cut_until_ns[from][to] = until_ns;
    const uint64_t end_ns = until_ns == NEVER ? from_ns : until_ns;
    if (end_ns > w->last_ns) w->last_ns = end_ns;
}

static void split(world *w, uint64_t from_ns, uint64_t until_ns) {
    for (int32_t a = 0; a < w->size; a++)
        for (int32_t b = 0; b < w->size; b++)
            if (w->side[a] != w->side[b]) cut(w, a, b, from_ns, until_ns);
}

/* All splits of four and of five ranks into up to three sides. */
static void draw_split(world *w, int32_t number) {
    w->size = number < FOUR ? 4 : 5;
    w->split = true;
    int32_t left = number < FOUR ? number : number - FOUR;
    for (int32_t r = 0; r < w->size; r++, left /= 3) w->side[r] = left % 3;
    split(w, (4000 + below(w, 3000)) * MS, NEVER);
}

static uint64_t some_time(world *w) { return w->hot ? (1000 + below(w, 6000)) * MS : (3000 + below(w, 30000)) * MS; }

/* It returns, perhaps before anybody has noticed, and may die again, and return again. */
static void draw_return(world *w, int32_t r, uint64_t died_ns) {
    uint64_t at_ns = died_ns;
    do {
        at_ns += 1 + below(w, 9000 * MS);
        plan(w, at_ns, RETURNS, r, r);
        if (one_in(w, 2)) return;
        at_ns += 1 + below(w, 9000 * MS);
        plan(w, at_ns, DIES, r, r);
    } while (one_in(w, 2));
}

static void draw_death(world *w, int32_t r) {
    const uint64_t at_ns = some_time(w);
    const bool     all = one_in(w, 2);
    const uint64_t late_ms = one_in(w, 4) ? 6000 : w->hot ? 1500 : 100;
    plan(w, at_ns, DIES, r, r);
    for (int32_t o = 0; o < w->size; o++) /* who hears that the process is gone, and when, differs */
        if (o != r && (all || one_in(w, 3))) plan(w, at_ns + 1 + below(w, late_ms * MS), IS_ATTESTED, r, o);
    if (one_in(w, 5)) plan(w, at_ns + 7000 * MS + below(w, 8000 * MS), RETURNS_CONFUSED, r, r);
    else if (one_in(w, 2)) draw_return(w, r, at_ns);
}

static void draw_happenings(world *w) {
    w->size = w->hot ? 3 + (int32_t)below(w, RANKS - 2) : 2 + (int32_t)below(w, RANKS - 1);
    w->lost = one_in(w, 2) ? 0 : pli_random_f64(&w->random) * 0.3;
    w->doubled = one_in(w, 2) ? 0 : pli_random_f64(&w->random) * 0.3;
    w->delay_ns = one_in(w, 3) ? 700 * MS : 1 + below(w, 100 * MS);
    w->judged = one_in(w, 6);
    if (one_in(w, 2)) {
        const bool     heals = one_in(w, 2);
        const uint64_t from_ns = some_time(w), sides = 2 + below(w, 2);
        for (int32_t r = 0; r < w->size; r++) w->side[r] = (int32_t)below(w, sides);
        split(w, from_ns, heals ? from_ns + below(w, 15000 * MS) : NEVER);
    }
    for (uint64_t n = below(w, 4); n > 0; n--) { /* one way */
        const int32_t  a = (int32_t)below(w, (uint64_t)w->size), b = (int32_t)below(w, (uint64_t)w->size);
        const uint64_t from_ns = some_time(w);
        if (a != b) cut(w, a, b, from_ns, one_in(w, 2) ? NEVER : from_ns + below(w, 15000 * MS));
    }
    for (int32_t r = 0; r < w->size; r++) {
        if (one_in(w, 4)) draw_death(w, r);
        else if (one_in(w, 6)) plan(w, some_time(w), FREEZES, r, r);
        else if (one_in(w, 6)) plan(w, some_time(w), LEAVES, r, r);
    }
    if (!one_in(w, 3)) return;
    w->slow = (int32_t)below(w, (uint64_t)w->size);
    w->slow_from_ns = some_time(w);
    w->slow_until_ns = w->slow_from_ns + below(w, 10000 * MS);
}

/* A cut that heals before anybody's patience is over changes nothing. */
static void draw_brief(world *w) {
    const uint64_t from_ns = some_time(w);
    w->size = 2 + (int32_t)below(w, RANKS - 1);
    w->brief = true;
    for (int32_t r = 0; r < w->size; r++) w->side[r] = (int32_t)below(w, 2);
    split(w, from_ns, from_ns + below(w, PATIENCE - 2 * BEAT - 400 * MS));
}

/* Everybody suspects everybody for a while, and ballots of several ranks are under way at once. */
static void draw_hot(world *w) {
    w->hot = true;
    draw_happenings(w);
    w->patience_ns = (1200 + below(w, 800)) * MS;
    w->retry_ns = (50 + below(w, 300)) * MS;
    w->deadline_ns = 30000 * MS;
    w->delay_ns = (300 + below(w, 1200)) * MS;
    for (int32_t n = (int32_t)below(w, 12); n > 0; n--) { /* short cuts, one way */
        const int32_t  a = (int32_t)below(w, (uint64_t)w->size), b = (int32_t)below(w, (uint64_t)w->size);
        const uint64_t from_ns = some_time(w);
        if (a != b) cut(w, a, b, from_ns, from_ns + below(w, 3000 * MS));
    }
}

/* One of three dies and returns; then another is cut off. */
static void draw_back(world *w) {
    const int32_t  returns = (int32_t)below(w, 3), cut_off = (returns + 1 + (int32_t)below(w, 2)) % 3;
    const uint64_t at_ns = some_time(w), back_ns = at_ns + 1 + below(w, 9000 * MS);
    w->size = 3;
    w->back = true;
    plan(w, at_ns, DIES, returns, returns);
    for (int32_t o = 0; o < 3; o++)
        if (o != returns) plan(w, at_ns + 1 + below(w, 100 * MS), IS_ATTESTED, returns, o);
    plan(w, back_ns, RETURNS, returns, returns);
    w->side[cut_off] = 1;
    split(w, back_ns + 20000 * MS, NEVER);
}

static void draw(world *w, int64_t number) {
    w->patience_ns = PATIENCE;
    w->retry_ns = PATIENCE / 20;
    w->deadline_ns = PATIENCE * 2 / 5;
    w->delay_ns = 1 + below(w, 100 * MS);
    w->slow = -1;
    if (number < FOUR + FIVE) draw_split(w, (int32_t)number);
    else if (number % 16 == 0) draw_brief(w);
    else if (number % 16 == 8) draw_back(w);
    else if (number % 2 == 1) draw_hot(w);
    else draw_happenings(w);
    for (int32_t r = 0; r < w->size; r++) {
        w->judge_hears[r] = w->judged && !one_in(w, 3);
        start(w, r, 1, false);
    }
}

/* --- what must hold ----------------------------------------------------------------------------------------------- */

static void check_pair(const world *w, int32_t a, int32_t b) {
    const pli_membership *m = &w->node[a].m, *n = &w->node[b].m;
    if (m->view != n->view || !pli_ranks_has(m->members, b))
        refute(w, "ranks %d and %d go on, in views %llu and %llu", a, b, (unsigned long long)m->view,
               (unsigned long long)n->view); /* V2 */
    if (a != b && is_cut(w, a, b)) refute(w, "rank %d goes on without hearing rank %d", b, a); /* V5 */
}

static void check_acknowledged(const world *w, int32_t r) { /* V3 */
    for (int32_t of = 0; of < w->size; of++)
        for (int32_t c = 0; c < CLOCKS_MAX; c++)
            if (w->acknowledged[of][c] && !w->node[r].has[of][c])
                refute(w, "clock %d of rank %d was acknowledged, and rank %d, which goes on, has not got it", c, of, r);
}

static void check_split(const world *w) { /* V4, V6 */
    for (int32_t r = 0; r < w->size; r++) {
        int32_t with = 0;
        for (int32_t o = 0; o < w->size; o++) with += w->side[o] == w->side[r];
        if (is_in(w, r) != (w->brief || 2 * with > w->size))
            refute(w, "rank %d is on a side of %d of %d, and %s", r, with, w->size, is_up(w, r) ? "goes on" : "stops");
    }
}

static void show(const world *w) {
    for (int32_t r = 0; getenv("PLAIT_TRACE") != NULL && r < w->size; r++) {
        const node *n = &w->node[r];
        print_message("rank %d, incarnation %u: %s%s state %d, view %llu of %llx; attested %llx, left %llx, suspected "
                      "%llx, promised %llu, accepted %llu, unsettled %d\n",
                      r, n->incarnation, n->alive ? "lives" : "dead", n->left ? ", has left" : "", (int)n->m.state,
                      (unsigned long long)n->m.view, (unsigned long long)n->m.members[0],
                      (unsigned long long)n->m.attested[0], (unsigned long long)n->m.left[0],
                      (unsigned long long)n->m.suspected[0], (unsigned long long)n->m.promised,
                      (unsigned long long)n->m.accepted, n->m.unsettled);
    }
}

static void check(const world *w) {
    show(w);
    for (int32_t a = 0; a < w->size; a++) {
        if (!is_in(w, a)) continue;
        seen.went_on++;
        if (w->node[a].incarnation == 1) check_acknowledged(w, a); /* who has returned is empty */
        for (int32_t b = 0; b < w->size; b++)
            if (is_in(w, b)) check_pair(w, a, b);
    }
    if (w->split || w->brief || w->back) check_split(w);
}

static void run(int64_t number) {
    static world w;
    event       *heap = malloc(EVENTS_MAX * sizeof *heap);
    assert_non_null(heap);
    memset(&w, 0, sizeof w);
    w.heap = heap;
    w.seed = (uint64_t)number;
    w.random = pli_random_at((uint64_t)number, PLI_RANDOM_SCHEDULE, 21, 0);
    draw(&w, number);
    while (w.n > 0 && w.now_ns < w.last_ns + QUIET) step(&w);
    check(&w);
    while (w.n > 0) {
        event e = take(&w);
        pli_msg_free(&e.msg);
    }
    for (int32_t r = 0; r < w.size; r++) pli_membership_destroy(&w.node[r].m);
    free(heap);
}

static void test_schedules(void **state) {
    (void)state;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? SCHEDULES_FULL : SCHEDULES;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) {
        run(atoll(seed));
        return;
    }
    for (int64_t i = 0; i < n; i++) run(i);
    print_message("%lld schedules, %lld views, %lld clocks acknowledged; ranks: %lld went on, %lld stopped, %lld out, "
                  "%lld left, %lld returned; %lld by a judge\n",
                  (long long)n, (long long)seen.views, (long long)seen.acknowledged, (long long)seen.went_on,
                  (long long)seen.stopped, (long long)seen.out, (long long)seen.left, (long long)seen.returned,
                  (long long)seen.judged);
    assert_true(n < 500 || (seen.went_on > 0 && seen.stopped > 0 && seen.out > 0 && seen.left > 0 && seen.judged > 0 &&
                         seen.returned > 0));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_schedules) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
