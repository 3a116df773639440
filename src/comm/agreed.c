/* Decides which steps are committed. See agreed.h. */
#include "comm/agreed.h"

#include <string.h>

#include "base/base.h"

enum { WORD_BITS = 64 };

bool pli_agreed_init(pli_agreed *a, int32_t me, int32_t ranks) {
    memset(a, 0, sizeof *a);
    a->me = me;
    a->ranks = ranks;
    a->words = (ranks + WORD_BITS - 1) / WORD_BITS;
    a->decided = true;
    a->dead = pli_calloc((size_t)a->words, sizeof *a->dead);
    a->of = pli_calloc((size_t)a->words, sizeof *a->of);
    a->attempt = pli_calloc((size_t)a->words, sizeof *a->attempt);
    a->word = pli_calloc((size_t)ranks, sizeof *a->word);
    a->word_of = pli_calloc((size_t)ranks * (size_t)a->words, sizeof *a->word_of);
    if (a->dead != NULL && a->of != NULL && a->attempt != NULL && a->word != NULL && a->word_of != NULL) return true;
    pli_agreed_destroy(a);
    return false;
}

void pli_agreed_destroy(pli_agreed *a) {
    pli_free(a->dead);
    pli_free(a->of);
    pli_free(a->attempt);
    pli_free(a->word);
    pli_free(a->word_of);
    a->dead = a->of = a->attempt = a->word_of = NULL;
    a->word = NULL;
}

static bool is_dead(const pli_agreed *a, int32_t rank) { return pli_agreed_is_dead(a->dead, rank); }

static size_t set_bytes(const pli_agreed *a) { return (size_t)a->words * sizeof(uint64_t); }

static bool send(const pli_agreed *a, uint16_t kind, int32_t to, uint32_t arg, size_t bytes, pli_out *out) {
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) {
        pli_out_fail(out, PLAIT_ENOMEM, "no memory to agree on a step");
        return false;
    }
    if (bytes > 0) memcpy(pli_msg_body(msg), a->dead, bytes);
    msg->head.kind = kind;
    msg->head.dst = to;
    msg->head.flags = (uint16_t)a->n_dead;
    msg->head.arg32 = arg;
    msg->head.clock = a->step;
    pli_out_send(out, msg);
    return true;
}

/* --- committing --------------------------------------------------------------------------------------------------- */

static void commit(pli_agreed *a, pli_out *out) {
    memcpy(a->of, a->attempt, set_bytes(a));
    a->come[a->step % 2] = 0;
    a->round = 0;
    a->summed = false;
    a->step++;
    pli_out_ring(out);
}

/* The living rank that is `ahead` places ahead of this one among the living, around a circle. */
static int32_t living_ahead(const pli_agreed *a, int64_t ahead) {
    int32_t rank = a->me;
    while (ahead > 0) {
        rank = rank + 1 < a->ranks ? rank + 1 : 0;
        ahead -= !is_dead(a, rank);
    }
    return rank;
}

static bool has_round(const pli_agreed *a, int32_t round) { return INT64_C(1) << round < a->ranks - a->n_dead; }

static void enter_round(const pli_agreed *a, pli_out *out) {
    if (has_round(a, a->round))
        (void)send(a, PLI_AGREED_SUMMED, living_ahead(a, INT64_C(1) << a->round), (uint32_t)a->round, 0, out);
}

static void go_on(pli_agreed *a, pli_out *out) {
    while (has_round(a, a->round)) {
        if ((a->come[a->step % 2] >> a->round & 1) == 0) return;
        a->round++;
        enter_round(a, out);
    }
    commit(a, out);
}

void pli_agreed_summed(pli_agreed *a, pli_out *out) {
    if (!a->decided || a->summed) return;
    a->summed = true;
    a->round = 0;
    enter_round(a, out);
    go_on(a, out);
}

static void take_round(pli_agreed *a, const pli_msg *msg, pli_out *out) {
    const bool near = msg->head.clock == a->step || msg->head.clock == a->step + 1;
    if (msg->head.flags != a->n_dead || !near || msg->head.arg32 >= 32) return;
    a->come[msg->head.clock % 2] |= UINT32_C(1) << msg->head.arg32;
    if (a->decided && a->summed) go_on(a, out);
}

/* --- deciding ----------------------------------------------------------------------------------------------------- */

static bool has_told(const pli_agreed *a, int32_t rank) {
    return memcmp(a->word_of + (size_t)rank * (size_t)a->words, a->dead, set_bytes(a)) == 0;
}

/* Decides when all living ranks have told the dead that this rank knows. */
static void decide(pli_agreed *a, pli_out *out) {
    bool ahead = false, all_summed = a->summed;
    for (int32_t r = 0; r < a->ranks; r++) {
        if (r == a->me || is_dead(a, r)) continue;
        if (!has_told(a, r)) return;
        ahead = ahead || a->word[r].step > a->step;
        all_summed = all_summed && a->word[r].step == a->step && a->word[r].summed;
    }
    if (ahead && !a->summed) {
        pli_out_fail(out, PLAIT_EFORMAT, "a rank has ended step %lld, and this one lacks its sum", (long long)a->step);
        return;
    }
    if (ahead || all_summed) commit(a, out);
    a->summed = false;
    a->decided = true;
    memcpy(a->attempt, a->dead, set_bytes(a));
    pli_out_ring(out);
}

void pli_agreed_died(pli_agreed *a, int32_t rank, pli_out *out) {
    if (rank < 0 || rank >= a->ranks || rank == a->me || is_dead(a, rank)) return;
    a->dead[rank / WORD_BITS] |= UINT64_C(1) << (rank % WORD_BITS);
    a->n_dead++;
    a->decided = false;
    a->round = 0;
    a->come[0] = a->come[1] = 0;
    for (int32_t r = 0; r < a->ranks; r++)
        if (r != a->me && !is_dead(a, r) && !send(a, PLI_AGREED_TELLS, r, a->summed, set_bytes(a), out)) return;
    decide(a, out);
    pli_out_ring(out);
}

static void take_word(pli_agreed *a, const pli_msg *msg, pli_out *out) {
    if (msg->head.body_bytes != set_bytes(a)) return;
    a->word[msg->head.src] = (pli_agreed_word){ .step = msg->head.clock, .summed = msg->head.arg32 == 1 };
    memcpy(a->word_of + (size_t)msg->head.src * (size_t)a->words, pli_msg_body(msg), set_bytes(a));
    if (!a->decided) decide(a, out);
}

void pli_agreed_take(pli_agreed *a, const pli_msg *msg, pli_out *out) {
    const int32_t src = msg->head.src;
    if (src < 0 || src >= a->ranks || src == a->me || is_dead(a, src)) return;
    if (msg->head.kind == PLI_AGREED_SUMMED) take_round(a, msg, out);
    if (msg->head.kind == PLI_AGREED_TELLS) take_word(a, msg, out);
}
