/* A step in the order of a pipeline's schedule, as sessions run it (graph/batches.c): a rank does the pieces of its
 * schedule one after the other, and in a piece the nodes of its part in the order of the plan. It sends a value right
 * after the node that makes it. It takes a value of another part where the plan has the node that makes it, and waits
 * there until the value has come, even if it could compute something else. An edge has a bounded number of values under
 * way. So a placement whose parts read from each other costs what it will cost: its ranks wait for each other within
 * each micro-batch.
 *
 * Parts are a *chain* if none reads in the forward pass what a later one makes. Where they are no chain, only gpipe can
 * run them, so they are judged by it. */
#include <math.h>
#include <string.h>

#include "graph/place/judge.h"

/* Events that are no arrival of a value. */
enum { ENDS = -1, GRANTED = -2 };

static int32_t host_of(const pli_placing *l, int32_t part) { return part % l->opts->ranks; }

bool pli_follow_make(pli_judge *j, pli_placing *l) {
    const size_t ranks = (size_t)l->opts->ranks, parts = (size_t)l->parts, ways = (size_t)l->first[l->values];
    const size_t micro = (size_t)l->opts->micro_batches;
#define TAKE(field, count) ((j->field = pli_arena_take(&l->arena, ((count) + 1) * sizeof *j->field)) != NULL)
    return TAKE(begin, 2 * parts + 1) && TAKE(stamp, parts) && TAKE(item, (size_t)l->nodes + 2 * ways) &&
           TAKE(way, ways) && TAKE(there, ways * micro) && TAKE(turn, ranks);
#undef TAKE
}

/* --- what each part does ------------------------------------------------------------------------------------------ */

/* Items are counted by part and direction in the first round, and written in the second. */
typedef struct writer {
    pli_judge     *judge;
    const int32_t *part; /* [units] */
    bool           writes;
} writer;

static void add(const writer *w, int32_t part, bool late, pli_place_kind kind, int32_t index) {
    int32_t *at = &w->judge->begin[2 * part + late + 1];
    if (w->writes) w->judge->item[*at] = (pli_place_item){ kind, index };
    ++*at;
}

/* The ways of a value to the other parts that read it. */
static void add_ways(const writer *w, int32_t value, int32_t from, bool late) {
    pli_judge         *j = w->judge;
    const pli_placing *l = j->load;
    for (int32_t i = l->first[value]; i < l->first[value + 1]; i++) {
        const int32_t to = w->part[l->unit[l->reader[i]]];
        if (to == from || j->stamp[to] == value) continue;
        j->stamp[to] = value;
        j->way[j->ways] = (pli_place_way){ .value = value, .from = from, .to = to };
        add(w, from, late, PLI_PLACE_SENDS, j->ways);
        add(w, to, late, PLI_PLACE_TAKES, j->ways++);
        if (!late && to < from) j->back++;
    }
}

/* Rows come in on part 0. */
static void list(const writer *w) {
    pli_judge         *j = w->judge;
    const pli_placing *l = j->load;
    j->ways = j->back = 0;
    for (int32_t p = 0; p < l->parts; p++) j->stamp[p] = -1;
    for (int32_t i = 0; i < l->n_fed; i++) add_ways(w, l->fed[i], 0, false);
    for (int32_t k = 0; k < l->nodes; k++) {
        const int32_t part = w->part[l->unit[k]];
        add(w, part, l->late[k], PLI_PLACE_COMPUTES, k);
        for (int32_t v = l->out[k]; v < l->out[k] + l->outs[k]; v++) add_ways(w, v, part, l->late[k]);
    }
}

static void list_items(pli_judge *j, const int32_t *part) {
    const int32_t lists = 2 * j->load->parts;
    memset(j->begin, 0, ((size_t)lists + 2) * sizeof *j->begin);
    list(&(writer){ j, part, false });
    for (int32_t i = 0; i < lists; i++) j->begin[i + 1] += j->begin[i]; /* where list i ends */
    for (int32_t i = lists; i > 0; i--) j->begin[i] = j->begin[i - 1];  /* where it begins, for the writer to move */
    list(&(writer){ j, part, true });
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static double message(const pli_placing *l, int32_t way_value) {
    return (l->opts->message_ns + l->opts->byte_ns * l->bytes[way_value]) * 1e-9;
}

/* The next item of a rank; NULL: it has done all. */
static const pli_place_item *next_item(pli_judge *j, int32_t rank) {
    pli_place_turn *t = &j->turn[rank];
    while (!t->done && (!t->begun || t->at == t->end)) {
        if (t->begun) pli_pipeline_done(&t->schedule);
        t->begun = pli_pipeline_next(&t->schedule, &t->work);
        t->done = !t->begun;
        if (t->done) break;
        const int32_t list = 2 * t->work.part + t->work.backward;
        t->at = j->begin[list];
        t->end = j->begin[list + 1];
    }
    return t->done ? NULL : &j->item[t->at];
}

/* Seconds that an item takes its rank; below 0: it cannot begin. A message costs both sides its bytes, and the grant
 * that answers it. */
static double time_of(pli_judge *j, int32_t rank, const pli_place_item *item) {
    const pli_placing *l = j->load;
    if (item->kind == PLI_PLACE_COMPUTES) return l->ns[item->index] * 1e-9 / pli_place_speed(l->opts, rank);
    pli_place_way *w = &j->way[item->index];
    const bool     own = host_of(l, w->from) == host_of(l, w->to);
    const int64_t  at = (int64_t)j->turn[rank].work.micro_batch * j->ways + item->index;
    if (item->kind == PLI_PLACE_TAKES && !j->there[at]) return -1;
    if (item->kind == PLI_PLACE_SENDS && !own && w->under_way > l->parts) return -1;
    if (item->kind == PLI_PLACE_SENDS && !own) w->under_way++;
    return own ? 0 : message(l, w->value) + l->opts->message_ns * 1e-9;
}

static void begin_next(pli_judge *j, int32_t rank, double now) {
    if (j->busy[rank]) return;
    const pli_place_item *item = next_item(j, rank);
    const double          takes = item != NULL ? time_of(j, rank, item) : -1;
    if (takes < 0) return;
    j->busy[rank] = true;
    j->worked[rank] += takes;
    pli_judge_push(j, (pli_place_event){ .at = now + takes, .value = ENDS, .rank = rank });
}

static void send_way(pli_judge *j, int32_t rank, int32_t index, double now) {
    const pli_placing   *l = j->load;
    const pli_place_way *w = &j->way[index];
    const int32_t        to = host_of(l, w->to), m = j->turn[rank].work.micro_batch;
    const double         through = to == rank ? now : pli_judge_carry(j, w->value, rank, to, now);
    pli_judge_push(j, (pli_place_event){ .at = through, .task = m, .value = index, .rank = to });
}

/* The sender may send one more when it has heard that one was taken. */
static void grant(pli_judge *j, int32_t rank, int32_t index, double now) {
    const int32_t from = host_of(j->load, j->way[index].from);
    if (from == rank) return;
    const double latency = pli_place_latency(j->load->opts, rank, from);
    pli_judge_push(j, (pli_place_event){ .at = now + latency, .task = index, .value = GRANTED, .rank = from });
}

static void end_item(pli_judge *j, int32_t rank, double now) {
    const pli_place_item item = j->item[j->turn[rank].at++];
    j->busy[rank] = false;
    if (item.kind == PLI_PLACE_SENDS) send_way(j, rank, item.index, now);
    if (item.kind == PLI_PLACE_TAKES) grant(j, rank, item.index, now);
}

static bool begin(pli_judge *j) {
    const plait_place_opts *o = j->load->opts;
    const int32_t           chunks = o->chunks;
    const char             *schedule = j->back > 0 && chunks == 1 ? pli_pipelines[PLI_GPIPE] : o->schedule;
    memset(j->there, 0, (size_t)j->ways * (size_t)o->micro_batches * sizeof *j->there);
    for (int32_t r = 0; r < o->ranks; r++) {
        j->turn[r] = (pli_place_turn){ .at = 0 };
        if (pli_pipeline_init(&j->turn[r].schedule, schedule, o->ranks, chunks, o->micro_batches, r, NULL) < 0)
            return false;
    }
    return j->back == 0 || chunks == 1;
}

double pli_follow_step(pli_judge *j, const int32_t *part) {
    const int32_t ranks = j->load->opts->ranks;
    double        now = 0;
    list_items(j, part);
    if (!begin(j)) return INFINITY;
    for (int32_t r = 0; r < ranks; r++) begin_next(j, r, 0);
    while (j->events > 0) {
        const pli_place_event e = pli_judge_pop(j);
        now = e.at;
        if (e.value == ENDS)
            end_item(j, e.rank, now);
        else if (e.value == GRANTED)
            j->way[e.task].under_way--;
        else
            j->there[(int64_t)e.task * j->ways + e.value] = true;
        begin_next(j, e.rank, now);
    }
    for (int32_t r = 0; r < ranks; r++)
        if (!j->turn[r].done) return INFINITY; /* ranks wait for each other */
    return now;
}
