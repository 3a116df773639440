/* base/error.h - raising errors. There is no thread-local and no global: whoever can fail takes a
 * plait_error *err (last argument, may be NULL) and fills it where the failure is first seen. */
#ifndef PLI_BASE_ERROR_H
#define PLI_BASE_ERROR_H

#include <stddef.h>

#include <plait/status.h>

/** Fills err (NULL is fine) and returns code, so: return pli_fail(err, PLAIT_EINVAL, "...", ...). */
plait_status pli_fail(plait_error *err, plait_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/** As pli_fail, with the text of errno (given as number) appended: "...: No space left on device". Chooses
 *  the code: ENOSPACE for ENOSPC and EDQUOT, ENOMEM for ENOMEM, else EIO. */
plait_status pli_fail_errno(plait_error *err, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/** Puts "prefix: " before the text of an error already raised; returns its code (EINVAL if err is NULL: who may be
 *  given NULL keeps the code of the call itself). */
plait_status pli_fail_at(plait_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** ENAME: "unknown WHAT 'name'; did you mean 'x'? known: x, y, z", of the names [n] that there are. */
plait_status pli_fail_unknown(plait_error *err, const char *what, const char *name, const char *const *names, size_t n);

/** EINVAL: "plait_table_get: values is NULL". */
plait_status pli_fail_null(plait_error *err, const char *call, const char *argument);

/* An argument that a public call needs (the policy for NULL: plait/status.h): PLI_TRY(PLI_GIVEN(err, values)). */
#define PLI_GIVEN(err, argument) ((argument) != NULL ? PLAIT_OK : pli_fail_null(err, __func__, #argument))

/* The same of an array of n elements, bytes among them: it may be NULL where n is 0. */
#define PLI_GIVEN_OF(err, n, argument) ((n) > 0 ? PLI_GIVEN(err, argument) : PLAIT_OK)

/* Only where nothing is held. */
#define PLI_TRY(call)                                                                              \
    do {                                                                                           \
        plait_status st_ = (call);                                                                 \
        if (st_ < 0) return st_;                                                                   \
    } while (0)

#endif
