/* A step on the ranks, in simulated time. Events are the ends of nodes and the arrivals of values, in the order of
 * time. A rank that is free begins the ready node of the earliest micro-batch and, among those, the one with the
 * longest way to the end (list scheduling: Graham 1969; the priority is HEFT's). A value goes once to each other
 * rank that reads it; a rank sends one value at a time, and takes one at a time. */
#include <string.h>

#include "graph/place/judge.h"

static bool make_ready(pli_judge *j, pli_placing *l, size_t tasks) {
    const size_t ranks = (size_t)l->opts->ranks;
    j->waits = pli_arena_take(&l->arena, (tasks + 1) * sizeof *j->waits);
    j->ready = pli_arena_take(&l->arena, ranks * sizeof *j->ready);
    bool ok = j->waits != NULL && j->ready != NULL;
    for (size_t r = 0; ok && r < ranks; r++)
        ok = (j->ready[r].task = pli_arena_take(&l->arena, (tasks + 1) * sizeof(int32_t))) != NULL;
    return ok;
}

pli_judge *pli_judge_make(pli_placing *l) {
    const size_t ranks = (size_t)l->opts->ranks, micro = (size_t)l->opts->micro_batches, n = (size_t)l->nodes * micro;
    const size_t parts = (size_t)l->parts, ways = (size_t)l->first[l->values];
    pli_judge   *j = pli_arena_take(&l->arena, sizeof *j);
    if (j == NULL) return NULL;
    *j = (pli_judge){ .load = l };
    bool ok = true;
#define TAKE(field, count) (ok = ok && (j->field = pli_arena_take(&l->arena, ((count) + 1) * sizeof *j->field)) != NULL)
    /* of a rank its end, and of a value its arrivals and, in a schedule, its grants */
    TAKE(event, l->opts->schedule == NULL ? n + (size_t)l->values * micro * ranks : ranks + 2 * ways * micro);
    TAKE(busy, ranks);
    TAKE(sends, ranks);
    TAKE(takes, ranks);
    TAKE(worked, ranks);
    TAKE(sent, ranks);
    TAKE(memory.alive, parts);
    TAKE(memory.most, parts);
    TAKE(memory.held, parts);
    TAKE(memory.ends, ((size_t)l->nodes + 1) * parts);
#undef TAKE
    ok = ok && (l->opts->schedule == NULL ? make_ready(j, l, n) : pli_follow_make(j, l));
    return ok ? j : NULL;
}

/* --- heaps -------------------------------------------------------------------------------------------------------- */

static bool sooner(const pli_place_event *a, const pli_place_event *b) {
    return a->at != b->at ? a->at < b->at : a->number < b->number;
}

void pli_judge_push(pli_judge *j, pli_place_event e) {
    int64_t at = j->events++;
    e.number = j->numbers++;
    for (; at > 0 && sooner(&e, &j->event[(at - 1) / 2]); at = (at - 1) / 2) j->event[at] = j->event[(at - 1) / 2];
    j->event[at] = e;
}

pli_place_event pli_judge_pop(pli_judge *j) {
    const pli_place_event top = j->event[0], last = j->event[--j->events];
    int64_t     at = 0;
    for (int64_t child; (child = 2 * at + 1) < j->events; at = child) {
        if (child + 1 < j->events && sooner(&j->event[child + 1], &j->event[child])) child++;
        if (!sooner(&j->event[child], &last)) break;
        j->event[at] = j->event[child];
    }
    j->event[at] = last;
    return top;
}

static bool before(const pli_placing *l, int32_t a, int32_t b) {
    const int32_t batch_a = a / l->nodes, batch_b = b / l->nodes;
    if (batch_a != batch_b) return batch_a < batch_b;
    const double up_a = l->up[a % l->nodes], up_b = l->up[b % l->nodes];
    return up_a != up_b ? up_a > up_b : a < b;
}

static void push_ready(const pli_placing *l, pli_place_heap *h, int32_t task) {
    int32_t at = h->n++;
    for (; at > 0 && before(l, task, h->task[(at - 1) / 2]); at = (at - 1) / 2) h->task[at] = h->task[(at - 1) / 2];
    h->task[at] = task;
}

static int32_t pop_ready(const pli_placing *l, pli_place_heap *h) {
    const int32_t top = h->task[0], last = h->task[--h->n];
    int32_t       at = 0;
    for (int32_t child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && before(l, h->task[child + 1], h->task[child])) child++;
        if (!before(l, h->task[child], last)) break;
        h->task[at] = h->task[child];
    }
    h->task[at] = last;
    return top;
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static void begin_next(pli_judge *j, int32_t rank, double now) {
    if (j->busy[rank] || j->ready[rank].n == 0) return;
    const pli_placing *l = j->load;
    const int32_t      task = pop_ready(l, &j->ready[rank]);
    const double       takes = l->ns[task % l->nodes] * 1e-9 / pli_place_speed(l->opts, rank);
    j->busy[rank] = true;
    j->worked[rank] += takes;
    pli_judge_push(j, (pli_place_event){ .at = now + takes, .task = task, .value = -1, .rank = rank });
}

/* A value is there: the nodes of this rank that read it wait for one input less. */
static void arrive(pli_judge *j, const int32_t *part, int32_t batch, int32_t value, int32_t rank) {
    const pli_placing *l = j->load;
    for (int32_t i = l->first[value]; i < l->first[value + 1]; i++) {
        const int32_t k = l->reader[i], task = batch * l->nodes + k;
        if (part[l->unit[k]] == rank && --j->waits[task] == 0) push_ready(l, &j->ready[rank], task);
    }
}

double pli_judge_carry(pli_judge *j, int32_t value, int32_t from, int32_t to, double start) {
    const pli_placing *l = j->load;
    if (j->sends[from] > start) start = j->sends[from];
    if (j->takes[to] > start) start = j->takes[to];
    const double through = start + l->bytes[value] / pli_place_bandwidth(l->opts, from, to);
    j->sends[from] = j->takes[to] = through;
    j->sent[from] += l->bytes[value];
    return through + pli_place_latency(l->opts, from, to);
}

static void send_value(pli_judge *j, int32_t batch, int32_t value, int32_t from, int32_t to, double now) {
    const double message = j->load->opts->message_ns * 1e-9;
    const double through = pli_judge_carry(j, value, from, to, now + message);
    pli_judge_push(j, (pli_place_event){ .at = through + message, .task = batch, .value = value, .rank = to });
}

static void finish(pli_judge *j, const int32_t *part, int32_t task, int32_t rank, double now) {
    const pli_placing *l = j->load;
    const int32_t      k = task % l->nodes, batch = task / l->nodes;
    for (int32_t v = l->out[k]; v < l->out[k] + l->outs[k]; v++) {
        arrive(j, part, batch, v, rank);
        for (int32_t i = l->first[v]; i < l->first[v + 1]; i++) {
            const int32_t to = part[l->unit[l->reader[i]]];
            int32_t       earlier = l->first[v];
            while (earlier < i && part[l->unit[l->reader[earlier]]] != to) earlier++;
            if (to != rank && earlier == i) send_value(j, batch, v, rank, to, now);
        }
    }
}

static double run_step(pli_judge *j, const int32_t *part) {
    const pli_placing *l = j->load;
    double             now = 0;
    for (int32_t r = 0; r < l->opts->ranks; r++) j->ready[r].n = 0;
    for (int32_t m = 0; m < l->opts->micro_batches; m++)
        for (int32_t k = 0; k < l->nodes; k++) {
            const int32_t task = m * l->nodes + k;
            j->waits[task] = l->inputs[k];
            if (l->inputs[k] == 0) push_ready(l, &j->ready[part[l->unit[k]]], task);
        }
    for (int32_t r = 0; r < l->opts->ranks; r++) begin_next(j, r, 0);
    while (j->events > 0) {
        const pli_place_event e = pli_judge_pop(j);
        now = e.at;
        if (e.value < 0) {
            j->busy[e.rank] = false;
            finish(j, part, e.task, e.rank, now);
        } else {
            arrive(j, part, e.task, e.value, e.rank);
        }
        begin_next(j, e.rank, now);
    }
    return now;
}

/* --- the judgement ------------------------------------------------------------------------------------------------ */

static void fill(const pli_judge *j, const int32_t *part, double seconds, plait_place_share *share) {
    const pli_placing *l = j->load;
    const int32_t      ranks = l->opts->ranks;
    for (int32_t r = 0; r < ranks; r++)
        share[r] = (plait_place_share){ .sent_bytes = j->sent[r],
                                        .busy_s = j->worked[r],
                                        .idle_s = seconds - j->worked[r] };
    for (int32_t p = 0; p < l->parts; p++) {
        share[p % ranks].variable_bytes += j->memory.held[p];
        share[p % ranks].activation_bytes += j->memory.most[p];
    }
    for (int32_t k = 0; k < l->nodes; k++) {
        share[part[l->unit[k]] % ranks].nodes++;
        share[part[l->unit[k]] % ranks].operations += l->operations[k] * l->opts->micro_batches;
    }
}

/* Bytes beyond the memory of the ranks, which have the parts r, r + ranks, .. */
static double excess_of(const pli_judge *j) {
    const plait_place_opts *o = j->load->opts;
    double                  excess = 0;
    for (int32_t r = 0; r < o->ranks; r++) {
        double over = -(double)o->memory_bytes[r];
        for (int32_t p = r; p < j->load->parts; p += o->ranks) over += j->memory.held[p] + j->memory.most[p];
        if (over > 0) excess += over;
    }
    return excess;
}

static double seconds_of(pli_judge *j, const int32_t *part) {
    const plait_place_opts *o = j->load->opts;
    j->events = j->numbers = 0;
    for (int32_t r = 0; r < o->ranks; r++) {
        j->busy[r] = false;
        j->sends[r] = j->takes[r] = j->worked[r] = j->sent[r] = 0;
    }
    return o->schedule == NULL ? run_step(j, part) : pli_follow_step(j, part);
}

pli_judged pli_judge_run(pli_judge *j, const int32_t *part, plait_place_share *share) {
    const plait_place_opts *o = j->load->opts;
    pli_judged              judged = { .seconds = seconds_of(j, part) };
    if (o->chain != 0 || o->chunks > 1) judged.broken = j->back;
    for (int32_t r = 0; r < o->ranks; r++) judged.sent += j->sent[r];
    for (int32_t i = 0; i < j->load->n_apart; i++)
        judged.broken += part[j->load->apart[2 * i]] == part[j->load->apart[2 * i + 1]];
    if (o->memory_bytes != NULL || share != NULL) {
        const bool few = o->schedule != NULL && strcmp(o->schedule, pli_pipelines[PLI_1F1B]) == 0 && j->back == 0;
        pli_place_memory(j->load, part, few, &j->memory);
    }
    if (o->memory_bytes != NULL) judged.excess = excess_of(j);
    if (share != NULL) fill(j, part, judged.seconds, share);
    return judged;
}
