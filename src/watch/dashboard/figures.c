/* Everything for Prometheus. A metric of which nothing is known yet has no sample, and is left out. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "watch/dashboard/dashboard.h"
#include "watch/prometheus.h"

static void add_run(const pli_dash *d, pli_text *text) {
    const char *key;
    json_t     *value;
    bool        first = true;
    if (d->run == NULL) return;
    pli_prom_head(text, "plait_run_info", "gauge", "What is trained, and how.");
    pli_text_add(text, "plait_run_info{");
    json_object_foreach(d->run, key, value) {
        if (!json_is_string(value)) continue;
        if (!first) pli_text_add(text, ",");
        pli_prom_label(text, key, json_string_value(value));
        first = false;
    }
    pli_text_add(text, "} 1\n");
}

static const pli_dash_point *newest(const pli_dash *d) {
    const pli_dash_curve *c = d->clocks.last.clock >= d->epochs.last.clock ? &d->clocks : &d->epochs;
    return &c->last;
}

static void add_known(pli_text *text, const char *name, const char *help, double value) {
    if (!isnan(value)) pli_prom_one(text, name, "gauge", help, value);
}

static void add_progress(const pli_dash *d, pli_text *text) {
    const pli_dash_point *p = newest(d);
    if (!d->has_progress) return;
    add_known(text, "plait_epoch", "Epoch under way, from 1.", (double)p->epoch);
    add_known(text, "plait_clock", "Clocks done.", (double)p->clock);
    add_known(text, "plait_clock_age_seconds", "Time since a clock ended.", pli_dash_clock_age(d));
    add_known(text, "plait_loss", "Loss of the rows that the leading rank saw lately.", p->loss);
    add_known(text, "plait_rows_per_second", "Rows that all workers compute in a second.", p->rows_per_second);
    add_known(text, "plait_learning_rate", "Step size after the schedule.", d->learning_rate);
    add_known(text, "plait_training_seconds", "Time since training began.", d->seconds);
    if (d->epochs.n == 0) return;
    p = &d->epochs.last;
    add_known(text, "plait_epochs_done", "Complete epochs.", (double)p->epoch);
    add_known(text, "plait_epoch_loss", "Loss of the rows of the last complete epoch, as they were seen.", p->loss);
    add_known(text, "plait_validation_loss", "Validation loss at the end of the last complete epoch.",
              p->validation_loss);
}

static void add_events(const pli_dash *d, pli_text *text) {
    pli_prom_one(text, "plait_joins_total", "counter", "Ranks that have joined.", (double)d->joins);
    pli_prom_one(text, "plait_deaths_total", "counter", "Ranks that have died.", (double)d->deaths);
    pli_prom_one(text, "plait_restarts_total", "counter", "Times that plait launch has restarted the job.",
                 (double)d->restarts);
    pli_prom_one(text, "plait_checkpoints_total", "counter", "Checkpoints that are complete.", (double)d->checkpoints);
    if (d->checkpoint_clock < 0) return;
    pli_prom_one(text, "plait_checkpoint_clock", "gauge", "Clock of the newest checkpoint.",
                 (double)d->checkpoint_clock);
    pli_prom_one(text, "plait_checkpoint_bytes", "gauge", "Size of the newest checkpoint.",
                 (double)d->checkpoint_bytes);
}

/* One sample for each rank that has the figure. */
typedef double rank_figure(const pli_dash_rank *rank);
static double compute_of(const pli_dash_rank *r) { return r->compute; }
static double wait_of(const pli_dash_rank *r) { return r->wait; }
static double network_of(const pli_dash_rank *r) { return r->network; }
static double clock_of(const pli_dash_rank *r) { return r->clock < 0 ? (double)NAN : (double)r->clock; }
static double behind_of(const pli_dash_rank *r) { return r->behind < 0 ? (double)NAN : (double)r->behind; }

static void add_for_ranks(const pli_dash *d, pli_text *text, const char *name, const char *type, const char *help,
                          rank_figure *figure) {
    pli_dash_rank rank;
    bool          headed = false;
    for (int32_t r = 0; r < pli_dash_ranks(d); r++) {
        if (!pli_dash_rank_of(d, r, &rank) || !rank.heard || isnan(figure(&rank))) continue;
        if (!headed) pli_prom_head(text, name, type, help);
        headed = true;
        pli_text_add(text, "%s{rank=\"%" PRId32 "\"} ", name, r);
        pli_prom_value(text, figure(&rank));
    }
}

static void add_up(const pli_dash *d, pli_text *text) {
    if (d->members > 0)
        pli_prom_head(text, "plait_rank_up", "gauge", "1: the rank takes part; 0: it is dead, or done.");
    for (int32_t r = 0; r < d->members; r++) {
        if (!d->member[r].known) continue;
        pli_text_add(text, "plait_rank_up{rank=\"%" PRId32 "\",", r);
        pli_prom_label(text, "host", d->member[r].host);
        pli_text_add(text, ",");
        pli_prom_label(text, "role", d->member[r].role);
        pli_text_add(text, "} %d\n", d->member[r].up);
    }
}

static void add_sent(const pli_dash *d, pli_text *text) {
    pli_dash_rank rank;
    bool          headed = false;
    for (int32_t r = 0; r < pli_dash_ranks(d); r++) {
        const char *kind;
        json_t     *bytes;
        if (!pli_dash_rank_of(d, r, &rank)) continue;
        json_object_foreach((json_t *)(uintptr_t)rank.sent, kind, bytes) {
            if (!headed)
                pli_prom_head(text, "plait_rank_sent_bytes_total", "counter", "Bytes sent to other ranks, by kind.");
            headed = true;
            pli_text_add(text, "plait_rank_sent_bytes_total{rank=\"%" PRId32 "\",", r);
            pli_prom_label(text, "kind", kind);
            pli_text_add(text, "} ");
            pli_prom_value(text, json_number_value(bytes));
        }
    }
}

static void add_waits(const pli_dash *d, pli_text *text) {
    pli_dash_rank rank;
    bool          headed = false;
    for (int32_t r = 0; r < pli_dash_ranks(d); r++) {
        if (!pli_dash_rank_of(d, r, &rank) || isnan(rank.waited)) continue;
        if (!headed)
            pli_prom_head(text, "plait_rank_waiting_seconds", "gauge",
                          "How long the rank's present wait has lasted; for_rank: the rank that holds it up.");
        headed = true;
        pli_text_add(text, "plait_rank_waiting_seconds{rank=\"%" PRId32 "\"", r);
        if (rank.peer >= 0) pli_text_add(text, ",for_rank=\"%" PRId32 "\"", rank.peer);
        pli_text_add(text, "} ");
        pli_prom_value(text, rank.waited);
    }
}

void pli_dash_figures(pli_dash *d, pli_text *text) {
    pthread_mutex_lock(&d->mutex);
    add_run(d, text);
    add_progress(d, text);
    add_events(d, text);
    add_up(d, text);
    add_for_ranks(d, text, "plait_rank_compute_seconds_total", "counter", "Time of the rank's own work.", compute_of);
    add_for_ranks(d, text, "plait_rank_wait_seconds_total", "counter", "Time in which the rank waited for others.",
                  wait_of);
    add_for_ranks(d, text, "plait_rank_network_seconds_total", "counter",
                  "Time in which messages were made, on their way or taken in; none where ranks are processes, whose "
                  "waits have it.", network_of);
    add_for_ranks(d, text, "plait_rank_clock", "gauge", "The clock in which the worker is.", clock_of);
    add_for_ranks(d, text, "plait_rank_behind_clocks", "gauge", "Clocks by which the fastest worker is ahead of it.",
                  behind_of);
    add_known(text, "plait_staleness_clocks", "Clocks by which the fastest worker is ahead of the slowest.",
              pli_dash_spread(d) < 0 ? (double)NAN : (double)pli_dash_spread(d));
    add_sent(d, text);
    add_waits(d, text);
    pthread_mutex_unlock(&d->mutex);
}
