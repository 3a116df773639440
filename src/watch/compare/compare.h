/* watch/compare/compare.h - what runs of one job under several settings came to, and what that says.
 *
 *     results.c  a run's record, metrics and event log are read
 *     judge.c    the loss that all are held to, when each run reached it, which differences are beyond the noise
 *     say.c      the judgement in words
 *     table.c    for a terminal
 *     report.c   everything as one JSON object
 *     page.c     the same around page.html, which draws it
 *
 * Nothing here starts a process or knows an option: results come in, text goes out. */
#ifndef PLI_WATCH_COMPARE_H
#define PLI_WATCH_COMPARE_H

#include "watch/audit/audit.h"

typedef enum pli_outcome { PLI_RAN, PLI_RUN_REFUSED, PLI_RUN_FAILED, PLI_RUN_STOPPED, PLI_OUTCOMES } pli_outcome;

typedef struct pli_curve_point {
    double clock, seconds, bytes, loss; /* bytes NaN: not measured */
} pli_curve_point;

typedef struct pli_rank_times {
    int32_t rank;
    double  compute, wait, network; /* seconds; network NaN: wait has both */
} pli_rank_times;

typedef struct pli_compared_run {
    int32_t     pair, repeat; /* repeat from 0 */
    pli_outcome outcome;
    int32_t     exit_code;
    char       *reason; /* why it did not run; NULL: it did */
    char       *record; /* the record that train printed, one JSON object; NULL: none */
    bool   progressive; /* loss is the mean over the rows as they came, since the objective could not be measured */
    double loss;        /* at the end */
    double seconds, clocks, bytes; /* of training */
    char   figure_name[32];        /* the first of the learner's own figures; empty: it has none */
    double figure;
    pli_curve_point *point;        /* [points], by clock */
    int64_t          points, points_capacity;
    pli_rank_times  *rank; /* [ranks] */
    int64_t          ranks, ranks_capacity;
    double to_seconds, to_clocks, to_bytes; /* until the target was reached; INFINITY: never. bytes NaN: not measured */
} pli_compared_run;

typedef struct pli_compared_pair {
    char        topology[48], consistency[48];
    pli_outcome outcome;                                /* PLI_RAN: at least one of its runs is whole */
    const char *reason;                                 /* of a run's; NULL: it ran */
    int64_t     stale[PLI_AUDIT_BINS], gets, stale_max; /* of a further run with an event log; gets 0: none */
    const char *audit;                                  /* "proven", "refuted"; NULL: was not audited */
    int32_t     runs;                                   /* whole ones */
    int32_t     servers_work; /* it has no servers: the hosts of so many worked; 0: it has, or none was asked for */
    int32_t     workers;      /* then: all who worked */
    bool        left; /* the typical run reached the target and ended above it */
    int32_t     typical; /* of them, by its place among all runs: the one whose time is the median; -1: none */
    double      seconds, seconds_min, seconds_max; /* to the target, over the repeats: median, least, most */
    double      bytes, clocks;                     /* medians likewise */
    double      loss, figure;                      /* medians at the end */
    double      compute, wait, network;            /* of the typical run, summed over ranks */
} pli_compared_pair;

/* The machine, as it describes itself. */
typedef struct pli_machine {
    char    host[256], cpu[128], kernel[128], version[32];
    int32_t cores;
    int64_t memory_bytes;
    double  load; /* runnable tasks on average over a minute, before the first run; NaN: not known */
} pli_machine;

typedef struct pli_comparison {
    pli_machine        machine;
    pli_compared_pair *pair; /* [pairs] */
    pli_compared_run  *run;  /* [runs], in the order of their ends */
    int32_t            pairs, repeats;
    int64_t            runs, capacity;
    const char        *settings; /* options of the job, as one line */
    const char        *transport;
    const char        *title; /* "logistic on a9a" */
    bool               interrupted;
    double             target_given; /* NaN: from what was reached */

    /* The judgement. */
    double   target;   /* NaN: nothing ran */
    double   lowest;   /* loss at a run's end */
    const char *figure_name; /* of the learner's own figure that the table has; NULL: it has none */
    int32_t  best;     /* the pair with the least median time; -1: none reached the target */
    bool    *as_good;  /* [pairs] not beyond the noise of the best; the best itself is one */
    int32_t  next;     /* the fastest beyond the noise; -1: none */
    int32_t  lightest; /* least bytes to the target; -1: not measured */
    pli_text sentence;
} pli_comparison;

/* --- results.c */

/** Reads what a run has left into a run of the comparison; record: what train printed (its last line is taken). Errors:
 *  EFORMAT, ENOMEM; EIO the metrics cannot be read. */
plait_status pli_compare_read(pli_compared_run *run, const char *record, const char *metrics_path, plait_error *err);
/** Audits the logs of a run of the pair. */
plait_status pli_compare_audit(pli_compared_pair *pair, const char *const *paths, int32_t n, plait_error *err);
/** A new run, zeroed; NULL: no memory. Valid until the next. */
pli_compared_run *pli_compare_add(pli_comparison *comparison);
void              pli_compare_free(pli_comparison *comparison);

/* --- judge.c */

/** Fills the judgement and each pair's figures. Errors: ENOMEM. */
plait_status pli_compare_judge(pli_comparison *comparison, plait_error *err);
/** The chance that n equal settings of a and b repeats differ so far that every second one is at least as slow as it
 *  was  found: P(U <= u) of Mann and Whitney (1947), where u counts the pairs in which b's was the faster (ties
 *  half). */
double pli_rank_chance(const double *a, int32_t n_a, const double *b, int32_t n_b);
/** When a curve first comes down to the target, between two points by a straight line; INFINITY: never. */
double pli_compare_crossing(const pli_curve_point *point, int64_t points, double target, size_t axis_offset);

/* --- out */
void pli_compare_say(const pli_comparison *comparison, pli_text *text); /* plain sentences */
void pli_compare_table(const pli_comparison *comparison, int width, pli_text *text);
void pli_compare_json(const pli_comparison *comparison, pli_text *text); /* one line, no newline */
void pli_compare_page(const pli_comparison *comparison, pli_text *text); /* HTML */

/** "ps x ssp:2" */
void pli_compare_name(const pli_compared_pair *pair, char name[104]);
/** 0.01234 -> "12.3 ms"; 1234567 -> "1.2 MB". INFINITY: "never". NaN: "-". */
void pli_compare_seconds(double seconds, char text[24]);
void pli_compare_bytes(double bytes, char text[24]);

#endif
