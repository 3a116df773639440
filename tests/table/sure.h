/* sure.h - what must hold in a seeded schedule; a failure prints the command that replays it. Needs errno.h and
 * cmocka.h before; w: a world that knows its seed. */
#ifndef PLI_TESTS_TABLE_SURE_H
#define PLI_TESTS_TABLE_SURE_H

#define SURE(w, condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("line %d: %s\nreplay: PLAIT_SEED=%llu %s", __LINE__, #condition,              \
                     (unsigned long long)(w)->seed, program_invocation_name);                      \
    } while (0)

#endif
