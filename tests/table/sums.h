/* Schedules of replicas under allreduce: bare replicas and collective machines over the direct driver; included by
 * schedules_test.c, whose oracle, witness and judge they share. Each worker goes through its clocks at a pace of its
 * own: reads, adds, ends a clock (each table's sum is begun, in order of tables) and stays there until the policies let
 * the next start. Of the others a read holds exactly the clocks below the reader's, less the delay: sums land at fixed
 * clocks. */
enum { UNDER_WAY = 8 };

typedef struct sums_call { /* one sum, with the collective that moves it */
    pli_sum     *sum;
    pli_coll_run run;
    pli_msg     *piece[WORKERS_MAX];
} sums_call;

typedef struct sums_worker {
    pli_collective collective;
    pli_mirror   *mirror[TABLES_MAX];
    sums_call      call[TABLES_MAX][UNDER_WAY]; /* by clock, modulo */
    int64_t        clock;
    int            ending; /* the table whose sum of the clock before is next; TABLES_MAX: works */
    bool           done;
} sums_worker;

static struct { sums_worker worker[WORKERS_MAX]; } all_sums;

static void open_sums(world *w, uint64_t seed) {
    static const promise of_sums[] = { { "bsp", .exact = true },
                                        { "bounded-delay:0", .exact = true },
                                        { "bounded-delay:1", .bound = 1 },
                                        { "bounded-delay:2", .bound = 2 },
                                        { "bounded-delay:5", .bound = 5 } };
    memset(w, 0, sizeof *w);
    memset(&all_sums, 0, sizeof all_sums);
    w->seed = seed;
    pli_random  random = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 2, 0);
    direct_opts net = { 0 };
    if (pli_random_below(&random, 3) > 0)
        net = (direct_opts){ .reorder = pli_random_f64(&random) * 0.5, .twice = pli_random_f64(&random) * 0.3,
                             .delay = pli_random_f64(&random) * 0.3, .drop = pli_random_f64(&random) * 0.2 };
    w->lossy = net.drop > 0;
    w->workers = 1 + (int32_t)pli_random_below(&random, WORKERS_MAX);
    w->layout = (pli_layout){ .workers = w->workers, .servers = w->workers, .job_hash = 5 };
    w->tables = 1 + (int32_t)pli_random_below(&random, TABLES_MAX);
    w->d = direct_new(seed, w->workers, &net);
    SURE(w, witness_open(&w->witness, w->workers, time_in, w));
    choose_hot(w);
    for (int32_t t = 0; t < w->tables; t++) {
        plait_table_opts opts;
        char             name[16];
        const promise   *p = &of_sums[pick(w, sizeof of_sums / sizeof *of_sums)];
        uint64_t         shape = pick(w, 3);
        plait_table_opts_init(&opts);
        snprintf(name, sizeof name, "t%d", t);
        opts.name = name;
        opts.type = PLAIT_F64;
        opts.rows = shape == 2 ? 0 : shape == 1 && pick(w, 2) == 0 ? 2 * HOT : ROWS; /* few: they turn dense */
        opts.keyed = shape == 1;
        opts.cols = w->workers;
        if (pick(w, 3) == 0) opts.rule.name = "sgd", opts.rule.learning_rate = 1;
        draw_marks(pli_random_at(w->seed, PLI_RANDOM_SCHEDULE, 3, (uint64_t)t), false, true, &opts);
        marks_force(forced, &opts);
        w->promise[t] = *p;
        SURE(w, pli_spec_make(t, &opts, "allreduce", p->spec, 1, NULL, &w->spec[t], NULL) == PLAIT_OK);
        w->spec[t].placement = pli_placement_make(w->spec[t].rows, pli_row_bytes(&w->spec[t]), 0, 1, 0);
    }
    for (int32_t k = 0; k < w->workers; k++) {
        sums_worker    *me = &all_sums.worker[k];
        const pli_scope scope = pli_layout_scope(&w->layout);
        w->worker[k].leaves_at = -1;
        w->worker[k].values = calloc((size_t)ROWS * (size_t)w->workers, sizeof(double));
        SURE(w, pli_collective_init(&me->collective, k, w->workers, w->lossy ? 2000000 : 0));
        direct_add(w->d, k, PLI_PORT_COLLECTIVE, &pli_collective_ops, &me->collective);
        pli_raise_server_job(&(pli_server){ .sink = sink_of(w), .layout = w->layout, .rank = k, .home = k });
        pli_raise_job(sink_of(w), k, 1, &w->layout);
        for (int t = 0; t < w->tables; t++) {
            SURE(w,
                 pli_mirror_open(&w->spec[t], &scope, k, sink_of(w), NULL, NULL, &me->mirror[t], NULL) == PLAIT_OK);
            pli_raise_table(sink_of(w), k, &w->spec[t], PLI_WAY_SUMMED);
        }
        me->ending = TABLES_MAX;
    }
}

static void close_sums(world *w) {
    for (int32_t k = 0; k < w->workers; k++) {
        sums_worker *me = &all_sums.worker[k];
        for (int t = 0; t < w->tables; t++) pli_mirror_close(&me->mirror[t]);
        for (int t = 0; t < w->tables; t++) /* of those that hang */
            for (int i = 0; i < UNDER_WAY; i++)
                for (int32_t r = 0; r < w->workers; r++) pli_msg_free(&me->call[t][i].piece[r]);
        pli_collective_destroy(&me->collective);
        free(w->worker[k].values);
    }
    direct_free(&w->d);
}

static bool is_hot(const world *w, int t, int h) {
    return w->spec[t].rows == 0 || w->hot[h] < (uint64_t)w->spec[t].rows;
}

/* Others' pushes of whole clocks, all of the own. */
static void check_last_of_sums(world *w, int32_t k, int t, int h, const void *row, bool last) {
    const int64_t clock = all_sums.worker[k].clock, whole = last ? clock : clock - w->promise[t].bound;
    mark_reader   r = { .worker = k, .clock = clock };
    for (int32_t from = 0; from < w->workers; from++) {
        const uint64_t issued = w->worker[from].issued[t][h];
        r.must[from] = r.may[from] = from == k ? issued : issued & below(whole);
    }
    SURE(w, mark_last(&w->spec[t], row, &r, &w->worker[k].last[t][h]));
}

static void read_sums(world *w, int32_t k, int t, bool last) {
    sums_worker   *me = &all_sums.worker[k];
    const promise *p = &w->promise[t];
    double        *values = w->worker[k].values;
    uint64_t       keys[HOT];
    int64_t        n = 0, first = -1;
    for (int h = 0; h < HOT; h++)
        if (is_hot(w, t, h)) keys[n++] = w->hot[h];
    if (n == 0) return;
    if (w->spec[t].rows > 0 && pick(w, 2) == 0) {
        const void *lies;
        first = 0;
        lies = pli_mirror_read(me->mirror[t], me->clock, 0, w->spec[t].rows);
        if (lies != NULL) memcpy(values, lies, (size_t)(w->spec[t].rows * w->workers) * sizeof *values);
        else pli_mirror_get(me->mirror[t], me->clock, w->spec[t].rows, NULL, 0, values);
    } else {
        pli_mirror_get(me->mirror[t], me->clock, n, keys, 0, values);
    }
    w->gets++;
    for (int h = 0, i = 0; h < HOT && !audit_judges; h++) {
        if (!is_hot(w, t, h)) continue;
        if (w->spec[t].combine->replaces) {
            check_last_of_sums(w, k, t, h, values + (first < 0 ? i : (int64_t)w->hot[h]) * w->workers, last);
            i++;
            continue;
        }
        for (int32_t from = 0; from < w->workers; from++) {
            int64_t  at = (first < 0 ? i : (int64_t)w->hot[h]) * w->workers + from;
            uint64_t issued = w->worker[from].issued[t][h], seen;
            int64_t  whole = last ? me->clock : me->clock - p->bound;
            SURE(w, mark_read(&w->spec[t], mark_at(w->spec[t].type, values, at), issued, &seen));
            if (from != k) SURE(w, seen == (issued & below(whole)));
            else SURE(w, seen == (w->spec[t].ruled ? issued & below(me->clock) : issued));
        }
        i++;
    }
}

static void add_sums(world *w, int32_t k, int t) {
    worker  *me = &w->worker[k];
    int64_t  clock = all_sums.worker[k].clock;
    me->n = 0;
    marks_clear(&w->spec[t], HOT * w->workers, me->delta);
    for (int h = 0; h < HOT; h++) {
        if ((me->issued[t][h] >> clock & 1) || !is_hot(w, t, h) || pick(w, 2) == 0) continue;
        mark_put(&w->spec[t], me->delta, me->n, k, clock);
        me->keys[me->n++] = w->hot[h];
        me->issued[t][h] |= UINT64_C(1) << clock;
    }
    SURE(w, pli_mirror_inc(all_sums.worker[k].mirror[t], me->n, me->keys, 0, me->delta, 0, NULL) == PLAIT_OK);
}

static void begin_sums(world *w, int32_t k) {
    sums_worker *me = &all_sums.worker[k];
    uint64_t     now;
    pli_raise_clock(sink_of(w), k, me->clock);
    for (int t = 0; t < w->tables; t++) {
        pli_mirror *mirror = me->mirror[t];
        bool         flies = pli_mirror_may_start(mirror, me->clock + 1, me->clock);
        sums_call   *call = &me->call[t][me->clock % UNDER_WAY];
        SURE(w, pli_mirror_take(mirror, me->clock, pli_mirror_form(mirror, flies), flies, &call->sum, NULL) ==
                    PLAIT_OK);
        pli_coll coll = { .kind = PLI_ALLREDUCE, .type = w->spec[t].type, .op = w->spec[t].combine->reduce,
                          .begun = true, .n = call->sum->n, .buf = call->sum->values };
        if (call->sum->form == PLI_SUM_LISTS) {
            coll = (pli_coll){ .kind = PLI_PIECES, .type = PLAIT_U8, .begun = true, .piece = call->piece };
            call->piece[k] = call->sum->list;
            call->sum->list = NULL;
        }
        pli_coll_choose(&coll, NULL, w->workers, NULL);
        pli_out *out = direct_enter(w->d, k, PLI_PORT_COLLECTIVE, &now);
        pli_collective_begin(&me->collective, now, &coll, &call->run, out);
        direct_leave(w->d, k, PLI_PORT_COLLECTIVE);
    }
    me->clock++;
    me->ending = 0;
}

/* The first sum of the table, if it is complete. */
static bool land(world *w, int32_t k, int t) {
    sums_worker *me = &all_sums.worker[k];
    pli_sum     *sum = me->mirror[t]->first;
    sums_call   *call = &me->call[t][sum->clock % UNDER_WAY];
    if (!pli_coll_is_done(&call->run)) return false;
    SURE(w, call->run.error.code == 0 && call->sum == sum);
    if (sum->form == PLI_SUM_LISTS) {
        memcpy(sum->piece, call->piece, (size_t)w->workers * sizeof *sum->piece);
        memset(call->piece, 0, sizeof call->piece);
    }
    SURE(w, pli_mirror_apply(me->mirror[t], NULL) == PLAIT_OK);
    return true;
}

/* false: nothing to do until something comes. */
static bool act_sums(world *w, int32_t k) {
    sums_worker *me = &all_sums.worker[k];
    int          t = (int)pick(w, (uint64_t)w->tables);
    bool         last = me->clock == CLOCKS;
    if (me->done) return false;
    if (me->ending < w->tables) {
        const pli_mirror *mirror = me->mirror[me->ending];
        if (mirror->first == NULL || (!last && pli_mirror_may_start(mirror, me->clock, mirror->first->clock))) {
            me->ending++;
            return true;
        }
        return land(w, k, me->ending);
    }
    if (last) { /* what a barrier would do has been done */
        for (t = 0; t < w->tables; t++) read_sums(w, k, t, true);
        pli_raise(sink_of(w), k, false, PLI_EVENT_DONE);
        return me->done = true;
    }
    switch (pick(w, 4)) {
    case 0: read_sums(w, k, t, false); break;
    case 1: case 2: add_sums(w, k, t); break;
    default: begin_sums(w, k);
    }
    return true;
}

static bool run_all_sums(world *w) {
    for (int64_t step = 0;; step++) {
        int32_t done = 0, first = (int32_t)pick(w, (uint64_t)w->workers);
        bool    happened = pick(w, 2) == 0 && direct_step(w->d);
        for (int32_t k = 0; k < w->workers; k++) done += all_sums.worker[k].done;
        if (done == w->workers) return direct_run(w->d, 1000000);
        for (int32_t i = 0; !happened && i < w->workers; i++) happened = act_sums(w, (first + i) % w->workers);
        if (!happened) happened = direct_step(w->d);
        if (!happened || step == 2000000) return false;
    }
}

static void run_sums(uint64_t seed) {
    static world w;
    open_sums(&w, seed);
    bool ended = run_all_sums(&w);
    if (!audit_judges) SURE(&w, ended); /* else: a hang */
    close_log(&w, ended);
    gets += w.gets;
    close_sums(&w);
}
