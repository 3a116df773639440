/* life.h - a process of a test that is killed at an instant of its own. */
#ifndef PLI_TESTS_LIFE_H
#define PLI_TESTS_LIFE_H

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static inline void *pli_die_in_time(void *life_ns) {
    const struct timespec life = { .tv_nsec = *(const long *)life_ns };
    nanosleep(&life, NULL);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* From now on the process lives so long; the number stays where it is until then. */
static inline void begin_life(long *life_ns) {
    pthread_t killer;
    if (pthread_create(&killer, NULL, pli_die_in_time, life_ns) == 0) pthread_detach(killer);
}

#endif
