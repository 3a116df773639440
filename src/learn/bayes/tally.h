/* learn/bayes/tally.h - what rows add up to, by feature and class.
 *
 * A tally is the sums of some rows, in memory of its own: threads fill tallies of their own, which are added up when a
 * batch ends. Sums are whole numbers or doubles, as those of the table are that they are pushed to. */
#ifndef PLI_LEARN_BAYES_TALLY_H
#define PLI_LEARN_BAYES_TALLY_H

#include "data/data.h"
#include "learn/supervised/goal.h"

typedef enum pli_events {
    PLI_EVENTS_MULTINOMIAL,
    PLI_EVENTS_BERNOULLI,
    PLI_EVENTS_GAUSSIAN,
    PLI_EVENTS_COMPLEMENT
} pli_events;
enum { PLI_EVENTS = 4 };

/* By name, in this order. */
extern const char *const pli_events_name[PLI_EVENTS + 1];
/** -1: none. */
int32_t pli_events_find(const char *name);

/* With gaussian events each feature and class has three sums over the rows with a value: their weight, the values less
 * the centre, and the square of that. */
enum { PLI_GIVEN, PLI_SUM, PLI_SQUARE, PLI_MOMENTS };
static inline int64_t pli_events_width(pli_events events, int64_t classes) {
    return events == PLI_EVENTS_GAUSSIAN ? PLI_MOMENTS * classes : classes;
}

/* The largest whole number that is counted. */
#define PLI_TALLY_MOST 2147483648.0
static inline bool pli_tally_is_whole(double x) { return x >= 0 && x <= PLI_TALLY_MOST && x == (double)(int64_t)x; }

/* How rows are tallied. */
typedef struct pli_tally_form {
    pli_events      events;
    int64_t         features, width; /* features 0: by key; width: sums of a feature */
    bool            whole;           /* sums are whole numbers: of gaussian they never are      */
    bool            marks;           /* which features were touched is noted                    */
    bool            checks;          /* nobody has looked at these rows before: a stream's      */
    const double   *centre;          /* [features, K] gaussian */
    const pli_goal *goal;            /* the classes, and their weights */
} pli_tally_form;

typedef struct pli_tally {
    void      *sum;      /* [rows, width] I64 where whole, else F64; rows: features, or those of the map */
    double    *of_class; /* [K] weights of rows                         */
    uint64_t  *mark;     /* a bit a feature                             */
    pli_keymap map;      /* where features grow by key                  */
    int64_t    capacity; /* rows of sum                                 */
    uint32_t  *local;    /* the row at hand, by rows of the map         */
    int64_t   *found;
    int64_t    local_capacity, found_capacity;
    double     weight, rows; /* of all its rows */
    int64_t    entries;      /* of a stream's rows, which cost simulated hosts time */
    plait_error error;       /* of who fills it */
} pli_tally;

/** A tally of nothing; features by key have no rows yet. */
plait_status pli_tally_init(const pli_tally_form *form, pli_tally *tally, plait_error *err);
void         pli_tally_destroy(pli_tally *tally);
/** Adds the part's rows. Errors: EFORMAT, with the row: a label that is not known, a negative value, one that is no
 *  whole number, an index that is too high; ENOMEM. */
plait_status pli_tally_add(const pli_tally_form *form, pli_tally *tally, const pli_part *part, plait_error *err);
/** Adds what `more` holds to tally, and leaves it empty. Errors: ENOMEM. */
plait_status pli_tally_merge(const pli_tally_form *form, pli_tally *tally, pli_tally *more, plait_error *err);
/** Empties it. */
void pli_tally_clear(const pli_tally_form *form, pli_tally *tally);

#endif
