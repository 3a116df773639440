/* watch/dashboard/dashboard.h - what a dashboard knows of a run, and how it shows it. cli/dashboard/ carries it.
 *
 *     state.c       the run so far: takes the lines of the metrics file (watch.h) as they come, and samples
 *     sample.c      a sample: what all ranks do at a moment, as one of the run's processes reads it
 *     show.c        JSON for the page
 *     figures.c     figures for Prometheus
 *     page.c        the page, page/dashboard.html
 *
 * Lines are told when something happens: a report of progress at most ten times a second, a checkpoint, a death. A
 * sample is taken when somebody looks, so a run at which nobody looks pays for its lines alone. All functions may be
 * called by any thread. */
#ifndef PLI_WATCH_DASHBOARD_H
#define PLI_WATCH_DASHBOARD_H

#include <pthread.h>

#include <plait/comm.h>
#include <plait/train.h>

#include "base/base.h"
#include "base/json.h"

enum { PLI_DASH_POINTS = 400, PLI_DASH_EVENTS = 100, PLI_DASH_TEXT = 320 };

typedef struct pli_dash_point {
    int64_t epoch, clock;
    double  loss, validation_loss, rows_per_second;
} pli_dash_point;

/* Points of the run, at most PLI_DASH_POINTS: when there is no room for a further one, every second one goes. */
typedef struct pli_dash_curve {
    pli_dash_point at[PLI_DASH_POINTS];
    int32_t        n;
    int64_t        every, skipped; /* one of `every` points is kept; how many came since */
    pli_dash_point last;           /* the last that came, kept or not */
} pli_dash_curve;

typedef struct pli_dash_member {
    bool    known, up;
    int32_t pid;
    int64_t death; /* its event, from 1; 0: none */
    char    host[64], role[16];
} pli_dash_member;

typedef struct pli_dash_event {
    double at; /* seconds since the dashboard began */
    char   kind[16], text[PLI_DASH_TEXT];
} pli_dash_event;

typedef struct pli_dash {
    pthread_mutex_t  mutex; /* guards all */
    uint64_t         begun_ns;
    json_t          *run;    /* the line "run": model, workers, settings; NULL: it has not come */
    json_t          *sample; /* the last; NULL: none */
    uint64_t         sampled_ns;
    int64_t          slowest, fastest; /* the least and the greatest clock of the sample's workers; -1: none has one */
    pli_dash_curve   epochs, clocks;
    double           learning_rate, seconds;
    double           loss_sum, rows; /* of the reports of the epoch so far: loss times rows, and rows */
    bool             has_progress;
    uint64_t         lined_ns; /* when a line last told of progress; 0: never */
    int64_t          clocked;    /* the clock that it last heard of */
    uint64_t         clocked_ns; /* when; 0: never */
    char             status[64]; /* of the line "end"; "": the run goes on */
    pli_dash_member *member;     /* [members], by rank */
    int32_t          members;
    pli_dash_event   event[PLI_DASH_EVENTS]; /* a ring: number i lies at i % PLI_DASH_EVENTS */
    int64_t          events, deaths, joins, checkpoints, restarts, dropped;
    int64_t          checkpoint_clock, checkpoint_bytes;
    double           checkpoint_seconds;
} pli_dash;

void pli_dash_init(pli_dash *dash);
void pli_dash_free(pli_dash *dash);

/** Takes a line: those of the metrics file, and
 *      {"event": "run", "model": ..., ...}       what the run is; all its texts and numbers are shown
 *      {"event": "start", "rank": 3, "host": ..., "pid": ..., "role": ...}   may come twice for a rank
 *      {"event": "bye", "rank": 3}               the rank ends by itself
 *  A line that is no such thing is ignored. */
void pli_dash_line(pli_dash *dash, const char *line, size_t bytes);
/** The process of a rank has gone. If it has not said bye, that counts as its death, unless it is known to be dead. */
void pli_dash_gone(pli_dash *dash, int32_t rank);
/** Adds an event of the launcher's: kind "restart" is counted. */
void pli_dash_note(pli_dash *dash, const char *kind, const char *text);

/** Adds the JSON of a sample of all ranks: where their time went, what they have sent and do now, and their clocks.
 *  Those of other processes have timeout_ns to answer. One call at a time of a process. */
void pli_sample_tell(const plait_comm *comm, uint64_t timeout_ns, pli_text *text);
/** For the leading rank: its progress goes into samples, for a launch that its lines do not reach. */
void pli_sample_progress(plait_comm *comm, const plait_progress *progress);
/** Takes such a sample. Text that is none is ignored, and the last one stays. */
void pli_dash_sample(pli_dash *dash, const char *json);

/** Adds everything as one JSON object. */
void pli_dash_json(pli_dash *dash, pli_text *text);
/** Adds everything in Prometheus' text form. */
void pli_dash_figures(pli_dash *dash, pli_text *text);
/** Adds the page, which asks for "data" beside it. */
void pli_dash_page(pli_text *text);

/* The sample's ranks as both forms show them. */
typedef struct pli_dash_rank {
    bool        heard;
    double      compute, wait, network; /* seconds; network NaN: it is counted in wait */
    int64_t     clock;                /* -1: none */
    int64_t     behind;               /* clocks behind the fastest worker; -1: it has none */
    int32_t     peer;                 /* the rank that holds it up; -1: none */
    double      waited;               /* seconds of the wait that goes on; NaN: it does not wait */
    const char *does;                 /* the doctor's line */
    const json_t *sent;               /* object: bytes by kind */
} pli_dash_rank;
/** How many ranks the sample and the members have. Under the mutex, like the next. */
int32_t pli_dash_ranks(const pli_dash *dash);
/** The rank's part of the last sample; false: there is none. */
bool    pli_dash_rank_of(const pli_dash *dash, int32_t rank, pli_dash_rank *rank_out);
/** Seconds since it heard of another clock; NaN: no clock has ended, or the run has. */
double  pli_dash_clock_age(const pli_dash *dash);
/** By how many clocks the fastest worker is ahead of the slowest; -1: no worker has a clock. */
int64_t pli_dash_spread(const pli_dash *dash);

#endif
