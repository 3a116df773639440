/* play.c - plays a program by Plait's public API, each worker writing its diary. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "oracle.h"

enum { SECONDS = 1000000000 };

/* Memory that is lent to calls that have been begun. */
typedef struct loan {
    plait_request *request;
    void          *values; /* a get's values, written down at its end; an inc's deltas */
} loan;

typedef struct player {
    const program *p;
    diary         *d;
    plait_job     *job;
    plait_table   *tables[TABLES];
    loan           loans[CALLS];
    int32_t        me;
} player;

typedef struct stage {
    const program *p;
    diary         *diaries;
} stage;

/* One clock for all ranks of a host, processes as well. */
static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECONDS + (uint64_t)t.tv_nsec;
}

static uint64_t *words(diary *d, size_t n) {
    if (d->n_words + n > d->room) {
        d->room = d->room * 2 + n + 512;
        d->words = realloc(d->words, d->room * sizeof *d->words);
        if (d->words == NULL) abort();
    }
    d->n_words += n;
    return d->words + d->n_words - n;
}

/* --- updates ------------------------------------------------------------------------------------------------------ */

static void store(const plan *t, void *values, size_t at, double value) {
    if (t->whole)
        ((int64_t *)values)[at] = (int64_t)value;
    else if (t->wide)
        ((double *)values)[at] = value;
    else
        ((float *)values)[at] = (float)value;
}

static int64_t times_in(const program *p, const act *c, int64_t i) {
    int64_t n = 0;
    for (int64_t j = 0; j < c->n; j++) n += p->keys[c->at + (size_t)j] == p->keys[c->at + (size_t)i];
    return n;
}

static void *deltas(const player *y, const act *c, int32_t number) {
    const plan *t = &y->p->tables[c->table];
    const bool  range = c->kind == ADD || c->kind == ADD_BEGIN;
    void       *values = calloc((size_t)c->n * (size_t)t->cols + 1, sizeof(double));
    if (values == NULL) abort();
    for (int64_t i = 0; i < c->n; i++) {
        const int32_t in = range ? group_of(t, (uint64_t)(c->first + i)) : y->p->in[c->at + (size_t)i];
        const update *u = update_of(&t->groups[in], y->me, number);
        const double  parts =
            t->combine != ADD_UP ? 1 : (double)c->times * (range ? 1 : (double)times_in(y->p, c, i));
        for (int32_t j = 0; j < t->cols; j++)
            store(t, values, (size_t)(i * t->cols + j), weight(t, u->digit, j) / parts);
    }
    return values;
}

static plait_status inc(player *y, const act *c, const void *values, plait_request **request) {
    plait_table    *t = y->tables[c->table];
    const uint64_t *keys = c->n > 0 ? y->p->keys + c->at : NULL;
    switch (c->kind) {
    case INC: return plait_table_inc(t, c->n, keys, values, c->examples);
    case INC_BEGIN: return plait_table_inc_begin(t, c->n, keys, values, c->examples, request);
    case ADD: return plait_table_inc_range(t, c->first, c->n, values, c->examples);
    default: return plait_table_inc_range_begin(t, c->first, c->n, values, c->examples, request);
    }
}

static plait_status play_inc(player *y, const act *c, int32_t number) {
    loan        *l = &y->loans[number];
    plait_status status = PLAIT_OK;
    l->values = deltas(y, c, number);
    for (int32_t i = 0; i < c->times && status >= 0; i++) {
        status = inc(y, c, l->values, &l->request);
        if (i + 1 < c->times && l->request != NULL && status >= 0) status = plait_request_wait(&l->request);
    }
    if (c->kind == INC || c->kind == ADD || status < 0) {
        free(l->values);
        l->values = NULL;
    }
    return status;
}

/* --- reads -------------------------------------------------------------------------------------------------------- */

static void write_values(player *y, const plan *t, record *r, const void *values, int64_t n) {
    const size_t total = (size_t)n * (size_t)t->cols;
    uint64_t    *to = words(y->d, total);
    r->n = n;
    r->at = (size_t)(to - y->d->words);
    for (size_t i = 0; i < total; i++) {
        const double value = value_at(type_of(t), values, i);
        memcpy(&to[i], &value, sizeof value);
    }
}

static plait_status play_dump(player *y, const act *c, record *r) {
    const plan  *t = &y->p->tables[c->table];
    uint64_t    *keys = NULL;
    void        *values = NULL;
    int64_t      n = 0;
    plait_status status = plait_table_dump(y->tables[c->table], &n, &keys, &values);
    if (status < 0) return status;
    if (n > 0) memcpy(words(y->d, (size_t)n), keys, (size_t)n * sizeof *keys);
    write_values(y, t, r, values, n);
    r->at -= (size_t)n;
    plait_comm_free(keys);
    plait_comm_free(values);
    return PLAIT_OK;
}

static plait_status play_function(player *y, const act *c, record *r) {
    const plan    *t = &y->p->tables[c->table];
    const uint64_t none = 0, *keys = c->n > 0 ? y->p->keys + c->at : &none;
    const size_t   n = (size_t)c->n * (size_t)t->cols;
    r->n = c->n;
    r->at = y->d->n_words;
    if (t->sparse || c->n == 0 || c->n % 2 == 0)
        return plait_table_call(&y->tables[c->table], 1, own_function.name, keys, (size_t)c->n * sizeof *keys,
                                words(y->d, n), n * sizeof(double));
    uint64_t least = keys[0], most = keys[0]; /* the range has no more rows than it needs */
    for (int64_t i = 1; i < c->n; i++) {
        least = keys[i] < least ? keys[i] : least;
        most = keys[i] > most ? keys[i] : most;
    }
    return plait_table_call_range(&y->tables[c->table], 1, (int64_t)least, (int64_t)(most - least) + 1,
                                  own_function.name, keys, (size_t)c->n * sizeof *keys, words(y->d, n),
                                  n * sizeof(double));
}

/* Checks that behind a flush an inc is refused, and that nothing else changes. */
static plait_status play_refused(player *y, const act *c) {
    const uint64_t key = y->p->tables[c->table].groups[0].first;
    const double   ones[COLS] = { 1, 1, 1 };
    return plait_table_inc(y->tables[c->table], 1, &key, ones, 1) == PLAIT_EINVAL ? PLAIT_OK : PLAIT_EDIVERGED;
}

static plait_status play_read(player *y, const act *c, record *r) {
    const void  *values = NULL;
    plait_status status = plait_table_read(y->tables[c->table], c->first, c->n, &values);
    if (status >= 0) write_values(y, &y->p->tables[c->table], r, values, c->n);
    return status;
}

static plait_status play_get(player *y, const act *c, record *r, int32_t number) {
    const plan     *t = &y->p->tables[c->table];
    plait_table    *table = y->tables[c->table];
    loan           *l = &y->loans[number];
    const uint64_t *keys = c->n > 0 ? y->p->keys + c->at : NULL;
    plait_status    status;
    l->values = malloc((size_t)c->n * (size_t)t->cols * sizeof(double) + 1);
    if (l->values == NULL) abort();
    memset(l->values, 0x5a, (size_t)c->n * (size_t)t->cols * sizeof(double) + 1);
    switch (c->kind) {
    case GET: status = plait_table_get(table, c->n, keys, l->values); break;
    case RANGE: status = plait_table_get_range(table, c->first, c->n, l->values); break;
    case GET_BEGIN: return plait_table_get_begin(table, c->n, keys, l->values, &l->request);
    default: return plait_table_get_range_begin(table, c->first, c->n, l->values, &l->request);
    }
    if (status >= 0) write_values(y, t, r, l->values, c->n);
    free(l->values);
    l->values = NULL;
    return status;
}

static plait_status play_wait(player *y, const act *c) {
    const act   *of = &y->p->calls[y->me][c->of];
    loan        *l = &y->loans[c->of];
    record      *r = &y->d->calls[c->of];
    plait_status status = plait_request_wait(&l->request);
    r->ended = now();
    if (status >= 0 && is_read(of->kind)) write_values(y, &y->p->tables[of->table], r, l->values, of->n);
    free(l->values);
    l->values = NULL;
    return status;
}

/* --- a worker ----------------------------------------------------------------------------------------------------- */

static void pause_for(const player *y, int64_t us) {
    struct timespec t = { .tv_nsec = (long)us * 1000 };
    if (y->p->over != OVER_SIM) nanosleep(&t, NULL); /* others run meanwhile; simulated ranks have jitter */
}

static plait_status play_call(player *y, const act *c, int32_t number) {
    record *r = &y->d->calls[number];
    switch (c->kind) {
    case GET:
    case GET_BEGIN:
    case RANGE:
    case RANGE_BEGIN: return play_get(y, c, r, number);
    case READ: return play_read(y, c, r);
    case DUMP: return play_dump(y, c, r);
    case CALL: return play_function(y, c, r);
    case REFUSED: return play_refused(y, c);
    case INC:
    case INC_BEGIN:
    case ADD:
    case ADD_BEGIN: return play_inc(y, c, number);
    case FLUSH: return plait_table_flush(y->tables[c->table]);
    case WAIT: return play_wait(y, c);
    case CLOCK: return plait_job_clock(y->job);
    case CLOCK_BEGIN: return plait_job_clock_begin(y->job, &y->loans[number].request);
    case BARRIER: return plait_job_barrier(y->job);
    case LEAVE: return plait_job_leave(y->job);
    case PAUSE: pause_for(y, c->examples); return PLAIT_OK;
    case ZERO: return plait_table_zero(y->tables[c->table]);
    }
    return PLAIT_OK;
}

static void *initial_values(const plan *t) {
    void *values = malloc((size_t)(t->rows * t->cols) * sizeof(double));
    if (values == NULL) abort();
    for (int64_t i = 0; i < t->rows * t->cols; i++)
        store(t, values, (size_t)i, initial(t, (uint64_t)(i / t->cols), (int32_t)(i % t->cols)));
    return values;
}

static plait_status make_table(player *y, int32_t i) {
    const plan      *t = &y->p->tables[i];
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = t->name;
    o.type = type_of(t);
    o.combine = t->combine == LEAST ? "min" : t->combine == GREATEST ? "max" : t->combine == LATEST ? "last" : NULL;
    o.rows = t->sparse ? 0 : t->rows;
    o.cols = t->cols;
    o.keyed = t->keyed;
    o.topology = t->topology;
    o.consistency = t->consistency;
    o.filter = t->filter;
    o.exact = t->exact;
    o.sharded = t->sharded;
    if (t->ruled) {
        o.rule.name = t->own_rule ? "take" : "sgd";
        o.rule.learning_rate = 1;
    }
    void *values = t->initial ? initial_values(t) : NULL;
    o.initial = values;
    plait_status status = plait_table_create(y->job, &o, &y->tables[i]);
    free(values);
    return status;
}

static plait_status failed(player *y, int32_t at, plait_status status) {
    const plait_error *e = plait_comm_error(plait_job_comm(y->job));
    y->d->failed = at;
    snprintf(y->d->text, sizeof y->d->text, "%s: %s", plait_status_text(status), e == NULL ? "" : e->text);
    return status;
}

static plait_status work(plait_job *job, void *user) {
    const stage *g = user;
    player      *y = calloc(1, sizeof *y);
    plait_status status = PLAIT_OK;
    if (y == NULL) return PLAIT_ENOMEM;
    y->p = g->p;
    y->job = job;
    y->me = plait_comm_rank(plait_job_comm(job));
    y->d = &g->diaries[y->me];
    y->d->failed = -1;
    for (int32_t i = 0; i < y->p->n_tables && status >= 0; i++)
        if ((status = make_table(y, i)) < 0) failed(y, -2, status);
    for (int32_t i = 0; i < y->p->n_calls[y->me] && status >= 0; i++) {
        y->d->calls[i].begun = now();
        status = play_call(y, &y->p->calls[y->me][i], i);
        if (y->p->calls[y->me][i].until == i) y->d->calls[i].ended = now();
        if (status < 0) failed(y, i, status);
    }
    free(y);
    return status;
}

/* --- the job ------------------------------------------------------------------------------------------------------ */

plait_status play(const program *p, diary *diaries, const char *cluster, plait_error *error_out) {
    static const char *const transports[] = { "threads", "sim", "mpi" };
    plait_comm_opts          comm;
    plait_job_opts           job;
    stage                    g = { p, diaries };
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.transport = transports[p->over];
    comm.workers = p->workers;
    comm.servers = p->servers;
    comm.threads = 1;
    comm.timeout_ns = UINT64_C(60) * SECONDS * (p->over == OVER_SIM ? 100 : 1);
    comm.seed = p->seed;
    comm.cluster = cluster;
    comm.collective = p->collective;
    job.rules = &own_rule;
    job.n_rules = 1;
    job.functions = &own_function;
    job.n_functions = 1;
    job.replicas = p->replicas;
    job.aggregate = p->aggregate ? "host" : NULL;
    job.topology = p->tables[0].topology;
    job.consistency = p->tables[0].consistency;
    return plait_run(&comm, &job, work, &g, error_out);
}
