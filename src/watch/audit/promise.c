/* See promise.h. */
#include "watch/audit/promise.h"

#include <stdio.h>
#include <string.h>

enum { NUMBERS_MAX = 3 };

/* A spec cut at its colons. */
typedef struct words {
    char    text[64];
    char   *word[NUMBERS_MAX + 1];
    int32_t n;
} words;

static void cut(const char *spec, words *w) {
    snprintf(w->text, sizeof w->text, "%s", spec);
    w->n = 0;
    for (char *at = w->text; w->n <= NUMBERS_MAX;) {
        w->word[w->n++] = at;
        at = strchr(at, ':');
        if (at == NULL) return;
        *at++ = '\0';
    }
}

static bool number(const words *w, int32_t i, int64_t least, int64_t *out) {
    enum { MOST = 1 << 30 };
    return i < w->n && pli_parse_i64(w->word[i], out) && *out >= least && *out <= MOST;
}

static bool read_bsp(const words *w, pli_promise *p) {
    p->bound = 0;
    p->exact = true;
    p->rounds = 1;
    return w->n == 1;
}

/* What workers push at the end of each round, gets see as under bsp. */
static bool read_local_sgd(const words *w, pli_promise *p) {
    p->bound = 0;
    p->exact = true;
    return w->n == 2 && number(w, 1, 1, &p->rounds);
}

static bool read_ssp(const words *w, pli_promise *p) { return w->n == 2 && number(w, 1, 0, &p->bound); }

/* A barrier comes each time the slowest has done W clocks since the last: at the multiples of W. */
static bool read_asp(const words *w, pli_promise *p) {
    return w->n == 3 && number(w, 1, 0, &p->bound) && number(w, 2, 1, &p->barrier);
}

static bool read_bounded_delay(const words *w, pli_promise *p) {
    p->fetch = 1;
    if (w->n != 2 || !number(w, 1, 0, &p->bound)) return false;
    p->exact = p->bound == 0; /* bsp's model */
    return true;
}

static bool read_sequential(const words *w, pli_promise *p) {
    p->turns = true;
    return w->n == 1;
}

static bool read_async(const words *w, pli_promise *p) {
    (void)p;
    return w->n == 1;
}

static bool read_vap(const words *w, pli_promise *p) {
    p->value_each = w->n == 3 && strcmp(w->word[2], "weak") == 0;
    return (w->n == 2 || p->value_each) && pli_parse_f64(w->word[1], &p->value) && p->value > 0;
}

static bool read_downpour(const words *w, pli_promise *p) {
    return w->n == 3 && number(w, 1, 1, &p->fetch) && number(w, 2, 1, &p->push);
}

static const struct known {
    const char *name, *form;
    bool (*read)(const words *w, pli_promise *promise);
} all[] = {
    { "bsp", "bsp", read_bsp },
    { "ssp", "ssp:S", read_ssp },
    { "essp", "essp:S", read_ssp },
    { "asp", "asp:S:W", read_asp },
    { "async", "async", read_async },
    { "local-sgd", "local-sgd:H", read_local_sgd },
    { "bounded-delay", "bounded-delay:T", read_bounded_delay },
    { "sequential", "sequential", read_sequential },
    { "vap", "vap:V or vap:V:weak", read_vap },
    { "downpour", "downpour:F:P", read_downpour },
};

plait_status pli_promise_unknown(const char *spec, plait_error *err) {
    const char *names[sizeof all / sizeof *all];
    words       w;
    cut(spec, &w);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) names[i] = all[i].name;
    return pli_fail_unknown(err, "consistency", w.word[0], names, sizeof all / sizeof *all);
}

plait_status pli_promise_read(const char *spec, pli_promise *promise_out, plait_error *err) {
    words       w;
    pli_promise promise = { .bound = -1 };
    if (strlen(spec) >= sizeof promise.spec)
        return pli_fail(err, PLAIT_EINVAL, "consistency '%.20s...' is too long", spec);
    strcpy(promise.spec, spec);
    cut(spec, &w);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, w.word[0]) != 0) continue;
        promise.known = true;
        if (!all[i].read(&w, &promise))
            return pli_fail(err, PLAIT_EINVAL, "consistency '%s' is not of the form %s", spec, all[i].form);
    }
    *promise_out = promise;
    return PLAIT_OK;
}
