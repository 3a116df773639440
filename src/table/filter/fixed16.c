/* fixed16 - values as two bytes each beside one scale a message, rounded by chance. See fixed.c. */
#include "table/filter/filter.h"

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)table;
    ((pli_fixed *)state)->width = 2;
    return pli_filter_takes_none("fixed16", parameters, err);
}

const plait_filter pli_fixed16_filter = {
    .name = "fixed16",
    .parameters = "",
    .summary = "sends values as 16-bit integers and one scale a message, rounded at random",
    .state_bytes = sizeof(pli_fixed),
    .loss = PLAIT_ROUNDED,
    .answers = 1,
    .parse = parse,
    .values = { .bound = pli_fixed_bound, .encode = pli_fixed_encode, .decode = pli_fixed_decode },
};
