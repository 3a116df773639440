/* plait/status.h - what a call answers.
 *
 * Every call that can fail returns a plait_status. The code tells the caller the next act (mend the
 * argument, free memory, drop a peer, restart); the text in a plait_error tells a person what, where and
 * the remedy. Codes are grouped by what is damaged: -1..-19 the request, -20..-39 data and files,
 * -40..-59 a peer, -60..-79 the communicator, -80..-99 the computation. Positive codes are no failures.
 */
#ifndef PLAIT_STATUS_H
#define PLAIT_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PLAIT_API __attribute__((visibility("default")))
#else
#define PLAIT_API
#endif

#define PLAIT_STATUS_MAP(X)                                                                        \
    X(OK, 0, "success")                                                                            \
    X(PENDING, 1, "still in progress")                                                             \
    X(END, 2, "no more data")                                                                      \
    X(STAND_IN, 3, "a worker has died, the others are to stand in for it")                         \
    X(EINVAL, -1, "invalid argument")                                                              \
    X(ENOMEM, -2, "out of memory")                                                                 \
    X(ESHAPE, -3, "shapes do not agree")                                                           \
    X(ENAME, -4, "no such name")                                                                   \
    X(EREFUSED, -5, "this combination is refused")                                                 \
    X(EMODULE, -6, "a module is missing")                                                          \
    X(EIO, -20, "input or output failed")                                                          \
    X(EFORMAT, -21, "malformed data")                                                              \
    X(EVERSION, -22, "written by a newer version")                                                 \
    X(ECHECKSUM, -23, "damaged data")                                                              \
    X(ENOSPACE, -24, "no space left")                                                              \
    X(EPEER, -40, "a peer is lost")                                                                \
    X(ETIMEOUT, -41, "a wait has expired")                                                         \
    X(EMISMATCH, -42, "ranks disagree")                                                            \
    X(EDEADLOCK, -43, "ranks wait for each other")                                                 \
    X(ECOMM, -60, "the communicator is lost, restart it")                                          \
    X(EINTERRUPTED, -70, "interrupted")                                                            \
    X(EDIVERGED, -80, "the computation left the finite numbers")

#define PLAIT_X(name, code, text) PLAIT_##name = (code),
typedef enum plait_status { PLAIT_STATUS_MAP(PLAIT_X) } plait_status;
#undef PLAIT_X

/* The whole story of a failure. Filled by the first place that detects it; never instead of the code. */
typedef struct plait_error {
    plait_status code;
    int32_t      rank; /* where it happened; -1: on no rank in particular */
    char         text[496]; /* one line, no newline: what, where, remedy */
} plait_error;

/** The fixed text of a status code ("invalid argument"). Never NULL. Any thread. */
PLAIT_API const char *plait_status_text(plait_status status);

/** The library's version, "0.1.0". Any thread. */
PLAIT_API const char *plait_version(void);

#ifdef __cplusplus
}
#endif
#endif
