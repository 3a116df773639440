/* judge.c - the record of a program against the promises: every value of every read is taken apart into updates. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

typedef struct judgement {
    facts     f;
    int64_t   reads;
    char     *why;
    uint64_t *evidence[TABLES]; /* [rows, cols, DIGITS]: when a worker had first read another's update; 0: never */
    mass     *mass;
    uint8_t  *seen[TABLES]; /* [rows, cols, DIGITS]: what the reader has had of it */
    double   *last[TABLES]; /* [rows, cols], where nothing adds up: what the reader has read last; LATEST: its turn */
    uint64_t *clock_began;  /* of the reader: [clocks + 1] */
} judgement;

__attribute__((format(printf, 2, 3))) static bool broken(judgement *j, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(j->why, WHY_BYTES, format, list);
    va_end(list);
    return false;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static int64_t rows_of(const plan *t) { return t->sparse ? t->n_groups : t->rows; }

/* Each column has its digits in another order, so that columns cannot be taken for each other; not where sizes
 * matter. */
static int32_t place(const plan *t, int32_t digit, int32_t col) {
    return t->policy == VAP ? digit : (digit + 5 * col) % t->digits;
}

double weight(const plan *t, int32_t digit, int32_t col) { return t->unit * pow(t->base, place(t, digit, col)); }

/* How often the value holds each digit; false: it is no sum of whole updates. */
static bool take_apart(const plan *t, double value, int32_t col, int32_t counts[DIGITS]) {
    double units = (t->ruled ? -value : value) / t->unit;
    if (t->way == GOSSIP || (t->policy == LOCAL_SGD && t->ruled))
        units = fabs(units - rint(units)) < 0.25 ? rint(units) : units;
    if (!(units >= 0 && units < 9e15) || units != floor(units)) return false;
    uint64_t left = (uint64_t)units;
    int32_t  at[DIGITS];
    for (int32_t i = 0; i < t->digits; i++) {
        at[i] = (int32_t)(left % (uint64_t)t->base);
        left /= (uint64_t)t->base;
    }
    for (int32_t d = 0; d < t->digits; d++) counts[d] = at[place(t, d, col)];
    return left == 0;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

typedef struct cell {
    const reading *r;
    uint64_t       row;
    int32_t        col;
    double         value;
} cell;

static bool wrong_cell(judgement *j, const cell *x, const char *what, const char *promise) {
    const program *p = j->f.p;
    const plan    *t = &p->tables[x->r->table];
    return broken(j,
                  "worker %d in clock %d, call %d (%s): %s %" PRIu64
                  " column %d of %s (%s x %s, %s) is %.17g: %s; promised: %s",
                  x->r->worker, x->r->clock, x->r->from, name_of(p->calls[x->r->worker][x->r->from].kind),
                  t->sparse ? "key" : "row", x->row, x->col, t->name, t->topology, t->consistency,
                  t->combine == LATEST   ? "last"
                  : t->combine != ADD_UP ? (t->combine == LEAST ? "min" : "max")
                  : t->ruled          ? "ruled"
                                      : "additive",
                  x->value, what, promise);
}

static bool wrong_update(judgement *j, const cell *x, const update *u, int32_t count, int32_t limit,
                         const char *promise) {
    char what[200];
    snprintf(what, sizeof what,
             "it holds the update of worker %d in its clock %d (its call %d, %s, %.17g) %d times, not %d", u->worker,
             u->clock, u->call, name_of(j->f.p->calls[u->worker][u->call].kind),
             weight(&j->f.p->tables[x->r->table], u->digit, x->col), count, limit);
    return wrong_cell(j, x, what, promise);
}

/* --- one value ---------------------------------------------------------------------------------------------------- */

static bool judge_norm(judgement *j, const cell *x, const group *g, const int32_t counts[DIGITS]) {
    const plan *t = &j->f.p->tables[x->r->table];
    double      unseen[WORKERS] = { 0 }, most = 0;
    char        what[120];
    for (int32_t i = 0; i < g->n_updates; i++) {
        const update *u = &g->updates[i];
        const record *made = &j->f.diaries[u->worker].calls[u->call];
        if (u->worker == x->r->worker || counts[u->digit] > 0 || made->ended == 0 || made->ended >= x->r->begun)
            continue;
        if (u->clock >= j->f.left_in[u->worker] || is_zeroed(t, x->r->clock, u)) continue;
        unseen[u->worker] += weight(t, u->digit, x->col);
    }
    for (int32_t v = 0; v < j->f.p->workers; v++) most = t->weak ? fmax(most, unseen[v]) : most + unseen[v];
    if (most < t->norm) return true;
    snprintf(what, sizeof what, "it misses %.17g of what others had added before the call", most);
    return wrong_cell(j, x, what, "vap's bound");
}

static bool judge_digits(judgement *j, const cell *x, const group *g, const int32_t counts[DIGITS],
                         const uint64_t *evidence, uint8_t *seen) {
    int32_t known[DIGITS];
    for (int32_t d = 0; d < DIGITS; d++) known[d] = -1;
    for (int32_t i = 0; i < g->n_updates; i++) known[g->updates[i].digit] = i;
    for (int32_t d = 0; d < j->f.p->tables[x->r->table].digits; d++) {
        if (known[d] < 0 && counts[d] > 0) return wrong_cell(j, x, "it holds what nobody has added", "sums of updates");
        if (known[d] < 0) continue;
        const update *u = &g->updates[known[d]];
        const limits  l = promised(&j->f, x->r, u, evidence[d]);
        if (counts[d] < l.least) return wrong_update(j, x, u, counts[d], l.least, l.why_least);
        if (counts[d] > l.most)
            return wrong_update(j, x, u, counts[d], l.most,
                                counts[d] > 1 && l.most > 0 ? "no update is applied twice" : l.why_most);
        const bool dropped =
            u->worker == x->r->worker && (x->r->function || (x->r->left && u->clock >= j->f.left_in[u->worker]));
        if (counts[d] == 0 && seen[d] > 0 && !dropped && !is_zeroed(&j->f.p->tables[x->r->table], x->r->clock, u))
            return wrong_update(j, x, u, 0, 1, "reads never go back to an older state");
    }
    return true;
}

/* Does the table keep update a, if a and b have come? */
static bool wins(const plan *t, double a, double b) { return t->combine == LEAST ? a < b : a > b; }

static bool is_fresh(const plan *t, const reading *r) { return t->zeroed >= 0 && r->clock >= t->zeroed; }

/* A table that keeps one of its updates holds one that may be there, or what it began with; and no update that must be
 * there is beyond it. */
static bool judge_extreme(judgement *j, const cell *x, const group *g, const uint64_t *evidence, double last) {
    const plan  *t = &j->f.p->tables[x->r->table];
    const double base = is_fresh(t, x->r) ? nothing(t) : initial(t, x->row, x->col);
    bool         known = x->value == base;
    if (wins(t, base, x->value)) return wrong_cell(j, x, "it lost what the row began with", "what is kept");
    for (int32_t i = 0; i < g->n_updates; i++) {
        const update *u = &g->updates[i];
        const limits  l = promised(&j->f, x->r, u, evidence[u->digit]);
        const double  w = weight(t, u->digit, x->col);
        known = known || (l.most > 0 && x->value == w);
        if (l.least > 0 && wins(t, w, x->value)) return wrong_update(j, x, u, 0, 1, l.why_least);
        if (l.most == 0 && x->value == w) return wrong_update(j, x, u, 1, 0, l.why_most);
    }
    if (!known) return wrong_cell(j, x, "it is none of what was pushed", "one of the updates");
    if (!x->r->function && !x->r->left && wins(t, last, x->value))
        return wrong_cell(j, x, "the worker had read it beyond that", "reads never go back to an older state");
    return true;
}

/* If two updates replace a row, the one of the later turn counts. */
static double turn_of(const update *u) {
    return ((double)u->clock * WORKERS + (double)u->worker) * CALLS + (double)u->call + 1;
}

/* The update that a replaced row holds; NULL: none. */
static const update *latest_of(const plan *t, const cell *x, const group *g) {
    for (int32_t i = 0; i < g->n_updates; i++)
        if (x->value == weight(t, g->updates[i].digit, x->col)) return &g->updates[i];
    return NULL;
}

/* A worker's own updates of its clock lie over all others, as long as they have not been sent. */
static bool is_own_now(const cell *x, const update *u) {
    return u != NULL && u->worker == x->r->worker && u->clock == x->r->clock;
}

/* Checks that the row is one of its updates that may be there, and that none that must be there comes after it. */
static bool judge_latest(judgement *j, const cell *x, const group *g, const uint64_t *evidence, double last) {
    const plan   *t = &j->f.p->tables[x->r->table];
    const update *held = latest_of(t, x, g);
    const double  base = is_fresh(t, x->r) ? nothing(t) : initial(t, x->row, x->col);
    const double  turn = held == NULL ? 0 : turn_of(held);
    if (held == NULL && x->value != base)
        return wrong_cell(j, x, "it is none of what was pushed", "one of the updates");
    for (int32_t i = 0; i < g->n_updates; i++) {
        const update *u = &g->updates[i];
        const limits  l = promised(&j->f, x->r, u, evidence[u->digit]);
        if (u == held && l.most == 0) return wrong_update(j, x, u, 1, 0, l.why_most);
        if (is_own_now(x, held) && u->worker != x->r->worker) continue;
        if (l.least > 0 && turn_of(u) > turn) return wrong_update(j, x, u, 0, 1, l.why_least);
    }
    if (!x->r->function && !x->r->left && !is_own_now(x, held) && turn < last)
        return wrong_cell(j, x, "the worker had read a later push", "reads never go back to an older state");
    return true;
}

/* A worker's copy moves `workers` times as far by its own updates, and is mixed with others' copies. Under async
 * copies have weights, from 1/64 to `workers`, and an additive table's move as much farther as they weigh less. */
static bool judge_copy(judgement *j, const cell *x, const group *g) {
    const plan *t = &j->f.p->tables[x->r->table];
    double      least = 0, most = 0, value = t->ruled ? -x->value : x->value;
    for (int32_t i = 0; i < g->n_updates; i++) {
        const update *u = &g->updates[i];
        const record *made = &j->f.diaries[u->worker].calls[u->call];
        const double  w = weight(t, u->digit, x->col), workers = j->f.p->workers;
        const bool    own = u->worker == x->r->worker;
        if (own ? u->call < x->r->to : made->begun < x->r->ended) most += w * workers * (t->policy == ASYNC ? 128 : 1);
        if (own && !t->ruled && !x->r->view && u->clock == x->r->clock &&
            j->f.p->calls[u->worker][u->call].until < x->r->from)
            least += t->policy == ASYNC ? w : w * workers;
    }
    if (value >= least * (1 - 1e-5) - t->unit / 16 && value <= most * (1 + 1e-5) + t->unit / 16) return true;
    return wrong_cell(
        j, x, value < least ? "it misses the worker's own updates of this clock" : "it holds more than was added",
        "a copy holds own updates `workers` times, and shares of the others'");
}

/* Checks that the value lies between nothing and all that was added so far. */
static bool judge_lossy(judgement *j, const cell *x, const group *g) {
    const plan *t = &j->f.p->tables[x->r->table];
    double      most = 0;
    for (int32_t i = 0; i < g->n_updates; i++) {
        const update *u = &g->updates[i];
        if (j->f.diaries[u->worker].calls[u->call].begun < x->r->ended) most += weight(t, u->digit, x->col);
    }
    if (-x->value >= 0 && -x->value <= most) return true;
    return wrong_cell(j, x, "it is more than was added, or less than nothing",
                      "a race may lose a step, and does no more");
}

static bool judge_value(judgement *j, const cell *x, const group *g, int64_t row) {
    const plan  *t = &j->f.p->tables[x->r->table];
    const size_t at = (size_t)(row * t->cols + x->col) * DIGITS;
    int32_t      counts[DIGITS] = { 0 };
    j->reads++;
    if (t->combine == LATEST)
        return judge_latest(j, x, g, j->evidence[x->r->table] + at, j->last[x->r->table][row * t->cols + x->col]);
    if (t->combine != ADD_UP)
        return judge_extreme(j, x, g, j->evidence[x->r->table] + at, j->last[x->r->table][row * t->cols + x->col]);
    if (t->way == GOSSIP && (!x->r->last || (t->ruled && t->policy == ASYNC))) return judge_copy(j, x, g);
    if (may_lose_steps(t, g)) return judge_lossy(j, x, g);
    if (t->hammered && !x->r->last) return true;
    if (!take_apart(t, x->value, x->col, counts))
        return wrong_cell(j, x, "it is no sum of whole updates", "each update once");
    if (!judge_digits(j, x, g, counts, j->evidence[x->r->table] + at, j->seen[x->r->table] + at)) return false;
    return t->policy != VAP || x->r->left || judge_norm(j, x, g, counts);
}

/* --- one read ----------------------------------------------------------------------------------------------------- */

/* Calls `each` with every value that the call has read. */
typedef bool value_fn(judgement *j, const cell *x, const group *g, int64_t row);

static uint64_t row_at(const judgement *j, const act *c, const record *rec, const uint64_t *words, int64_t i) {
    if (c->kind == DUMP) return words[rec->at + (size_t)i];
    return c->kind == GET || c->kind == GET_BEGIN || c->kind == CALL ? j->f.p->keys[c->at + (size_t)i]
                                                                     : (uint64_t)(c->first + i);
}

static bool each_value(judgement *j, const reading *r, value_fn *each) {
    const act    *c = &j->f.p->calls[r->worker][r->from];
    const plan   *t = &j->f.p->tables[c->table];
    const diary  *d = &j->f.diaries[r->worker];
    const record *rec = &d->calls[r->from];
    size_t        at = rec->at + (c->kind == DUMP ? (size_t)rec->n : 0);
    for (int64_t i = 0; i < rec->n; i++)
        for (int32_t col = 0; col < t->cols; col++) {
            cell          x = { .r = r, .row = row_at(j, c, rec, d->words, i), .col = col };
            const int32_t in = group_of(t, x.row);
            memcpy(&x.value, &d->words[at++], sizeof x.value);
            if (c->kind == CALL && t->sparse && x.value == 0) x.value = nothing(t); /* no shard has this row */
            if (t->combine == ADD_UP && !is_fresh(t, r)) x.value -= initial(t, x.row, col);
            if (in < 0) return wrong_cell(j, &x, "there is no such row", "a dump has the rows that a table holds");
            if (!each(j, &x, &t->groups[in], t->sparse ? in : (int64_t)x.row)) return false;
        }
    return true;
}

/* Rows that a dump leaves out read as zeros; those that it has come once each, in order. */
static bool judge_dump(judgement *j, const reading *r, value_fn *each) {
    const plan     *t = &j->f.p->tables[r->table];
    const diary    *d = &j->f.diaries[r->worker];
    const record   *rec = &d->calls[r->from];
    const uint64_t *keys = d->words + rec->at;
    for (int64_t i = 1; i < rec->n; i++)
        if (keys[i] <= keys[i - 1]) {
            cell x = { .r = r, .row = keys[i] };
            return wrong_cell(j, &x, "it does not follow the key before it", "a dump's keys increase");
        }
    for (int32_t in = 0; in < t->n_groups; in++)
        for (int64_t i = 0; i < t->groups[in].rows; i++) {
            cell    x = { .r = r, .row = t->groups[in].first + (uint64_t)i };
            int64_t from = 0, to = rec->n;
            while (from < to) {
                const int64_t middle = (from + to) / 2;
                if (keys[middle] < x.row)
                    from = middle + 1;
                else
                    to = middle;
            }
            if (from < rec->n && keys[from] == x.row) continue;
            if (!t->sparse) return wrong_cell(j, &x, "it is left out", "a dump has every row");
            for (x.value = nothing(t); x.col < t->cols; x.col++)
                if (!each(j, &x, &t->groups[in], in)) return false;
        }
    return true;
}

static bool remember(judgement *j, const cell *x, const group *g, int64_t row) {
    const plan  *t = &j->f.p->tables[x->r->table];
    const size_t at = (size_t)(row * t->cols + x->col) * DIGITS;
    int32_t      counts[DIGITS];
    (void)g;
    if (t->combine == LATEST) {
        const update *held = latest_of(t, x, g);
        if (!x->r->function && held != NULL && !is_own_now(x, held))
            j->last[x->r->table][row * t->cols + x->col] = turn_of(held);
        return true;
    }
    if (t->combine != ADD_UP) {
        if (!x->r->function) j->last[x->r->table][row * t->cols + x->col] = x->value;
        return true;
    }
    if (t->way == GOSSIP || t->hammered || !take_apart(t, x->value, x->col, counts)) return true;
    if (x->r->function) return true; /* it sees what would be fetched; gets may be answered from older copies */
    if (t->policy == LOCAL_SGD && x->r->view)
        return true; /* the next clock goes on from the worker's copy, in its round */
    for (int32_t d = 0; d < t->digits; d++)
        if (counts[d] > 0) j->seen[x->r->table][at + (size_t)d] = 1;
    return true;
}

static bool note_evidence(judgement *j, const cell *x, const group *g, int64_t row) {
    const plan  *t = &j->f.p->tables[x->r->table];
    const size_t at = (size_t)(row * t->cols + x->col) * DIGITS;
    int32_t      counts[DIGITS];
    if (t->way == GOSSIP) mass_add(j->mass, x->r, x->row, x->col, x->value);
    if (t->way == GOSSIP || t->hammered) return true;
    if (t->combine == ADD_UP && !take_apart(t, x->value, x->col, counts)) return true;
    for (int32_t i = 0; i < g->n_updates; i++) {
        const update *u = &g->updates[i];
        uint64_t     *first = &j->evidence[x->r->table][at + (size_t)u->digit];
        const bool    here =
            t->combine == ADD_UP ? counts[u->digit] > 0 : x->value == weight(t, u->digit, x->col);
        if (u->worker != x->r->worker && here && (*first == 0 || *first > x->r->ended))
            *first = x->r->ended;
    }
    return true;
}

/* --- all reads ---------------------------------------------------------------------------------------------------- */

/* Where a worker's calls have brought it, as they go by. */
typedef struct reader {
    int32_t clock, barrier;
    bool    view, turnless[TABLES], left;
} reader;

static void step(reader *w, const program *p, const act *c) {
    if (c->kind == BARRIER || c->kind == ZERO) {
        w->barrier++;
        w->view = true;
        for (int32_t i = 0; i < p->n_tables; i++) w->turnless[i] = true;
    } else if (c->kind == CLOCK || c->kind == CLOCK_BEGIN) {
        w->clock++;
        w->view = false;
        memset(w->turnless, 0, sizeof w->turnless);
    } else if (is_inc(c->kind)) {
        w->turnless[c->table] = false;
    } else if (c->kind == LEAVE) {
        w->left = true;
    }
}

/* When was the owner asked for what a get of this clock brings? At the get, once a clock, or once in F clocks; 0: that
 * is not said. What one worker had read at the owner before that time, the get then holds. */
static uint64_t asked_after(const judgement *j, const plan *t, int32_t clock, uint64_t begun) {
    if (t->way != LOCAL && t->way != SERVERS) return 0;
    switch (t->policy) {
    case ASYNC:
    case VAP: return begun;
    case ASP:
    case DELAY: return j->clock_began[clock];
    case DOWNPOUR: return clock + 1 >= t->bound ? j->clock_began[clock + 1 - t->bound] : 0;
    default: return 0;
    }
}

static reading reading_of(const judgement *j, const reader *w, int32_t worker, int32_t from) {
    const program *p = j->f.p;
    const act     *c = &p->calls[worker][from];
    const record  *rec = &j->f.diaries[worker].calls[from];
    const plan    *t = &p->tables[c->table];
    reading        r = { .worker = worker,
                         .table = c->table,
                         .from = from,
                         .to = c->until,
                         .clock = w->clock,
                         .view = w->view,
                         .turnless = w->turnless[c->table],
                         .function = c->kind == CALL,
                         .left = w->left,
                         .last = w->barrier >= 0 && j->f.ended[w->barrier][worker] == p->clocks,
                         .barrier = w->barrier,
                         .begun = rec->begun,
                         .ended = rec->ended };
    if (w->left) r.last = w->barrier >= 0 && j->f.ended[w->barrier][worker == 0] == p->clocks;
    r.fetched = asked_after(j, t, w->clock, r.begun);
    return r;
}

/* Of the reader before. */
static void forget(judgement *j, int32_t table) {
    const plan  *t = &j->f.p->tables[table];
    const size_t n = (size_t)rows_of(t) * (size_t)t->cols;
    memset(j->seen[table], 0, n * DIGITS);
    for (size_t i = 0; i < n; i++) j->last[table][i] = nothing(t);
}

static bool judge_worker(judgement *j, int32_t worker, value_fn *each, bool remembers) {
    const program *p = j->f.p;
    reader         w = { .barrier = -1 };
    for (int32_t i = 0; i < p->n_tables; i++)
        forget(j, i);
    j->clock_began[0] = 0;
    for (int32_t i = 0; i < p->n_calls[worker]; i++) {
        const act *c = &p->calls[worker][i];
        const act *of = c->kind == WAIT ? &p->calls[worker][c->of] : c;
        step(&w, p, c);
        if (c->kind == ZERO) forget(j, c->table);
        if (of->kind == CLOCK || (c->kind == WAIT && of->kind == CLOCK_BEGIN))
            j->clock_began[w.clock] = j->f.diaries[worker].calls[i].begun;
        if (!is_read(of->kind)) continue;
        /* A call that was begun is judged by what was known then. What it has brought is known from its end on. */
        const reading r = reading_of(j, &w, worker, c->kind == WAIT ? c->of : i);
        if (of == c && of->kind == DUMP && !judge_dump(j, &r, each)) return false;
        if (of == c && !each_value(j, &r, each)) return false;
        if (remembers && of->until == i && !each_value(j, &r, remember)) return false;
    }
    return true;
}

static bool judge_all(judgement *j) {
    for (int32_t v = 0; v < j->f.p->workers; v++)
        if (!judge_worker(j, v, note_evidence, false)) return false;
    for (int32_t v = 0; v < j->f.p->workers; v++)
        if (!judge_worker(j, v, judge_value, true)) return false;
    return mass_judge(j->mass, j->why);
}

bool judge(const program *p, const diary *diaries, int64_t *reads_out, char why[WHY_BYTES]) {
    judgement j = { .why = why };
    why[0] = '\0';
    facts_find(&j.f, p, diaries);
    j.mass = mass_new(p);
    j.clock_began = calloc((size_t)p->clocks + 1, sizeof *j.clock_began);
    for (int32_t i = 0; i < p->n_tables; i++) {
        const size_t n = (size_t)rows_of(&p->tables[i]) * (size_t)p->tables[i].cols * DIGITS;
        j.evidence[i] = calloc(n, sizeof *j.evidence[i]);
        j.seen[i] = calloc(n, 1);
        j.last[i] = calloc(n, sizeof *j.last[i]);
        if (j.evidence[i] == NULL || j.seen[i] == NULL || j.last[i] == NULL) abort();
    }
    const bool kept = judge_all(&j);
    *reads_out += j.reads;
    for (int32_t i = 0; i < p->n_tables; i++) {
        free(j.evidence[i]);
        free(j.seen[i]);
        free(j.last[i]);
    }
    mass_free(j.mass);
    free(j.clock_began);
    return kept;
}
