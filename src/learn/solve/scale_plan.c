/* See scale_plan.h. */
#include "learn/solve/scale_plan.h"

#include <stdlib.h>

/* Reads "CLOCK:WORKERS" and what separates it from the next. false: it is none. */
static bool next_step(const char **at, int64_t *clock_out, int64_t *workers_out) {
    char *end;
    *clock_out = strtoll(*at, &end, 10);
    if (end == *at || *end != ':') return false;
    *at = end + 1;
    *workers_out = strtoll(*at, &end, 10);
    if (end == *at || (*end != ',' && *end != '\0')) return false;
    *at = end + (*end == ',');
    return true;
}

plait_status pli_scale_check(const char *text, int32_t least, int32_t most, plait_error *err) {
    int64_t clock, workers, before = 0;
    if (text != NULL && least == most)
        return pli_fail(err, PLAIT_EINVAL, "scale '%s': with --workers %d nobody can come or go; expected "
                                           "--workers MIN:MAX, such as 2:4", text, most);
    for (const char *at = text; at != NULL && *at != '\0'; before = clock) {
        if (!next_step(&at, &clock, &workers) || clock <= before)
            return pli_fail(err, PLAIT_EINVAL, "scale '%s': expected CLOCK:WORKERS,... with ascending clocks above 0, "
                                               "such as 100:4,200:3", text);
        if (workers < least || workers > most)
            return pli_fail(err, PLAIT_EINVAL, "scale '%s': %lld worker%s from clock %lld on; expected %d to %d, as "
                                               "--workers says",
                            text, (long long)workers, workers == 1 ? "" : "s", (long long)clock, least, most);
    }
    return PLAIT_OK;
}

int32_t pli_scale_at(const char *text, int32_t least, int64_t clock) {
    int64_t from, workers, n = least;
    for (const char *at = text; at != NULL && *at != '\0' && next_step(&at, &from, &workers) && from <= clock;)
        n = workers;
    return (int32_t)n;
}

int64_t pli_scale_next(const char *text, int32_t least, int32_t worker, int64_t clock, int64_t end) {
    int64_t from, workers;
    if (worker < pli_scale_at(text, least, clock)) return clock < end ? clock : end;
    for (const char *at = text; at != NULL && *at != '\0' && next_step(&at, &from, &workers);)
        if (from > clock && worker < workers) return from < end ? from : end;
    return end;
}
