/* The run so far, from its lines and samples. See dashboard.h. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "watch/dashboard/dashboard.h"

#define SILENCE_NS UINT64_C(5000000000) /* after so long without a line, samples tell of progress */
enum { RANKS_MAX = 65536 };

void pli_dash_init(pli_dash *dash) {
    *dash = (pli_dash){ .begun_ns = pli_now_ns(), .slowest = -1, .fastest = -1, .checkpoint_clock = -1 };
    pthread_mutex_init(&dash->mutex, NULL);
}

void pli_dash_free(pli_dash *dash) {
    json_decref(dash->run);
    json_decref(dash->sample);
    pli_free(dash->member);
    pthread_mutex_destroy(&dash->mutex);
}

/* --- under the mutex ---------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void add_event(pli_dash *d, const char *kind, const char *fmt, ...) {
    pli_dash_event *e = &d->event[d->events++ % PLI_DASH_EVENTS];
    va_list         ap;
    e->at = (double)(pli_now_ns() - d->begun_ns) * 1e-9;
    snprintf(e->kind, sizeof e->kind, "%s", kind);
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
}

static int64_t whole(const json_t *line, const char *key, int64_t instead) {
    const json_t *value = json_object_get(line, key);
    return json_is_integer(value) ? json_integer_value(value) : instead;
}

static double number(const json_t *line, const char *key) { return pli_json_number_of(line, key, (double)NAN); }

static const char *text_of(const json_t *line, const char *key) {
    const char *text = pli_json_text_of(line, key);
    return text != NULL ? text : "";
}

static const json_t *sampled(const pli_dash *d) { return json_object_get(d->sample, "ranks"); }

/* NULL: the rank is none, or there is no memory. */
static pli_dash_member *member_of(pli_dash *d, int64_t rank) {
    if (rank < 0 || rank >= RANKS_MAX) return NULL;
    if (rank >= d->members) {
        pli_dash_member *all = pli_calloc((size_t)rank + 1, sizeof *all);
        if (all == NULL) return NULL;
        if (d->members > 0) memcpy(all, d->member, (size_t)d->members * sizeof *all);
        pli_free(d->member);
        d->member = all;
        d->members = (int32_t)rank + 1;
    }
    return &d->member[rank];
}

static void take_start(pli_dash *d, const json_t *line) {
    const int64_t    rank = whole(line, "rank", -1), pid = whole(line, "pid", 0);
    pli_dash_member *m = member_of(d, rank);
    if (m == NULL || (m->up && m->pid == (int32_t)pid)) return;
    *m = (pli_dash_member){ .known = true, .up = true, .pid = (int32_t)pid };
    snprintf(m->host, sizeof m->host, "%s", text_of(line, "host"));
    snprintf(m->role, sizeof m->role, "%s", text_of(line, "role"));
    d->joins++;
    d->status[0] = '\0';
    add_event(d, "join", "rank %" PRId64 " (%s) has joined on %s, process %" PRId64, rank, m->role, m->host, pid);
}

static void take_death(pli_dash *d, int64_t rank, const char *why, const char *then) {
    pli_dash_member *m = member_of(d, rank);
    const bool       told = m != NULL && m->known && !m->up;
    if (m == NULL || (told && then[0] == '\0')) return;
    m->known = true;
    m->up = false;
    d->deaths += !told;
    /* The leading rank may hear of it later, and says what becomes of the run: that is the same event. */
    if (told && m->death > 0) {
        pli_dash_event *e = &d->event[(m->death - 1) % PLI_DASH_EVENTS];
        if (m->death > d->events - PLI_DASH_EVENTS) snprintf(e->text, sizeof e->text, "%s; %s", why, then);
        return;
    }
    add_event(d, "death", "%s%s%s", why, then[0] != '\0' ? "; " : "", then);
    m->death = d->events;
}

/* Makes room by leaving out every second point. */
static void thin(pli_dash_curve *c) {
    for (int32_t i = 0; 2 * i < c->n; i++) c->at[i] = c->at[2 * i];
    c->n = (c->n + 1) / 2;
    c->every *= 2;
}

static void add_point(pli_dash_curve *c, const pli_dash_point *p) {
    if (c->every == 0) c->every = 1;
    /* A run that was begun anew, or from a checkpoint, tells the same clocks again. */
    while (c->n > 0 && c->at[c->n - 1].clock >= p->clock) c->n--;
    c->last = *p;
    if (++c->skipped < c->every && c->n > 0) return;
    c->skipped = 0;
    if (c->n == PLI_DASH_POINTS) thin(c);
    c->at[c->n++] = *p;
}

/* A report's loss is of the rows since the report before, which may be few; an epoch's is the mean over all of them. */
static void take_loss(pli_dash *d, const json_t *line, pli_dash_point *p, bool epoch_ended) {
    const double seconds = number(line, "seconds"), passed = seconds > d->seconds ? seconds - d->seconds : 0;
    const double rows = p->rows_per_second * passed;
    if (p->loss - p->loss == 0 && rows > 0) {
        d->loss_sum += p->loss * rows;
        d->rows += rows;
    }
    d->seconds = seconds;
    if (!epoch_ended) return;
    if (d->rows > 0) p->loss = d->loss_sum / d->rows;
    d->loss_sum = d->rows = 0;
}

static void take_progress(pli_dash *d, const json_t *line, pli_dash_curve *curve) {
    pli_dash_point p = { .epoch = whole(line, "epoch", 0), .clock = whole(line, "clock", 0),
                         .loss = number(line, "loss"), .validation_loss = number(line, "validation_loss"),
                         .rows_per_second = number(line, "rows_per_second") };
    if (d->clocked_ns == 0 || p.clock != d->clocked) d->clocked_ns = pli_now_ns();
    d->clocked = p.clock;
    take_loss(d, line, &p, curve == &d->epochs);
    add_point(curve, &p);
    d->learning_rate = number(line, "learning_rate");
    d->has_progress = true;
}

static void take_checkpoint(pli_dash *d, const json_t *line) {
    d->checkpoints++;
    d->checkpoint_clock = whole(line, "clock", -1);
    d->checkpoint_bytes = whole(line, "bytes", 0);
    d->checkpoint_seconds = number(line, "seconds");
    add_event(d, "checkpoint", "checkpoint of clock %" PRId64 ": %" PRId64 " bytes in %.3g s, %s", d->checkpoint_clock,
              d->checkpoint_bytes, d->checkpoint_seconds, text_of(line, "folder"));
}

static void take_run(pli_dash *d, const json_t *line) {
    json_t *copy = json_deep_copy(line);
    if (copy == NULL) return;
    json_object_del(copy, "event");
    json_decref(d->run);
    d->run = copy;
}

static void take_bye(pli_dash *d, int64_t rank) {
    if (rank < 0 || rank >= d->members || !d->member[rank].up) return;
    d->member[rank].up = false;
    add_event(d, "end", "rank %" PRId64 " has ended", rank);
}

static void take_end(pli_dash *d, const json_t *line) {
    snprintf(d->status, sizeof d->status, "%s", text_of(line, "status"));
    add_event(d, "end", "the run has ended: %s", d->status);
}

static void take_line(pli_dash *d, const json_t *line) {
    const char *event = text_of(line, "event");
    if (strcmp(event, "clock") == 0 || strcmp(event, "epoch") == 0) d->lined_ns = pli_now_ns();
    if (strcmp(event, "clock") == 0) take_progress(d, line, &d->clocks);
    else if (strcmp(event, "epoch") == 0) take_progress(d, line, &d->epochs);
    else if (strcmp(event, "start") == 0) take_start(d, line);
    else if (strcmp(event, "run") == 0) take_run(d, line);
    else if (strcmp(event, "checkpoint") == 0) take_checkpoint(d, line);
    else if (strcmp(event, "bye") == 0) take_bye(d, whole(line, "rank", -1));
    else if (strcmp(event, "end") == 0) take_end(d, line);
    else if (strcmp(event, "rank_lost") == 0)
        take_death(d, whole(line, "rank", -1), text_of(line, "why"), text_of(line, "then"));
}

/* --- for all ---------------------------------------------------------------------------------------------- */

void pli_dash_line(pli_dash *d, const char *line, size_t bytes) {
    json_t *value = pli_json_read(line, bytes, NULL);
    pthread_mutex_lock(&d->mutex);
    if (json_is_object(value)) take_line(d, value);
    pthread_mutex_unlock(&d->mutex);
    json_decref(value);
}

void pli_dash_gone(pli_dash *d, int32_t rank) {
    char why[96];
    pthread_mutex_lock(&d->mutex);
    snprintf(why, sizeof why, "the process of rank %" PRId32 " is gone", rank);
    if (rank >= 0 && rank < d->members) take_death(d, rank, why, "");
    pthread_mutex_unlock(&d->mutex);
}

void pli_dash_note(pli_dash *d, const char *kind, const char *text) {
    pthread_mutex_lock(&d->mutex);
    if (strcmp(kind, "restart") == 0) d->restarts++;
    add_event(d, kind, "%s", text);
    pthread_mutex_unlock(&d->mutex);
}

/* A part of a rank's time may shrink for a moment, because its counts are read one after the other while it goes on; a
 * counter must not, unless the rank has begun anew. */
static void keep_growing(json_t *rank, const json_t *before) {
    static const char *const parts[] = { "compute", "wait", "network" };
    if (!(number(rank, "lived") >= number(before, "lived"))) return;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (number(rank, parts[i]) < number(before, parts[i]))
            json_object_set(rank, parts[i], json_object_get(before, parts[i]));
}

static void settle(const pli_dash *d, json_t *sample) {
    size_t  i;
    json_t *rank;
    json_array_foreach(json_object_get(sample, "ranks"), i, rank)
        keep_growing(rank, json_array_get(sampled(d), i));
}

/* By how much workers are apart: once a sample, since each rank is compared with the fastest. */
static void find_clocks(pli_dash *d) {
    size_t        i;
    const json_t *rank;
    d->slowest = d->fastest = -1;
    json_array_foreach(sampled(d), i, rank) {
        const int64_t clock = whole(rank, "clock", -1);
        if (clock < 0) continue;
        if (d->slowest < 0 || clock < d->slowest) d->slowest = clock;
        if (clock > d->fastest) d->fastest = clock;
    }
}

/* Progress that no line tells, because the leading rank is on another machine. Its epochs' losses are not known. */
static void take_sampled_progress(pli_dash *d) {
    size_t        i;
    const json_t *rank;
    if (d->lined_ns != 0 && pli_now_ns() - d->lined_ns < SILENCE_NS) return;
    json_array_foreach(sampled(d), i, rank) {
        const json_t *progress = json_object_get(rank, "progress");
        if (whole(progress, "clock", -1) > d->clocks.last.clock) take_progress(d, progress, &d->clocks);
    }
}

void pli_dash_sample(pli_dash *d, const char *json) {
    json_t *value = pli_json_read(json, strlen(json), NULL);
    if (!json_is_array(json_object_get(value, "ranks"))) {
        json_decref(value);
        return;
    }
    pthread_mutex_lock(&d->mutex);
    settle(d, value);
    json_decref(d->sample);
    d->sample = value;
    d->sampled_ns = pli_now_ns();
    find_clocks(d);
    take_sampled_progress(d);
    pthread_mutex_unlock(&d->mutex);
}

/* --- ranks of the sample ------------------------------------------------------------------------------------------ */

int32_t pli_dash_ranks(const pli_dash *d) {
    const size_t n = json_array_size(sampled(d)) < RANKS_MAX ? json_array_size(sampled(d)) : RANKS_MAX;
    return (int32_t)n > d->members ? (int32_t)n : d->members;
}

int64_t pli_dash_spread(const pli_dash *d) { return d->fastest < 0 ? -1 : d->fastest - d->slowest; }

double pli_dash_clock_age(const pli_dash *d) {
    if (d->clocked_ns == 0 || d->status[0] != '\0') return (double)NAN;
    return (double)(pli_now_ns() - d->clocked_ns) * 1e-9;
}

/* The doctor's line is "rank 1 waits for clock 7 of table w, held up by rank 3 (plait_table_read, call 26; 0.2 s)". */
static void read_wait(pli_dash_rank *rank) {
    static const char held[] = "held up by rank ";
    const char       *peer = strstr(rank->does, held), *end = strrchr(rank->does, ';');
    rank->peer = -1;
    rank->waited = (double)NAN;
    if (strstr(rank->does, " waits for ") == NULL || strstr(rank->does, "waits for nothing") != NULL) return;
    if (peer != NULL) (void)sscanf(peer + sizeof held - 1, "%" SCNd32, &rank->peer);
    if (end == NULL || sscanf(end + 1, "%lf", &rank->waited) != 1) rank->waited = 0;
}

bool pli_dash_rank_of(const pli_dash *d, int32_t at, pli_dash_rank *rank_out) {
    const json_t *rank = json_array_get(sampled(d), (size_t)at);
    if (!json_is_object(rank)) return false;
    *rank_out = (pli_dash_rank){ .heard = json_is_true(json_object_get(rank, "heard")),
                                 .compute = number(rank, "compute"),
                                 .wait = number(rank, "wait"),
                                 .network = number(rank, "network"),
                                 .clock = whole(rank, "clock", -1),
                                 .does = text_of(rank, "does"),
                                 .sent = json_object_get(rank, "sent") };
    rank_out->behind = rank_out->clock >= 0 ? d->fastest - rank_out->clock : -1;
    read_wait(rank_out);
    return true;
}
