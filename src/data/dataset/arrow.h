/* data/dataset/arrow.h - one column of an Arrow record batch, for arrow.c only. */
#ifndef PLI_DATA_ARROW_H
#define PLI_DATA_ARROW_H

#include <plait/arrow.h>

#include "data/dataset/dataset.h"

typedef enum pli_arrow_kind { PLI_ARROW_NUMBERS, PLI_ARROW_TEXTS } pli_arrow_kind;

/* A text of a column; data NULL: it is missing. */
typedef struct pli_arrow_text {
    const char *data;
    int64_t     length;
} pli_arrow_text;

/** Numbers or texts? EINVAL: neither; the column is named. */
plait_status pli_arrow_kind_of(const struct ArrowSchema *schema, pli_arrow_kind *kind_out, plait_error *err);
/** Do the array's counts and pointers hold what `rows` cells from its cell `from` on need? */
plait_status pli_arrow_check(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t from,
                             int64_t rows, plait_error *err);
/** Cell i of a checked column of numbers; NaN: missing. */
double pli_arrow_number(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t i);
/** Cell i of a checked column of texts. EINVAL: an offset or an index is wrong, or the text has a byte 0. */
plait_status pli_arrow_text_at(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t i,
                               pli_arrow_text *text_out, plait_error *err);

#endif
