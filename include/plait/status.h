/* plait/status.h - the status that each call returns, and the error text that comes with it.
 *
 * Every call that can fail returns a plait_status. The code tells the caller the next act (mend the
 * argument, free memory, drop a peer, restart); the text in a plait_error tells a person what, where and
 * the remedy. Codes are grouped by what is damaged: -1..-19 the request, -20..-39 data and files,
 * -40..-59 a peer, -60..-79 the communicator, -80..-99 the computation. Positive codes are no failures.
 *
 * NULL means the same to every public function, and no function crashes on it:
 *   - A handle, an out-argument, a name, a path, a function, or an array with more than 0 elements that is NULL is
 *     EINVAL, and nothing has been done. The text names the call and the argument ("plait_table_get: values is NULL").
 *     The text is in error_out, or in plait_comm_error of the communicator to which the handle belongs. If the handle
 *     itself is NULL, or belongs to no communicator, there is only the code.
 *   - Options that are NULL mean the defaults where the comment says "may be NULL"; elsewhere they are EINVAL too.
 *   - error_out and user may always be NULL, other arguments where the comment says so.
 *   - A call that destroys, closes, frees or waits accepts NULL and the address of a NULL: there is nothing to do
 *     (PLAIT_OK). So does plait_..._opts_init.
 *   - A call that returns no status returns a neutral value: a count is 0, a rank -1, a floating-point number NaN, a
 *     handle or a description NULL, a text "", a value of a graph PLAIT_NONE. A call that returns nothing does nothing.
 * Option structs begin with their size, which plait_..._opts_init sets to that of the caller's header. The library may
 * be older or newer than that header: a shorter struct keeps the defaults in the fields that it lacks; a longer one is
 * taken while the fields that the library does not know are 0, and is EVERSION otherwise. A size that opts_init never
 * sets is EINVAL. (Tables of functions, plait_op and plait_learner, must have the library's own size.)
 * Counts and sizes are checked against their limits before they are multiplied: one that is too large is EINVAL.
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

/* All that is known of a failure. The first place that detects it fills this; it never replaces the returned code. */
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
