/* What earlier runs teach: a real run's record says how long its clocks took, and its simulation how long they should
 * have taken. No model of a cluster is exact, but it is wrong in much the same way each time: by the machine's other
 * load, by costs that the cluster's file has too low. So times are multiplied by the middle of these ratios, and a
 * range reaches from the least of them to the most. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/plan.h"

enum { RUNS_MOST = 64, RUNS_BYTES_MOST = 4 << 20 };

typedef struct lesson {
    pli_job_pair pair;
    int32_t      workers;
    double       clock_seconds;
} lesson;

static bool take_name(const json_t *record, const char *key, char *name, size_t bytes) {
    const char *value = pli_json_text_of(record, key);
    return value != NULL && strlen(value) < bytes && strcpy(name, value) != NULL;
}

/* Reads the record of a run. */
static bool read_record(const char *line, size_t bytes, lesson *out) {
    json_t      *record = pli_json_read(line, bytes, NULL);
    const double workers = pli_json_number_of(record, "workers", NAN);
    const double clocks = pli_json_number_of(record, "clocks", NAN);
    out->workers = workers >= 1 && workers <= 4096 ? (int32_t)workers : 0;
    out->clock_seconds = pli_json_number_of(record, "train_seconds", NAN) / clocks;
    const bool good = take_name(record, "topology", out->pair.topology, sizeof out->pair.topology) &&
                      take_name(record, "consistency", out->pair.consistency, sizeof out->pair.consistency) &&
                      out->workers > 0 && clocks >= 1 && out->clock_seconds > 0;
    json_decref(record);
    return good;
}

static plait_status read_all(const pli_plan *plan, lesson *lessons, int32_t *n_out, plait_error *err) {
    pli_text     text = { 0 };
    plait_status status = pli_read_whole(plan->set.runs, RUNS_BYTES_MOST, &text, err);
    int32_t      number = 0;
    *n_out = 0;
    for (const char *line = text.data; line != NULL && *line != '\0' && status >= 0;) {
        const size_t length = strcspn(line, "\n");
        number++;
        if (length > 0 && *n_out == RUNS_MOST)
            status = pli_fail(err, PLAIT_EINVAL, "%s: more than %d runs; name fewer", plan->set.runs, RUNS_MOST);
        else if (length > 0 && !read_record(line, length, &lessons[(*n_out)++]))
            status = pli_fail(err, PLAIT_EINVAL,
                              "%s:%" PRId32 ": expected the record of a run that has trained, as 'plait train --json' "
                              "prints it", plan->set.runs, number);
        line += length + (line[length] == '\n');
    }
    pli_text_free(&text);
    return status;
}

/* How much longer the real clock was than the simulated one. NaN: the pair cannot be simulated. */
static plait_status compare(pli_plan *plan, const lesson *of, double *ratio_out, plait_error *err) {
    pli_foretold run;
    pli_ahead    ahead = { .plan = &plan->plan, .data = plan->data, .pair = of->pair, .workers = of->workers,
                           .clocks = plan->set.clocks, .target = NAN, .seed = (uint64_t)plan->job.seed,
                           .stragglers = (uint64_t)plan->job.seed };
    PLI_TRY(pli_foretell(&ahead, &run, NULL, err));
    *ratio_out = run.status >= 0 ? of->clock_seconds / (run.seconds / (double)run.clocks) : (double)NAN;
    if (run.status < 0)
        pli_talk_say(&plan->talk, "%s: %s x %s, %" PRId32 " workers, is left out: %s", plan->set.runs,
                     of->pair.topology, of->pair.consistency, of->workers, run.why);
    return PLAIT_OK;
}

plait_status pli_plan_learn(pli_plan *plan, plait_error *err) {
    lesson  lessons[RUNS_MOST];
    double  ratio[RUNS_MOST];
    int32_t read = 0, n = 0;
    plan->misses = (pli_plan_misses){ .least = 1, .middle = 1, .most = 1 };
    if (plan->set.runs == NULL) return PLAIT_OK;
    PLI_TRY(read_all(plan, lessons, &read, err));
    for (int32_t i = 0; i < read; i++) {
        PLI_TRY(compare(plan, &lessons[i], &ratio[n], err));
        n += isfinite(ratio[n]);
    }
    if (n == 0)
        return pli_fail(err, PLAIT_EINVAL, "%s: no run in it can be simulated; leave out --runs", plan->set.runs);
    qsort(ratio, (size_t)n, sizeof *ratio, pli_order_f64);
    plan->misses = (pli_plan_misses){ .n = n, .least = ratio[0], .middle = ratio[n / 2], .most = ratio[n - 1] };
    return PLAIT_OK;
}
