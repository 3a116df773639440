/* What stands in for the dead must be what it stands in for. A shard that had prepared a clock counts what the dead one
 * had pushed in it, the others count what its heirs push; were these other rows, an item would count in none or in
 * both. So a shard that has prepared notes which rows each worker had pushed, and compares when all heirs have said
 * (VIEW) that their part is there: only then, since an item's rows may be pushed by any of them, and only where all say
 * so in that clock, since else no shard needs their part.
 *
 * Only tables by key are compared. A dense table that is not keyed pushes one range from its first row to its last,
 * with the rows between that no item touched; two heirs leave another gap there than one did, so ranges tell nothing.
 * The first and last key must agree, and how many there are: the heirs' parts may overlap, so each of them has no more
 * than the dead had, and together they have no less; where the numbers agree, so must the digests. Values are not
 * compared, nor anything by a replica that began to serve later. */
#include <string.h>

#include "table/copies/replicas.h"

static pli_extent extent_of(const pli_push_part *part) {
    pli_extent e = { .n = part->n, .most = part->n };
    if (part->n == 0) return e;
    if (!part->keyed) {
        e.low = (uint64_t)part->first;
        e.high = (uint64_t)(part->first + part->n - 1);
        return e;
    }
    e.low = e.high = part->keys[0];
    for (int64_t i = 0; i < part->n; i++) {
        const uint64_t key = part->keys[i];
        e.low = key < e.low ? key : e.low;
        e.high = key > e.high ? key : e.high;
        e.digest += key * (key ^ UINT64_C(0x9e3779b97f4a7c15)); /* does not depend on the order */
    }
    return e;
}

static void add(const pli_extent *from, pli_extent *to) {
    if (from->n == 0) return;
    if (to->n == 0 || from->low < to->low) to->low = from->low;
    if (to->n == 0 || from->high > to->high) to->high = from->high;
    to->n += from->n;
    to->most = from->most > to->most ? from->most : to->most;
    to->digest += from->digest;
}

/* Compares what the dead one has pushed with what its heirs have; both are added up. */
static bool agree(const pli_extent *dead, const pli_extent *heirs) {
    if (dead->n == 0 || heirs->n == 0) return dead->n == heirs->n;
    if (dead->low != heirs->low || dead->high != heirs->high) return false;
    if (heirs->most > dead->n || heirs->n < dead->most) return false;
    return dead->most != dead->n || heirs->n != dead->n || heirs->digest == dead->digest;
}

/* --- notes -------------------------------------------------------------------------------------------------------- */

void pli_same_close(pli_same *same) {
    pli_free(same->pushed);
    pli_free(same->viewed);
    *same = (pli_same){ 0 };
}

bool pli_same_begin(pli_server *server, int64_t clock) {
    pli_same     *same = &server->replicas->same;
    const int64_t workers = server->layout.workers, n = server->tables * (2 * workers + 1);
    same->clocks = 0;
    if (same->viewed == NULL) same->viewed = pli_calloc((size_t)workers, 2 * sizeof *same->viewed);
    if (same->tables < server->tables || same->pushed == NULL) {
        pli_free(same->pushed);
        same->pushed = pli_array((size_t)n, sizeof *same->pushed);
        same->tables = server->tables;
    }
    if (same->viewed == NULL || same->pushed == NULL) return false;
    same->in = same->viewed + workers;
    for (int64_t w = 0; w < workers; w++)
        if (server->clocks[w] != PLAIT_LEFT) same->in[w] = clock + 1;
    memset(same->pushed, 0, (size_t)n * sizeof *same->pushed);
    same->said = same->pushed + server->tables * workers;
    same->stood = same->said + server->tables * workers;
    same->clocks = clock + 1;
    return true;
}

void pli_same_pushed(pli_server *server, int64_t table, int32_t worker, const pli_push_part *part) {
    const pli_extent e = extent_of(part);
    add(&e, &server->replicas->same.pushed[table * server->layout.workers + worker]);
}

void pli_same_redone(pli_server *server, const pli_waiting_push *push) {
    const pli_same *same = &server->replicas->same;
    if (same->clocks != push->msg->head.clock + 1) return;
    for (int32_t i = 0; i < push->n; i++) {
        const pli_extent e = extent_of(&push->part[i].part);
        const int64_t    id = push->part[i].table->shard.spec.id;
        if (id < same->tables) add(&e, &same->said[id * server->layout.workers + push->msg->head.src]);
    }
}

/* --- the comparison ----------------------------------------------------------------------------------------------- */

/* Have all living workers stood in, in this clock, for all that died? And for nobody else: a worker that dies after it
 * has left may be stood in for by those who have not heard that it left, and what it pushed is none of the
 * dead one's. Who was away in the clock has no part in it; who left with it has. */
static bool all_stood_in(const pli_server *server) {
    const pli_replicas *c = server->replicas;
    const int32_t     workers = server->layout.workers;
    for (int32_t w = 0; w < workers; w++) {
        const bool left = server->clocks[w] == PLAIT_LEFT && !c->roster.away[w];
        if (c->dead[w] || left || c->same.in[w] != c->same.clocks) continue;
        if (c->same.viewed[w] != c->same.clocks) return false;
        for (int32_t v = 0; v < workers; v++)
            if (!c->dead[v] != !c->views[(int64_t)w * workers + v]) return false;
    }
    return true;
}

/* Does an item add the same rows, whoever pushes it? Not where filters leave rows out of a push, and not where a push
 * is what a worker's own mirror has moved in a round (local-sgd). */
static bool pushes_same_rows(const pli_server_table *table) {
    return !pli_filters_have(&table->filters, PLAIT_KEPT_BACK) && !pli_filters_have(&table->filters, PLAIT_SKIPPED) &&
           !table->policy.ops->averages;
}

static void compare(const pli_server *server, const pli_server_table *table, int64_t i, pli_out *out) {
    const pli_same *same = &server->replicas->same;
    const pli_spec *spec = &table->shard.spec;
    pli_extent      dead = { 0 };
    int32_t         who = -1;
    if (!spec->keyed || !pushes_same_rows(table)) return;
    if (server->layout.backup > 0) return; /* the dead one may have been too late for this shard alone */
    for (int32_t w = 0; w < server->layout.workers; w++) {
        if (!server->replicas->dead[w]) continue;
        add(&same->pushed[i * server->layout.workers + w], &dead);
        if (who < 0 || same->pushed[i * server->layout.workers + w].n > 0) who = w;
    }
    if (agree(&dead, &same->stood[i])) return;
    pli_out_fail(
        out, PLAIT_EMISMATCH,
        "table %s, clock %lld: the workers that stood in for rank %d pushed other rows of shard %d (%lld) than it had "
        "(%lld), so items would count twice or not at all; after PLAIT_STAND_IN push the same rows and values, and "
        "nothing but items",
        spec->name, (long long)(same->clocks - 1), who, table->shard.index, (long long)same->stood[i].n,
        (long long)dead.n);
}

void pli_same_viewed(pli_server *server, int32_t worker, int64_t clock, pli_out *out) {
    pli_same *same = &server->replicas->same;
    if (same->clocks == 0 || same->clocks != clock + 1) return;
    same->viewed[worker] = same->clocks;
    for (int64_t i = 0; i < same->tables; i++) {
        pli_extent *said = &same->said[i * server->layout.workers + worker];
        add(said, &same->stood[i]);
        *said = (pli_extent){ 0 };
    }
    if (!all_stood_in(server)) return;
    for (int64_t i = 0; i < same->tables && out->error.code >= 0; i++)
        if (server->table[i] != NULL && server->table[i]->at_clock) compare(server, server->table[i], i, out);
}
