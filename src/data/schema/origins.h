/* data/schema/origins.h - columns that lie far from 0 for their spread, and what they are read less.
 *
 * A block holds values in 32 bits, 7 digits. Times such as 1764172800 and 1764172860 are then one number. So a column
 * whose least and greatest values differ by less than 1/256 of their size has an *origin*: a number that is taken from
 * each of its values while they still have the text's 17 digits. A few values apart from the others, such as the 0 of
 * a time that was not known, do not hinder this: then three in four of a sample's values decide. The schema, and so the
 * model, remembers it: rows that are read for the model lose the same number. A linear score with an intercept, a net's
 * first layer and a tree say the same of x - origin as of x. */
#ifndef PLI_DATA_ORIGINS_H
#define PLI_DATA_ORIGINS_H

#include "data/data.h"

/* at: the column's number in the schema; libsvm: the index as written. */
typedef struct pli_column_origin {
    uint64_t at;
    double   value;
} pli_column_origin;

enum { PLI_RANGE_KEPT = 40 };

/* The least and the greatest value of a column in a sample, and some of its values, by chance. Zero-initialised is
 * empty. */
typedef struct pli_range {
    int64_t n;
    double  least, most;
    double  kept[PLI_RANGE_KEPT]; /* [n_kept] */
    int32_t n_kept;
} pli_range;

void pli_range_add(pli_range *range, double x);

/** The origin of a column with this range, a round number below its values, or below three in four of them; 0: it needs
 *  none. */
double pli_range_origin(const pli_range *range);

/** By the values so far, which may be few: might the column have an origin? false: those in the middle are 0, or too
 *  far apart. */
bool pli_range_may_be_far(const pli_range *range);

/** The place of `at` in origin [n], which increase; -1: it has none. */
int64_t pli_origin_find(const pli_column_origin *origin, int64_t n, uint64_t at);

/** Adds an origin behind the others; false: out of memory. */
bool pli_schema_add_origin(pli_schema *schema, uint64_t at, double value);

/** Tells of n columns, the first of this name and range: either that they are read less their origins, or, if the
 *  model reads columns as they are, what to do. */
void pli_origins_tell(pli_dataset *dataset, bool taken, const char *name, const pli_range *range, int64_t n);

#endif
