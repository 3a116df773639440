/* fixed8 - values as one byte each beside one scale a message, rounded by chance. See fixed.c. */
#include "table/filter/filter.h"

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)table;
    ((pli_fixed *)state)->width = 1;
    return pli_filter_takes_none("fixed8", parameters, err);
}

const plait_filter pli_fixed8_filter = {
    .name = "fixed8",
    .parameters = "",
    .summary = "sends values as 8-bit integers and one scale a message, rounded at random",
    .state_bytes = sizeof(pli_fixed),
    .loss = PLAIT_ROUNDED,
    .answers = 1,
    .parse = parse,
    .values = { .bound = pli_fixed_bound, .encode = pli_fixed_encode, .decode = pli_fixed_decode },
};
