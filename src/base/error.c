/* base/error.c - raising errors.
 *
 * The place that first sees a failure knows most about it, so it writes the text: what, where, remedy. Callers above
 * may put their own "where" in front, but never replace what stands there. The code travels as the return value and
 * tells the caller what to do next; the text is for people. Nothing is kept here: the text lives in the plait_error
 * that the caller lent, so ranks that share a thread, and threads that share a rank, cannot mix up their errors. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include <plait/status.h>

const char *plait_status_text(plait_status status) {
    switch (status) {
#define STATUS_CASE(name, code, text)                                                                                  \
    case PLAIT_##name: return text;
        PLAIT_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

const char *plait_version(void) { return PLI_VERSION; }

/* Makes text one line that may be shown anywhere, whatever bytes it contains, and copies it to err. Alters text
 * itself. */
static void set_text(plait_error *err, char *text) {
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '\n' || *c == '\r') *c = ' ';
    }
    pli_printable(err->text, sizeof err->text, text);
}

/* The arguments may point into err->text, so the text is formatted into a buffer of its own first. */
plait_status pli_fail(plait_error *err, plait_status code, const char *fmt, ...) {
    if (err == NULL) return code;
    char    text[sizeof err->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    set_text(err, text);
    err->rank = -1;
    return err->code = code;
}

plait_status pli_fail_null(plait_error *err, const char *call, const char *argument) {
    return pli_fail(err, PLAIT_EINVAL, "%s: %s is NULL", call, argument);
}

static plait_status status_of_errno(int errnum) {
    switch (errnum) {
    case ENOSPC:
    case EDQUOT: return PLAIT_ENOSPACE;
    case ENOMEM: return PLAIT_ENOMEM;
    default: return PLAIT_EIO;
    }
}

plait_status pli_fail_errno(plait_error *err, int errnum, const char *fmt, ...) {
    plait_status code = status_of_errno(errnum);
    if (err == NULL) return code;
    char    text[sizeof err->text], why[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return pli_fail(err, code, "%s: %s", text, strerror_r(errnum, why, sizeof why));
}

plait_status pli_fail_at(plait_error *err, const char *fmt, ...) {
    if (err == NULL) return PLAIT_EINVAL;
    char    prefix[sizeof err->text], text[2 * sizeof err->text + 2];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    snprintf(text, sizeof text, "%s: %s", prefix, err->text);
    set_text(err, text);
    return err->code;
}

/* The nearest name, or NULL; parameters do not count: "tpk:0.1" is near "topk:F". */
static const char *nearest_of(const char *name, const char *const *names, size_t n) {
    enum { MOST = 64, LONGEST = 40 };
    char        bare[MOST][LONGEST], given[LONGEST];
    const char *bares[MOST];
    const char *near = pli_nearest(name, names, n);
    if (near != NULL) return near;
    n = n < MOST ? n : MOST;
    snprintf(given, sizeof given, "%.*s", (int)strcspn(name, ":"), name);
    for (size_t i = 0; i < n; i++) {
        snprintf(bare[i], sizeof bare[i], "%.*s", (int)strcspn(names[i], ":"), names[i]);
        bares[i] = bare[i];
    }
    near = pli_nearest(given, bares, n);
    for (size_t i = 0; near != NULL && i < n; i++)
        if (near == bares[i]) return names[i];
    return NULL;
}

plait_status pli_fail_unknown(plait_error *err, const char *what, const char *name, const char *const *names,
                              size_t n) {
    const char *near = nearest_of(name, names, n);
    char        list[256] = "";
    size_t      used = 0;
    for (size_t i = 0; i < n && used + 40 < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.30s", i == 0 ? "" : ", ", names[i]);
    if (near == NULL) return pli_fail(err, PLAIT_ENAME, "unknown %s '%.60s'; known: %s", what, name, list);
    return pli_fail(err, PLAIT_ENAME, "unknown %s '%.60s'; did you mean '%s'? known: %s", what, name, near, list);
}
