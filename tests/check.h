/* check.h - a condition inside a rank's body. cmocka's assertions leave by longjmp, which must not happen on a rank's
 * thread, so a body returns the failure, and the test's thread asserts the run's status. Needs `comm` in scope. */
#ifndef PLI_TESTS_CHECK_H
#define PLI_TESTS_CHECK_H

#include "comm/comm.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "line %d: %s: %.300s", __LINE__, #condition,        \
                            plait_comm_error(comm)->text);                                                             \
    } while (0)

#endif
