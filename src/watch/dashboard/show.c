/* Everything as JSON, for the page. Lists of points are lists of numbers, since they are long. */
#include <math.h>

#include "watch/dashboard/dashboard.h"

static void add_point(const pli_dash_point *p, pli_text *text) {
    pli_json_list(text, NULL);
    pli_json_i64(text, NULL, p->epoch);
    pli_json_i64(text, NULL, p->clock);
    pli_json_short(text, NULL, p->loss);
    pli_json_short(text, NULL, p->validation_loss);
    pli_json_short(text, NULL, p->rows_per_second);
    pli_json_list_end(text);
}

static void add_curve(const char *key, const pli_dash_curve *c, pli_text *text) {
    pli_json_list(text, key);
    for (int32_t i = 0; i < c->n; i++) add_point(&c->at[i], text);
    if (c->n > 0 && c->last.clock != c->at[c->n - 1].clock) add_point(&c->last, text);
    pli_json_list_end(text);
}

static void add_sampled(const pli_dash_rank *r, pli_text *text) {
    pli_json_bool(text, "heard", r->heard);
    pli_json_f64(text, "compute", r->compute);
    pli_json_f64(text, "wait", r->wait);
    pli_json_f64(text, "network", r->network);
    pli_json_i64(text, "clock", r->clock);
    pli_json_i64(text, "behind", r->behind);
    pli_json_i64(text, "peer", r->peer);
    pli_json_f64(text, "waited", r->waited);
    pli_json_text(text, "does", r->does);
    if (r->sent != NULL) pli_json_value(text, "sent", r->sent);
}

static void add_rank(const pli_dash *d, int32_t rank, pli_text *text) {
    pli_dash_rank          sampled;
    const pli_dash_member *m = rank < d->members && d->member[rank].known ? &d->member[rank] : NULL;
    pli_json_object(text, NULL);
    pli_json_i64(text, "rank", rank);
    pli_json_text(text, "host", m != NULL ? m->host : NULL);
    pli_json_text(text, "role", m != NULL ? m->role : NULL);
    pli_json_i64(text, "pid", m != NULL ? m->pid : 0);
    pli_json_bool(text, "up", m == NULL || m->up);
    if (pli_dash_rank_of(d, rank, &sampled)) add_sampled(&sampled, text);
    pli_json_end(text);
}

static void add_event(const pli_dash_event *e, pli_text *text) {
    pli_json_object(text, NULL);
    pli_json_f64(text, "at", e->at);
    pli_json_text(text, "kind", e->kind);
    pli_json_text(text, "text", e->text);
    pli_json_end(text);
}

static void add_counts(const pli_dash *d, pli_text *text) {
    pli_json_i64(text, "deaths", d->deaths);
    pli_json_i64(text, "joins", d->joins);
    pli_json_i64(text, "restarts", d->restarts);
    pli_json_i64(text, "checkpoints", d->checkpoints);
    pli_json_i64(text, "checkpoint_clock", d->checkpoint_clock);
    pli_json_i64(text, "staleness", pli_dash_spread(d));
}

void pli_dash_json(pli_dash *d, pli_text *text) {
    pthread_mutex_lock(&d->mutex);
    const uint64_t now_ns = pli_now_ns();
    pli_json_begin(text);
    pli_json_f64(text, "now", (double)(now_ns - d->begun_ns) * 1e-9);
    pli_json_f64(text, "sampled", d->sample != NULL ? (double)(now_ns - d->sampled_ns) * 1e-9 : (double)NAN);
    pli_json_f64(text, "clock_age", pli_dash_clock_age(d));
    pli_json_text(text, "status", d->status[0] != '\0' ? d->status : NULL);
    if (d->run != NULL) pli_json_value(text, "run", d->run);
    pli_json_f64(text, "seconds", d->has_progress ? d->seconds : (double)NAN);
    pli_json_f64(text, "learning_rate", d->has_progress ? d->learning_rate : (double)NAN);
    add_counts(d, text);
    add_curve("epochs", &d->epochs, text);
    add_curve("clocks", &d->clocks, text);
    pli_json_list(text, "ranks");
    for (int32_t r = 0; r < pli_dash_ranks(d); r++) add_rank(d, r, text);
    pli_json_list_end(text);
    pli_json_list(text, "events");
    for (int64_t i = d->events > PLI_DASH_EVENTS ? d->events - PLI_DASH_EVENTS : 0; i < d->events; i++)
        add_event(&d->event[i % PLI_DASH_EVENTS], text);
    pli_json_list_end(text);
    pli_json_end(text);
    pli_text_add(text, "\n");
    pthread_mutex_unlock(&d->mutex);
}
