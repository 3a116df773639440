/* Feeds messages with any header and body to machines of agreed sums: three ranks go through steps, and what they send
 * each other comes in any order, twice, late, and with a field that is not what was sent. They stay within bounds, and
 * send to nobody who does not exist. Input: events of four bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "comm/agreed_sums.h"

enum { RANKS = 3, N = 5, FLIGHTS = 64 };

typedef struct worker {
    pli_agreed_sums sums;
    bool            lives, gave, failed;
    int64_t         given[N], sum[N];
    pli_msg        *list, *piece[RANKS];
    pli_agreed_part part[2];
} worker;

typedef struct world {
    worker   w[RANKS];
    pli_msg *flight[FLIGHTS]; /* the first ones are the oldest */
    uint64_t now_ns;
    int      n;
} world;

static void make(world *all) {
    static const int32_t host_of[RANKS] = { 0, 0, 1 };
    memset(all, 0, sizeof *all);
    for (int32_t r = 0; r < RANKS; r++) {
        worker *me = &all->w[r];
        if (!pli_agreed_sums_init(&me->sums, r, RANKS, NULL, host_of, NULL, 1000)) abort();
        me->lives = true;
        for (int i = 0; i < N; i++) me->given[i] = r + i;
        me->list = pli_msg_new((size_t)r * 8);
        if (me->list == NULL) abort();
        if (r > 0) memset(pli_msg_body(me->list), r, (size_t)r * 8);
        me->part[0] = (pli_agreed_part){ .type = PLAIT_I64, .op = PLAIT_SUM, .n = N, .given = me->given,
                                         .values = me->sum };
        me->part[1] = (pli_agreed_part){ .list = me->list, .piece = me->piece };
    }
}

static void end(world *all) {
    for (int i = 0; i < all->n; i++) pli_msg_free(&all->flight[i]);
    for (int32_t r = 0; r < RANKS; r++) {
        worker *me = &all->w[r];
        pli_agreed_sums_destroy(&me->sums);
        pli_msg_free(&me->list);
        for (int32_t v = 0; v < RANKS; v++) pli_msg_free(&me->piece[v]);
    }
}

/* Takes what rank r has answered. */
static void settle(world *all, int32_t r, pli_out *out) {
    worker *me = &all->w[r];
    for (pli_msg *msg = out->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        msg->head.src = r;
        msg->head.epoch = msg->head.incarnation = 1;
        if (msg->head.dst < 0 || msg->head.dst >= RANKS || msg->head.dst == r) abort();
        if (all->n < FLIGHTS) all->flight[all->n++] = msg;
        else pli_msg_free(&msg);
    }
    out->first = NULL;
    me->failed = me->failed || out->error.code < 0;
    if (me->sums.agreed.n_dead >= RANKS || me->sums.agreed.step < me->sums.step) abort();
}

/* Another message, of which one field is not what was sent. NULL: no memory. */
static pli_msg *changed(const pli_msg *from, unsigned field, uint8_t value) {
    const uint64_t wide = (value & 1) != 0 || value == 128 ? (uint64_t)value << 56 : value;
    const size_t   bytes = field == 9 ? value : from->head.body_bytes;
    pli_msg       *msg = pli_msg_new(bytes);
    if (msg == NULL) return NULL;
    const size_t same = bytes < from->head.body_bytes ? bytes : from->head.body_bytes;
    if (bytes > 0) memset(pli_msg_body(msg), value, bytes);
    if (same > 0) memcpy(pli_msg_body(msg), pli_msg_body(from), same);
    msg->head = from->head;
    msg->head.body_bytes = bytes;
    switch (field) {
    case 0: msg->head.src = (int8_t)value; break;
    case 1: msg->head.kind ^= value; break;
    case 2: msg->head.flags ^= value; break;
    case 3: msg->head.server ^= value; break;
    case 4: msg->head.arg32 ^= (uint32_t)wide | (uint32_t)value << 24; break;
    case 5: msg->head.seq ^= wide; break;
    case 6: msg->head.clock ^= (int64_t)wide; break;
    case 7: msg->head.arg64 ^= wide; break;
    case 8: msg->head.incarnation ^= value; break;
    case 10: msg->head.kind ^= (uint16_t)(value << 8); break;
    case 11:
        if (bytes > 0) ((uint8_t *)pli_msg_body(msg))[value % bytes] ^= value | 1;
        break;
    default: break; /* as it was sent */
    }
    return msg;
}

static void deliver(world *all, unsigned which, bool stays, unsigned field, uint8_t value) {
    if (all->n == 0) return;
    const int at = (int)which % all->n;
    pli_msg  *msg = changed(all->flight[at], field, value);
    if (!stays) {
        pli_msg_free(&all->flight[at]);
        memmove(&all->flight[at], &all->flight[at + 1], (size_t)(--all->n - at) * sizeof *all->flight);
    }
    if (msg == NULL) return;
    const int32_t to = msg->head.dst;
    pli_out       out;
    pli_out_init(&out);
    if (!all->w[to].lives || all->w[to].failed) {
        pli_msg_free(&msg);
        return;
    }
    pli_agreed_sums_ops.on_message(&all->w[to].sums, all->now_ns, msg, &out);
    settle(all, to, &out);
}

static void work(world *all, int32_t r) {
    worker     *me = &all->w[r];
    plait_error err = { 0 };
    pli_out     out;
    if (!me->lives || me->failed) return;
    pli_out_init(&out);
    if (!me->gave) {
        me->gave = true;
        if (pli_agreed_sums_give(&me->sums, 2, me->part, &err) < 0) abort();
        return;
    }
    plait_status status = pli_agreed_sums_go_on(&me->sums, all->now_ns, &out, &err);
    if (status != PLAIT_PENDING) {
        status = pli_agreed_sums_end(&me->sums, status, &err);
        me->gave = false;
        me->failed = status < 0;
    }
    settle(all, r, &out);
}

static void lose(world *all, int32_t by, int32_t whom, bool dies) {
    pli_member_event event = { .kind = dies ? PLI_MEMBER_DIED : PLI_MEMBER_LEFT, .rank = whom,
                               .why = { .code = PLAIT_EPEER, .rank = whom } };
    pli_out          out;
    pli_out_init(&out);
    if (by == whom || !all->w[by].lives || all->w[by].failed) return;
    pli_agreed_sums_ops.on_member(&all->w[by].sums, all->now_ns, &event, &out);
    settle(all, by, &out);
}

static void wake(world *all, int32_t r) {
    pli_out out;
    pli_out_init(&out);
    all->now_ns += 3000;
    if (!all->w[r].lives || all->w[r].failed) return;
    pli_agreed_sums_ops.on_wakeup(&all->w[r].sums, all->now_ns, &out);
    settle(all, r, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static world all;
    make(&all);
    for (size_t i = 0; size - i >= 4; i += 4) { /* what, of whom, which field, its value */
        const unsigned what = data[i] % 16, whom = data[i + 1];
        if (what < 8) deliver(&all, whom, what == 7, what < 5 ? 15 : data[i + 2] % 16, data[i + 3]);
        else if (what < 12) work(&all, (int32_t)(whom % RANKS));
        else if (what == 12) wake(&all, (int32_t)(whom % RANKS));
        else if (what == 13) lose(&all, (int32_t)(whom % RANKS), data[i + 2] % RANKS, data[i + 3] < 240);
        else if (what == 14) all.w[whom % RANKS].lives = data[i + 3] > 16 && all.w[whom % RANKS].lives;
        else for (int32_t r = 0; r < RANKS; r++) work(&all, r);
    }
    end(&all);
    return 0;
}
