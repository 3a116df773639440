/* What must be in the tables of a schedule of replicas, and the verdict. The oracle shares nothing with the protocol.
 *
 * Worker v has column v of every row. What belongs to its rows of data in clock c is 2^c in that column, on rows that
 * (v, c) alone choose: so a value is the set of the clocks that it contains.
 *     bsp     A get in clock c, and the last one, has exactly the clocks before it, of every worker, dead or not: the
 *             others stand in for the dead, each for some rows. That is the model of a run in which nobody died.
 *             A worker that stands in for one whose part was there after all may already read the clock that it stands
 *             in for, since others are a clock ahead; and later ones, if it leaves with that clock, since then nobody
 *             waits for it. What it then adds is wrong and must count nowhere: it adds 2^BAD.
 *     else    A get holds all that was acknowledged to the reader, all that its last get had, and nothing that was not
 *             added. At the end each worker's acknowledged clocks are there; of the dead worker's last clock all may be
 *             there, or some, or nothing. Under downpour what the dead worker had gathered since its last push is gone
 *             with it, and no more.
 *             In some clocks all first call a server function, which doubles what a table that applies at clocks
 *             holds by then, and all hear the same of each shard.
 *     last    (combine last) A row holds one clock of one worker, in all columns: under bsp the last clock before c in
 *             which anybody added to it, of the highest worker that did, dead or not. From the clock behind a death on
 *             heirs push under their own numbers, so another of that clock's workers may win; as it may where two die
 *             in one clock. Else it is never before what was acknowledged to the reader, nor before its last get.
 *     adam    A get in clock c has, to the bit, what every other get in c has had, also in a run of the same tables in
 *             which nobody dies. Such values are no sets: the table is opaque.
 *     filters that round
 *             At the end a value is that set, once what the filters of workers keep (the residuals of their chains) is
 *             added: what the living keep now, and what the dead kept after the last push that counted. Under bsp all
 *             gets of a clock have the same.
 * Where both replicas live at the end, each has the other's rows and moments. What workers bring to a barrier is the
 * same for all that hear of it. See replicas_world.h. */
#include "table/replicas_world.h"

enum { AFTERWARDS = 500 /* events, before the replicas are compared */ };

/* Of opaque tables: what every get of a clock has, in both runs of a seed. */
static struct {
    bool   known[TABLES_MAX][CLOCKS + 1];
    double values[TABLES_MAX][CLOCKS + 1][HOT * WORKERS_MAX];
} model;

void forget_gets(int32_t t) { memset(model.known[t], 0, sizeof model.known[t]); }

/* --- what is added ------------------------------------------------------------------------------------------------ */

bool adds(const world *w, int t, int32_t v, int64_t clock, int h) {
    pli_random r = pli_random_at(w->seed, PLI_RANDOM_SCHEDULE, (uint64_t)(t * 1000 + v * 100 + clock), (uint64_t)h);
    if ((v == w->leaver && clock >= w->leaves_at) || v >= w->workers - w->layout.spares) return false;
    return pli_random_below(&r, 3) > 0;
}

double share(const world *w, int t, int h) { return w->rounds[t] ? 1 + 0.37 * h : 1; }

/* How often a call has doubled what was added in clock `added`, in clock `now`. */
static int doublings(const world *w, int t, int64_t added, int64_t now) {
    int n = 0;
    for (int64_t c = added + 1; c <= now && c < CLOCKS && is_called(w, t); c++) n += (int)(w->calls >> c & 1);
    return n;
}

/* What is there of the first `clocks` clocks, in clock `now`. */
static uint64_t expected_in(const world *w, int t, int32_t v, int64_t clocks, int64_t now, int h) {
    uint64_t bits = 0;
    for (int64_t c = 0; c < clocks; c++)
        if (adds(w, t, v, c, h)) bits += UINT64_C(1) << (c + doublings(w, t, c, now));
    return bits;
}

static uint64_t expected(const world *w, int t, int32_t v, int64_t clocks, int h) {
    return expected_in(w, t, v, clocks, clocks, h);
}

/* --- reads -------------------------------------------------------------------------------------------------------- */

static void tell_value(const world *w, int32_t k, int h, int32_t v, uint64_t seen, uint64_t wanted) {
    const worker   *me = &w->worker[k];
    const pli_spec *spec = &w->spec[me->reads];
    tell(w);
    print_message("worker %d clock %d t %d %s%s h %d v %d: %llx not %llx\n", k, (int)me->clock, me->reads,
                  spec->consistency, spec->ruled ? " ruled" : "", h, v, (unsigned long long)seen,
                  (unsigned long long)wanted);
}

/* A get of an opaque table. */
static void check_opaque(world *w, int32_t k, int64_t clock) {
    worker *me = &w->worker[k];
    double  seen[HOT * WORKERS_MAX] = { 0 };
    int     t = me->reads;
    size_t  row = (size_t)w->workers * sizeof *seen;
    for (int h = 0; h < HOT; h++)
        memcpy(seen + h * w->workers, me->values + (me->ask.by_key ? h : (int64_t)w->hot[h]) * w->workers, row);
    if (!model.known[t][clock]) memcpy(model.values[t][clock], seen, sizeof seen);
    model.known[t][clock] = true;
    if (memcmp(model.values[t][clock], seen, sizeof seen) == 0) return;
    me->in_vain = me->in_vain || me->state == STANDING_READS;
    if (me->state == STANDING_READS) return;
    tell(w);
    print_message("worker %d clock %d t %d\n", k, (int)clock, t);
    for (int i = 0; i < HOT * w->workers; i++) print_message("%d: %a not %a\n", i, seen[i], model.values[t][clock][i]);
    SURE(w, memcmp(model.values[t][clock], seen, sizeof seen) == 0);
}

/* The last clock that who stands in may read, in vain. */
static int64_t last_in_vain(const worker *me, int64_t clock) {
    return me->state != STANDING_READS ? -1 : me->client.leaving ? CLOCKS - 1 : clock;
}

static void check_exactly(world *w, int32_t k, int64_t clock, int h, int32_t v, uint64_t seen) {
    worker        *me = &w->worker[k];
    const uint64_t wanted = expected(w, me->reads, v, clock, h);
    if (seen == wanted) return;
    for (int64_t c = clock; c <= last_in_vain(me, clock); c++) {
        if (seen != expected_in(w, me->reads, v, c + 1, clock, h)) continue;
        me->in_vain = true;
        return;
    }
    tell_value(w, k, h, v, seen, wanted);
    SURE(w, seen == wanted);
}

static void check_bounds(world *w, int32_t k, bool last, int h, int32_t v, uint64_t seen) {
    const int      t = w->worker[k].reads;
    const uint64_t most = expected(w, t, v, CLOCKS, h);
    const int64_t  ended = w->worker[v].clock, lost = w->dead[v] ? ended % w->gathers_for[t] : 0;
    const uint64_t least = expected(w, t, v, v == k ? ended : last ? ended - lost : 0, h);
    uint64_t      *before = &w->worker[k].seen[t][h][v];
    if ((seen & ~most) != 0 || ((least | *before) & ~seen) != 0) tell_value(w, k, h, v, seen, least | *before);
    SURE(w, (seen & ~most) == 0);
    SURE(w, (least & ~seen) == 0);
    SURE(w, (*before & ~seen) == 0);
    *before = seen;
}

/* --- rows that are replaced --------------------------------------------------------------------------------------- */

/* The last of so many clocks in which anybody, or worker v, adds to the row; -1: there is none. */
static int64_t last_of(const world *w, int t, int32_t v, int64_t clocks, int h) {
    for (int64_t c = clocks - 1; c >= 0; c--)
        for (int32_t i = 0; i < w->workers; i++)
            if ((v < 0 || i == v) && adds(w, t, i, c, h)) return c;
    return -1;
}

static bool is_highest(const world *w, int t, int32_t of, int64_t clock, int h) {
    for (int32_t v = of + 1; v < w->workers; v++)
        if (adds(w, t, v, clock, h)) return false;
    return true;
}

/* The least that may be seen of it: of the reader's own clocks, and at the end of everybody's. */
static int64_t least_of(const world *w, int32_t k, bool last, int t, int h) {
    int64_t least = -1;
    for (int32_t v = 0; v < w->workers; v++) {
        if (v != k && !last) continue;
        const int64_t of = last_of(w, t, v, w->worker[v].clock, h);
        least = of > least ? of : least;
    }
    return least;
}

static void check_replaced(world *w, int32_t k, bool last, int h) {
    worker       *me = &w->worker[k];
    const int     t = me->reads;
    const double *row = me->values + (me->ask.by_key ? h : (int64_t)w->hot[h]) * w->workers;
    const int64_t x = (int64_t)row[0], clock = x > 0 ? (x - 1) / 8 : -1, now = last ? CLOCKS : me->clock;
    const int32_t of = (int32_t)((x - 1) % 8);
    bool          good = x == 0 || (of < w->workers && adds(w, t, of, clock, h));
    for (int32_t i = 0; i < w->workers; i++) good = good && row[i] == (double)x;
    if (w->stale[t]) {
        good = good && clock >= least_of(w, k, last, t, h) && clock + 1 >= (int64_t)me->seen[t][h][0];
        me->seen[t][h][0] = (uint64_t)(clock + 1);
    } else if (clock >= now && clock <= last_in_vain(me, now) && last_of(w, t, -1, clock + 1, h) == clock) {
        me->in_vain = true;
        return;
    } else {
        good = good && clock == last_of(w, t, -1, now, h);
        good = good && (x == 0 || (w->mixed >> clock & 1) || is_highest(w, t, of, clock, h));
    }
    if (good) return;
    tell_value(w, k, h, of, (uint64_t)x, (uint64_t)last_of(w, t, -1, now, h));
    SURE(w, good);
}

/* --- filters that round ------------------------------------------------------------------------------------------- */

/* What worker k's filters keep of hot row h, in column v. A filter that rounds a row rounds all its columns. */
static double kept_of(world *w, int t, int32_t k, int h, int32_t v) {
    const pli_client_table *table = w->worker[k].table[t];
    double                  row[WORKERS_MAX] = { 0 };
    plait_part              part = { .keys = &w->hot[h], .n = 1, .cols = w->workers, .type = PLAIT_F64 };
    uint16_t                shard;
    pli_placement_shards(&table->spec.placement, 1, &w->hot[h], &shard);
    pli_residual *rest = &table->chain[shard].residual;
    part.first = (int64_t)w->hot[h];
    if (!rest->keyed) part.keys = NULL;
    pli_residual_add_to(rest, &part, row);
    return row[v];
}

void note_kept(world *w, int32_t k) {
    worker *me = &w->worker[k];
    for (int t = 0; t < w->tables; t++)
        for (int h = 0; w->rounds[t] && h < HOT; h++)
            for (int32_t v = 0; v < w->workers; v++) me->kept[me->clock][t][h][v] = kept_of(w, t, k, h, v);
}

/* Is there, of each dead worker, a clock after which nothing of it counted any more, so that what it kept then is all
 * that is missing? */
static bool explains(world *w, int t, int h, int32_t v, int32_t from, double off) {
    while (from < w->workers && !w->dead[from]) from++;
    if (from == w->workers) return off < 1e-6 && off > -1e-6;
    if (explains(w, t, h, v, from + 1, off + kept_of(w, t, from, h, v))) return true;
    for (int64_t c = 0; c <= CLOCKS; c++)
        if (explains(w, t, h, v, from + 1, off + w->worker[from].kept[c][t][h][v])) return true;
    return false;
}

/* Once all have ended: what was sent, with what the living keep, and the dead had kept, is all that was added. */
static void check_rounded(world *w, int32_t k) {
    const int t = w->worker[k].reads;
    for (int h = 0; h < HOT; h++)
        for (int32_t v = 0; v < w->workers; v++) {
            const int64_t row = w->worker[k].ask.by_key ? h : (int64_t)w->hot[h];
            double        off = -w->worker[k].values[row * w->workers + v];
            off -= (double)expected(w, t, v, w->stale[t] ? w->worker[v].clock : CLOCKS, h) * share(w, t, h);
            for (int32_t i = 0; i < w->workers; i++) off += w->dead[i] ? 0 : kept_of(w, t, i, h, v);
            if ((w->dead[v] && w->stale[t]) || explains(w, t, h, v, 0, off)) continue;
            tell(w);
            print_message("worker %d t %d %s h %d v %d: off by %g\n", k, t, w->spec[t].filter, h, v, off);
            SURE(w, off == 0);
        }
}

/* With backup workers: what came in time is there once, and nothing else. */
static void check_parts(world *w, int32_t k, int h, int32_t v, uint64_t seen) {
    const uint64_t most = expected(w, w->worker[k].reads, v, CLOCKS, h);
    if ((seen & ~most) != 0) tell_value(w, k, h, v, seen, most);
    SURE(w, (seen & ~most) == 0);
}

void check_read(world *w, int32_t k, bool last) {
    worker       *me = &w->worker[k];
    const int64_t clock = last ? CLOCKS : me->clock;
    bool          ruled = w->spec[me->reads].ruled;
    const bool    parts = w->layout.backup > 0;
    if (parts && (w->opaque[me->reads] || w->rounds[me->reads] || w->replaces[me->reads])) return; /* by the audit */
    if (w->ages[me->reads]) return; /* what its replicas hold is compared in the end */
    if (w->opaque[me->reads]) check_opaque(w, k, clock);
    if (w->rounds[me->reads] && last) check_rounded(w, k);
    if (w->opaque[me->reads] || w->rounds[me->reads]) return;
    for (int h = 0; w->replaces[me->reads] && h < HOT; h++) check_replaced(w, k, last, h);
    if (w->replaces[me->reads]) return;
    for (int h = 0; h < HOT; h++)
        for (int32_t v = 0; v < w->workers; v++) {
            double   value = me->values[(me->ask.by_key ? h : (int64_t)w->hot[h]) * w->workers + v];
            uint64_t seen = (uint64_t)(ruled ? -value : value);
            SURE(w, (double)seen == (ruled ? -value : value));
            if (parts) check_parts(w, k, h, v, seen);
            else if (!w->stale[me->reads]) check_exactly(w, k, clock, h, v, seen);
            else check_bounds(w, k, last, h, v, seen);
        }
}

/* --- server functions --------------------------------------------------------------------------------------------- */

/* Every worker hears of a shard what every other has heard. */
void check_call(world *w, int32_t k) {
    worker       *me = &w->worker[k];
    const int32_t t = me->calls, shards = w->spec[t].placement.shards;
    int32_t       n = 0;
    for (const pli_msg *reply = me->ticket.replies; reply != NULL; reply = reply->next, n++) {
        const int32_t shard = pli_placement_shard_at(&w->spec[t].placement, reply->head.src);
        double       *answer = &w->answers[me->clock][t][shard < 0 ? 0 : shard];
        SURE(w, shard >= 0 && reply->head.body_bytes == sizeof *answer);
        if (!w->answered[me->clock][t]) memcpy(answer, pli_msg_body(reply), sizeof *answer);
        SURE(w, memcmp(answer, pli_msg_body(reply), sizeof *answer) == 0);
    }
    SURE(w, n == shards);
    w->answered[me->clock][t] = true;
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

uint64_t brought(int32_t v, uint64_t number) { return number << 8 | (uint64_t)v; }

/* Each has come with what it has brought, or has died; as all others hear. */
void check_gathered(world *w, int32_t k) {
    worker         *me = &w->worker[k];
    const pli_msg  *reply = me->ticket.replies;
    uint32_t        came = 0;
    SURE(w, reply != NULL && reply->head.body_bytes >= (uint64_t)w->workers * sizeof(uint64_t));
    const uint64_t *bytes = pli_msg_body(reply), *at = bytes + w->workers;
    for (int32_t v = 0; v < w->workers; v++) {
        SURE(w, !w->elastic || w->dead[v] || (bytes[v] == PLI_GONE) == (me->client.away[v] != 0));
        SURE(w, bytes[v] == PLI_GONE ? w->dead[v] || w->elastic : bytes[v] == (uint64_t)(v + 1) * sizeof *at);
        for (int32_t i = 0; bytes[v] != PLI_GONE && i <= v; i++) SURE(w, *at++ == brought(v, me->gathering));
        came |= (uint32_t)(bytes[v] != PLI_GONE) << v;
    }
    SURE(w, (const uint64_t *)pli_at_const(bytes, (int64_t)reply->head.body_bytes) == at);
    SURE(w, (came >> k & 1) && (w->came[me->gathering] == 0 || w->came[me->gathering] == came));
    w->came[me->gathering] = came;
}

/* --- replicas ----------------------------------------------------------------------------------------------------- */

static bool same_rows(const pli_store *a, const pli_store *b) {
    const pli_spec *spec = a->spec;
    const int64_t   row_bytes = pli_row_bytes(spec);
    if (a->rows != b->rows || a->units != b->units) return false;
    for (int64_t r = 0; r < a->rows; r++) {
        const pli_chunk *x = &a->chunk[r >> a->shift], *y = &b->chunk[r >> b->shift];
        const int64_t    at = (r & a->mask) * row_bytes;
        if (memcmp(pli_at_const(x->values, at), pli_at_const(y->values, at), (size_t)row_bytes) != 0) return false;
        int64_t stamps[2];
        pli_store_copy_stamps(a, r, 1, &stamps[0]);
        pli_store_copy_stamps(b, r, 1, &stamps[1]);
        if (stamps[0] != stamps[1]) return false;
        for (int i = 0; spec->ruled && i < spec->rule.ops->slots; i++) {
            const void *of_x = pli_at_const(x->slot[i], at), *of_y = pli_at_const(y->slot[i], at);
            if (memcmp(of_x, of_y, (size_t)row_bytes) != 0) return false;
        }
    }
    return true;
}

/* Has the other replica, where it lives, confirmed all of the log? */
static bool all_is_logged(void *arg) {
    const world *w = arg;
    for (int32_t s = 0; s < w->layout.servers; s++) {
        const pli_server *replica = who_serves(w, s);
        if (replica != NULL && other_of(w, replica) != NULL && replica->replicas->first != NULL) return false;
    }
    return true;
}

/* Where both replicas of shards live, they are the same, now that all has arrived; and some of it again, where the
 * network loses: there who is gone is told for ever. Where nobody is, all becomes quiet. */
void compare_copies(world *w) {
    if (!direct_run_until(w->d, all_is_logged, w, 200000)) tell(w);
    SURE(w, all_is_logged(w));
    const bool ends = !w->dies && w->layout.first_server > 0; /* ranks with shards are told that others have ended */
    SURE(w, direct_run(w->d, ends ? 100000 : AFTERWARDS) || !ends);
    SURE(w, all_is_logged(w));
    for (int32_t s = 0; s < w->layout.servers; s++) {
        const pli_server *a = who_serves(w, s), *b = a == NULL ? NULL : other_of(w, a);
        if (b == NULL) continue; /* or who would serve has ended, and hears nothing any more */
        if (a->replicas->making && a->replicas->over) continue; /* all have left before it had all rows */
        const bool clocks = pli_server_has_clocks(a);
        if (!b->replicas->whole || b->replicas->serves || (clocks && a->applied != b->applied)) tell(w);
        SURE(w, b->replicas->whole && !b->replicas->serves && (a->applied == b->applied || !clocks));
        for (int64_t t = 0; t < a->tables; t++) {
            if (a->table[t] == NULL) continue;
            SURE(w, b->table[t] != NULL && same_rows(&a->table[t]->shard.store, &b->table[t]->shard.store));
        }
    }
}
