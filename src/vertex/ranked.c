/* The simple graph by ranks, for triangles: made once, and kept with the graph.
 *
 * Vertices are ranked by degree, and each edge is kept in the row of its lower end only. So no row is longer than the
 * square root of twice the edges, however many a hub has. Rows are made of pieces, which whoever asks takes one after
 * the other: the workers of a process, which all want them at about the same time, make them together. Nobody waits for
 * one who has not come. The parts of a making follow each other:
 *
 *     ranks      by the first who comes
 *     counts     how long each row is; then where it begins
 *     entries    in each row, increasing */
#include <pthread.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "vertex/ranked.h"

enum { PIECE = 64, SHORT = 24 };

typedef enum making_part { NOT_BEGUN, COUNTS, ENTRIES, MADE } making_part;

struct pli_ranked_made {
    pthread_mutex_t      mutex;
    pthread_cond_t       moved;  /* a part has ended */
    const pli_neighbors *simple; /* written by the first who comes */
    making_part          part;   /* written under the mutex, while nobody is inside */
    bool                 failed; /* likewise: no memory */
    int32_t              inside, here; /* how many make pieces of the part, and wait for the end; under the mutex */
    _Atomic int64_t      next;   /* the next piece; relaxed: what the pieces make is read under the mutex */
    pli_ranked           made;
};

pli_ranked_made *pli_ranked_begin(void) {
    pli_ranked_made *r = pli_calloc(1, sizeof *r);
    if (r == NULL) return NULL;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->moved, NULL);
    return r;
}

static void forget(pli_ranked_made *r) {
    pli_free(r->made.rank_of);
    pli_free(r->made.vertex_of);
    pli_neighbors_free(&r->made.up);
    r->made = (pli_ranked){ 0 };
    r->part = NOT_BEGUN;
    r->failed = false;
}

void pli_ranked_free(pli_ranked_made *r) {
    if (r == NULL) return;
    forget(r);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->mutex);
    pli_free(r);
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

static int64_t degree(const pli_neighbors *h, int64_t v) { return h->start[v + 1] - h->start[v]; }

/* By counting; equal degrees in the order of their numbers. */
static bool make_ranks(pli_ranked_made *r) {
    const pli_neighbors *h = r->simple;
    pli_ranked          *m = &r->made;
    int64_t              most = 0;
    for (int64_t v = 0; v < h->n; v++) most = degree(h, v) > most ? degree(h, v) : most;
    int64_t *at = pli_calloc((size_t)most + 2, sizeof *at);
    m->rank_of = pli_array((size_t)h->n, sizeof *m->rank_of);
    m->vertex_of = pli_array((size_t)h->n, sizeof *m->vertex_of);
    m->up.start = pli_calloc((size_t)h->n + 1, sizeof *m->up.start);
    m->up.n = h->n;
    const bool has = at != NULL && m->rank_of != NULL && m->vertex_of != NULL && m->up.start != NULL;
    for (int64_t v = 0; has && v < h->n; v++) at[degree(h, v) + 1]++;
    for (int64_t d = 0; has && d < most; d++) at[d + 1] += at[d];
    for (int64_t v = 0; has && v < h->n; v++) {
        m->rank_of[v] = (uint32_t)at[degree(h, v)]++;
        m->vertex_of[m->rank_of[v]] = (uint32_t)v;
    }
    pli_free(at);
    return has;
}

/* --- rows of higher ranks ----------------------------------------------------------------------------------------- */

static void sort_short(uint32_t *row, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const uint32_t x = row[i];
        int64_t        k = i;
        for (; k > 0 && row[k - 1] > x; k--) row[k] = row[k - 1];
        row[k] = x;
    }
}

/* Hoare's quicksort around the middle of three; entries differ. The longer half stays in the loop. */
static void sort(uint32_t *row, int64_t n) {
    while (n > SHORT) {
        uint32_t a = row[0], b = row[n / 2], z = row[n - 1];
        if (a > b) { const uint32_t t = a; a = b; b = t; }
        const uint32_t pivot = z < a ? a : z < b ? z : b;
        int64_t        i = -1, j = n;
        for (;;) {
            do i++; while (row[i] < pivot);
            do j--; while (row[j] > pivot);
            if (i >= j) break;
            const uint32_t t = row[i];
            row[i] = row[j];
            row[j] = t;
        }
        const int64_t left = j + 1;
        if (left < n - left) {
            sort(row, left);
            row += left;
            n -= left;
        } else {
            sort(row + left, n - left);
            n = left;
        }
    }
    sort_short(row, n);
}

static void make_row(pli_ranked_made *r, int64_t rank) {
    const pli_neighbors *h = r->simple;
    pli_neighbors       *up = &r->made.up;
    const int64_t        v = r->made.vertex_of[rank];
    uint32_t            *row = r->part == ENTRIES ? up->near + up->start[rank] : NULL;
    int64_t              n = 0;
    for (int64_t k = h->start[v]; k < h->start[v + 1]; k++) {
        const uint32_t u = r->made.rank_of[h->near[k]];
        if ((int64_t)u <= rank) continue;
        if (row != NULL) row[n] = u;
        n++;
    }
    if (row == NULL) up->start[rank + 1] = n;
    else sort(row, n);
}

/* --- together ----------------------------------------------------------------------------------------------------- */

/* Makes pieces of the part until none is left. */
static void take_pieces(void *user, int64_t i, int32_t thread) {
    pli_ranked_made  *r = user;
    const int64_t n = r->simple->n;
    (void)i;
    (void)thread;
    for (;;) {
        const int64_t first = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed) * PIECE,
                      last = first + PIECE < n ? first + PIECE : n;
        if (first >= n) return;
        for (int64_t rank = first; rank < last; rank++) make_row(r, rank);
    }
}

static bool make_room(pli_ranked_made *r) {
    pli_neighbors *up = &r->made.up;
    for (int64_t rank = 0; rank < up->n; rank++) up->start[rank + 1] += up->start[rank];
    up->near = pli_array((size_t)up->start[up->n] + 1, sizeof *up->near);
    return up->near != NULL;
}

/* Nobody is inside, so all pieces of the part are made. */
static void end_part(pli_ranked_made *r) {
    r->part++;
    atomic_store_explicit(&r->next, 0, memory_order_relaxed);
    if (r->part == ENTRIES && !make_room(r)) r->failed = true;
    pthread_cond_broadcast(&r->moved);
}

static void begin(pli_ranked_made *r, const pli_neighbors *simple) {
    r->simple = simple;
    atomic_store_explicit(&r->next, 0, memory_order_relaxed);
    if (make_ranks(r)) r->part = COUNTS;
    else r->failed = true;
}

static void help(pli_ranked_made *r, pli_pool *pool) {
    const making_part part = r->part;
    r->inside++;
    pthread_mutex_unlock(&r->mutex);
    pli_pool_for(pool, pli_pool_threads(pool), take_pieces, r);
    pthread_mutex_lock(&r->mutex);
    if (--r->inside == 0) end_part(r);
    while (r->part == part) pthread_cond_wait(&r->moved, &r->mutex);
}

const pli_ranked *pli_ranked_of(pli_ranked_made *r, const pli_neighbors *simple, pli_pool *pool) {
    pthread_mutex_lock(&r->mutex);
    r->here++;
    if (r->part == NOT_BEGUN && !r->failed) begin(r, simple);
    while (r->part != MADE && !r->failed) help(r, pool);
    const bool made = !r->failed;
    if (--r->here == 0 && !made) forget(r); /* the next one may try anew */
    pthread_mutex_unlock(&r->mutex);
    return made ? &r->made : NULL;
}
