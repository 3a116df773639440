/* base/error.h - raising errors. There is no thread-local and no global: a function that can fail takes a
 * plait_error *err (last argument, may be NULL) and fills it where the failure is first seen. */
#ifndef PLI_BASE_ERROR_H
#define PLI_BASE_ERROR_H

#include <stddef.h>

#include <plait/status.h>

/** Fills err (NULL is fine) and returns code, so: return pli_fail(err, PLAIT_EINVAL, "...", ...). */
plait_status pli_fail(plait_error *err, plait_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/** Like pli_fail, with the text of errnum, an errno, appended: "...: No space left on device". Chooses
 *  the code: ENOSPACE for ENOSPC and EDQUOT, ENOMEM for ENOMEM, else EIO. */
plait_status pli_fail_errno(plait_error *err, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/** Puts "prefix: " before the text of an error already raised, and returns its code. If err is NULL the answer is
 *  EINVAL, so a caller that may be given NULL keeps the code of the call itself. */
plait_status pli_fail_at(plait_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Fails with ENAME: "unknown WHAT 'name'; did you mean 'x'? known: x, y, z". names [n] are the known names. */
plait_status pli_fail_unknown(plait_error *err, const char *what, const char *name, const char *const *names, size_t n);

/** Fails with EINVAL: "plait_table_get: values is NULL". */
plait_status pli_fail_null(plait_error *err, const char *call, const char *argument);

/* Checks an argument that a public call needs (plait/status.h says what NULL means): PLI_TRY(PLI_GIVEN(err,
 * values)). */
#define PLI_GIVEN(err, argument) ((argument) != NULL ? PLAIT_OK : pli_fail_null(err, __func__, #argument))

/* The same check for an array of n elements (or bytes): it may be NULL if n is 0. */
#define PLI_GIVEN_OF(err, n, argument) ((n) > 0 ? PLI_GIVEN(err, argument) : PLAIT_OK)

/* Returns from the function, so use it only where nothing is held that must be released. */
#define PLI_TRY(call)                                                                              \
    do {                                                                                           \
        plait_status st_ = (call);                                                                 \
        if (st_ < 0) return st_;                                                                   \
    } while (0)

#endif
