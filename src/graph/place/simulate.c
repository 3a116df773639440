/* A step on the ranks, in simulated time. Events are the ends of nodes and the arrivals of values, in the order of
 * time. A rank that is free begins the ready node of the earliest micro-batch and, among those, the one with the
 * longest way to the end (list scheduling: Graham 1969; the priority is HEFT's). A value goes once to each other
 * rank that reads it; a rank sends one value at a time, and takes one at a time. */
#include <string.h>

#include "graph/place/place.h"

typedef struct event {
    double  at;
    int32_t task, value, rank; /* value -1: the task ends */
    int32_t number;            /* decides between equal times */
} event;

typedef struct heap {
    int32_t *task;
    int32_t  n;
} heap;

struct pli_judge {
    const pli_placing *load;
    int32_t           *waits; /* [tasks] */
    event             *event; /* a heap; capacity: tasks + values * micro-batches * ranks */
    int64_t            events;
    int32_t            numbers;
    heap              *ready;                         /* [ranks] */
    bool              *busy;                          /* [ranks] */
    double            *sends, *takes, *worked, *sent; /* [ranks] */
    pli_memory_scratch memory;
};

pli_judge *pli_judge_make(pli_placing *l) {
    const size_t ranks = (size_t)l->opts->ranks, micro = (size_t)l->opts->micro_batches, n = (size_t)l->nodes * micro;
    pli_judge   *j = pli_arena_take(&l->arena, sizeof *j);
    if (j == NULL) return NULL;
    *j = (pli_judge){ .load = l };
    bool ok = true;
#define TAKE(field, count) (ok = ok && (j->field = pli_arena_take(&l->arena, ((count) + 1) * sizeof *j->field)) != NULL)
    TAKE(waits, n);
    TAKE(event, n + (size_t)l->values * micro * ranks);
    TAKE(ready, ranks);
    TAKE(busy, ranks);
    TAKE(sends, ranks);
    TAKE(takes, ranks);
    TAKE(worked, ranks);
    TAKE(sent, ranks);
    TAKE(memory.alive, ranks);
    TAKE(memory.most, ranks);
    TAKE(memory.held, ranks);
    TAKE(memory.ends, ((size_t)l->nodes + 1) * ranks);
#undef TAKE
    for (size_t r = 0; ok && r < ranks; r++)
        ok = (j->ready[r].task = pli_arena_take(&l->arena, (n + 1) * sizeof(int32_t))) != NULL;
    return ok ? j : NULL;
}

/* --- heaps -------------------------------------------------------------------------------------------------------- */

static bool sooner(const event *a, const event *b) { return a->at != b->at ? a->at < b->at : a->number < b->number; }

static void push_event(pli_judge *j, event e) {
    int64_t at = j->events++;
    e.number = j->numbers++;
    for (; at > 0 && sooner(&e, &j->event[(at - 1) / 2]); at = (at - 1) / 2) j->event[at] = j->event[(at - 1) / 2];
    j->event[at] = e;
}

static event pop_event(pli_judge *j) {
    const event top = j->event[0], last = j->event[--j->events];
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

static void push_ready(const pli_placing *l, heap *h, int32_t task) {
    int32_t at = h->n++;
    for (; at > 0 && before(l, task, h->task[(at - 1) / 2]); at = (at - 1) / 2) h->task[at] = h->task[(at - 1) / 2];
    h->task[at] = task;
}

static int32_t pop_ready(const pli_placing *l, heap *h) {
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
    push_event(j, (event){ .at = now + takes, .task = task, .value = -1, .rank = rank });
}

/* A value is there: the nodes of this rank that read it wait for one input less. */
static void arrive(pli_judge *j, const int32_t *part, int32_t batch, int32_t value, int32_t rank) {
    const pli_placing *l = j->load;
    for (int32_t i = l->first[value]; i < l->first[value + 1]; i++) {
        const int32_t k = l->reader[i], task = batch * l->nodes + k;
        if (part[l->unit[k]] == rank && --j->waits[task] == 0) push_ready(l, &j->ready[rank], task);
    }
}

static void send_value(pli_judge *j, int32_t batch, int32_t value, int32_t from, int32_t to, double now) {
    const pli_placing *l = j->load;
    const double       message = l->opts->message_ns * 1e-9;
    double             start = now + message;
    if (j->sends[from] > start) start = j->sends[from];
    if (j->takes[to] > start) start = j->takes[to];
    const double through = start + l->bytes[value] / pli_place_bandwidth(l->opts, from, to);
    j->sends[from] = j->takes[to] = through;
    j->sent[from] += l->bytes[value];
    push_event(j, (event){ .at = through + pli_place_latency(l->opts, from, to) + message,
                           .task = batch,
                           .value = value,
                           .rank = to });
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
    j->events = j->numbers = 0;
    for (int32_t r = 0; r < l->opts->ranks; r++) {
        j->ready[r].n = 0;
        j->busy[r] = false;
        j->sends[r] = j->takes[r] = j->worked[r] = j->sent[r] = 0;
    }
    for (int32_t m = 0; m < l->opts->micro_batches; m++)
        for (int32_t k = 0; k < l->nodes; k++) {
            const int32_t task = m * l->nodes + k;
            j->waits[task] = l->inputs[k];
            if (l->inputs[k] == 0) push_ready(l, &j->ready[part[l->unit[k]]], task);
        }
    for (int32_t r = 0; r < l->opts->ranks; r++) begin_next(j, r, 0);
    while (j->events > 0) {
        const event e = pop_event(j);
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

static void fill(const pli_judge *j, const int32_t *part, double seconds, plait_place_share *share) {
    const pli_placing *l = j->load;
    for (int32_t r = 0; r < l->opts->ranks; r++)
        share[r] = (plait_place_share){ .variable_bytes = j->memory.held[r],
                                        .activation_bytes = j->memory.most[r],
                                        .sent_bytes = j->sent[r],
                                        .busy_s = j->worked[r],
                                        .idle_s = seconds - j->worked[r] };
    for (int32_t k = 0; k < l->nodes; k++) {
        share[part[l->unit[k]]].nodes++;
        share[part[l->unit[k]]].operations += l->operations[k] * l->opts->micro_batches;
    }
}

pli_judged pli_judge_run(pli_judge *j, const int32_t *part, plait_place_share *share) {
    const plait_place_opts *o = j->load->opts;
    pli_judged              judged = { .seconds = run_step(j, part) };
    for (int32_t r = 0; r < o->ranks; r++) judged.sent += j->sent[r];
    for (int32_t i = 0; i < j->load->n_apart; i++)
        judged.broken += part[j->load->apart[2 * i]] == part[j->load->apart[2 * i + 1]];
    if (o->memory_bytes != NULL || share != NULL) pli_place_memory(j->load, part, &j->memory);
    for (int32_t r = 0; o->memory_bytes != NULL && r < o->ranks; r++) {
        const double over = j->memory.held[r] + j->memory.most[r] - (double)o->memory_bytes[r];
        if (over > 0) judged.excess += over;
    }
    if (share != NULL) fill(j, part, judged.seconds, share);
    return judged;
}
