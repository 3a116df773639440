/* watch/compare/compare.h - compares runs of one job under several settings.
 *
 *     results.c  reads a run's record, metrics and event log
 *     judge.c    chooses the target loss, finds when each run reached it, and which differences are beyond the noise
 *     say.c      the judgement in words
 *     table.c    a table for a terminal
 *     report.c   everything as one JSON object
 *     (watch/page/ puts that object into a page, which draws it)
 *
 * Nothing here starts a process or knows an option: results come in, text goes out. */
#ifndef PLI_WATCH_COMPARE_H
#define PLI_WATCH_COMPARE_H

#include "watch/audit/audit.h"

typedef enum pli_outcome { PLI_RAN, PLI_RUN_REFUSED, PLI_RUN_FAILED, PLI_RUN_STOPPED, PLI_OUTCOMES } pli_outcome;

typedef struct pli_curve_point {
    double clock, seconds, bytes, loss; /* bytes NaN: it was not measured */
} pli_curve_point;

typedef struct pli_rank_times {
    int32_t rank;
    double  compute, wait, network; /* seconds; network NaN: it is counted in wait */
} pli_rank_times;

typedef struct pli_compared_run {
    int32_t     pair, repeat; /* repeat counts from 0 */
    pli_outcome outcome;
    int32_t     exit_code;
    char       *reason; /* why it did not run; NULL: it did */
    char       *record; /* the record that `plait train` printed, one JSON object; NULL: none */
    bool   progressive; /* loss is the mean over the rows as they came, because the objective could not be measured */
    double loss;        /* at the end */
    double seconds, clocks, bytes; /* of training */
    char   optimizer[32];          /* that trained: auto may choose another for each pair; empty: not known */
    char   figure_name[32];        /* of the first of the learner's own figures; empty: it has none */
    double figure;
    pli_curve_point *point;        /* [points], by clock */
    int64_t          points, points_capacity;
    pli_rank_times  *rank; /* [ranks] */
    int64_t          ranks, ranks_capacity;
    double to_seconds, to_clocks, to_bytes; /* until the target; INFINITY: never reached. to_bytes NaN: not measured */
} pli_compared_run;

typedef struct pli_compared_pair {
    char        topology[48], consistency[48];
    pli_outcome outcome;                                /* PLI_RAN: at least one of its runs is complete */
    const char *reason;                                 /* why a run failed; NULL: the pair ran */
    int64_t     stale[PLI_AUDIT_BINS], gets, stale_max; /* from another run, with an event log; gets 0: none */
    const char *audit;                                  /* "proven", "refuted"; NULL: there was no audit */
    int32_t     runs;                                   /* number of complete runs */
    int32_t     servers_work; /* so many of the given servers worked, because the pair needs none; 0: it needs them, or
                                 none were given */
    int32_t     workers;      /* if servers_work > 0: number of all workers */
    int32_t     left; /* number of complete runs that reached the target, and ended above it */
    int32_t     typical; /* index among all runs of the complete run whose time is the median; -1: none */
    double      seconds, seconds_min, seconds_max; /* until the target, over the repeats: median, least, most */
    double      bytes, clocks;                     /* until the target: medians */
    double      loss, figure;                      /* medians at the end */
    double      compute, wait, network;            /* of the typical run, summed over ranks */
} pli_compared_pair;

/* A description of the machine. */
typedef struct pli_machine {
    char    host[256], cpu[128], kernel[128], version[32];
    int32_t cores;
    int64_t memory_bytes;
    double  load; /* runnable tasks, averaged over the minute before the first run; NaN: not known */
} pli_machine;

typedef struct pli_comparison {
    pli_machine        machine;
    pli_compared_pair *pair; /* [pairs] */
    pli_compared_run  *run;  /* [runs], in the order in which they ended */
    int32_t            pairs, repeats;
    int64_t            runs, capacity;
    const char        *settings; /* the job's options in one line */
    const char        *transport;
    const char        *title; /* "logistic on a9a" */
    bool               interrupted;
    double             target_given; /* NaN: none, the target follows from the runs */

    /* The judgement. */
    double   target;   /* NaN: nothing ran */
    double   lowest;   /* the lowest loss at the end of a run */
    const char *figure_name; /* of the learner's own figure in the table; NULL: there is none */
    int32_t  best;     /* the pair with the least median time; -1: none reached the target */
    bool    *as_good;  /* [pairs] its difference from the best is within the noise; true for the best itself */
    int32_t  next;     /* the fastest pair beyond the noise; -1: none */
    int32_t  lightest; /* the pair with the least bytes until the target; -1: not measured */
    pli_text sentence;
} pli_comparison;

/* --- results.c */

/** Reads the results of a run; record: what `plait train` printed (the last line counts). Errors: EFORMAT, ENOMEM; EIO
 *  the metrics cannot be read. */
plait_status pli_compare_read(pli_compared_run *run, const char *record, const char *metrics_path, plait_error *err);
/** Audits the logs of a run of the pair. */
plait_status pli_compare_audit(pli_compared_pair *pair, const char *const *paths, int32_t n, plait_error *err);
/** Adds a run, which is zeroed; NULL: no memory. The pointer is valid until the next call. */
pli_compared_run *pli_compare_add(pli_comparison *comparison);
void              pli_compare_free(pli_comparison *comparison);

/* --- judge.c */

/** Fills in the judgement and each pair's figures. Errors: ENOMEM. */
plait_status pli_compare_judge(pli_comparison *comparison, plait_error *err);
/** The chance that b looks as much slower than a as measured, or more, although both settings are equally fast: P(U <=
 *  u) of Mann and Whitney (1947), where u counts the pairs of repeats in which b was the faster (ties count half). */
double pli_rank_chance(const double *a, int32_t n_a, const double *b, int32_t n_b);
/** Where a curve first comes down to the target, interpolated between two points by a straight line; INFINITY:
 *  never. */
double pli_compare_crossing(const pli_curve_point *point, int64_t points, double target, size_t axis_offset);

/* --- out */
void pli_compare_say(const pli_comparison *comparison, pli_text *text); /* plain sentences */
void pli_compare_table(const pli_comparison *comparison, int width, pli_text *text);
void pli_compare_json(const pli_comparison *comparison, pli_text *text); /* one line, no newline */

/** The optimizer of the pair's runs; "": none has run. */
const char *pli_compare_optimizer(const pli_comparison *comparison, int32_t pair);
/** Did not all pairs that ran have the same? */
bool        pli_compare_optimizers_differ(const pli_comparison *comparison);
/** "ps x ssp:2" */
void pli_compare_name(const pli_compared_pair *pair, char name[104]);
/** 0.01234 -> "12.3 ms"; 1234567 -> "1.2 MB". INFINITY: "never". NaN: "-". */
void pli_compare_seconds(double seconds, char text[24]);
void pli_compare_bytes(double bytes, char text[24]);

#endif
