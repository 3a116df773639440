/* What the collectives of groups give on any transport: four groups, of which two are disjoint (even, odd) and two
 * overlap (front, back), and all workers at once, interleaved. Each result is compared with what the members' ranks
 * say it must be, so a term of a non-member would show. */
#ifndef TESTS_GROUP_STORY_H
#define TESTS_GROUP_STORY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"

enum { STORY_GROUPS = 4, STORY_LONG = 3000 };

#define STORY(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "line %d: %s", __LINE__, #condition); \
    } while (0)

static const char *const story_names[STORY_GROUPS] = { "even", "odd", "front", "back" };

static int story_has(int g, int32_t rank, int32_t workers) {
    switch (g) {
    case 0: return rank % 2 == 0;
    case 1: return rank % 2 == 1;
    case 2: return rank <= workers / 2;
    default: return rank >= workers / 2;
    }
}

/* The sum over the group's members of f(rank) = (rank + 1)^2 + i. */
static double story_sum(int g, int32_t workers, int64_t i) {
    double sum = 0;
    for (int32_t r = 0; r < workers; r++)
        if (story_has(g, r, workers)) sum += (double)((r + 1) * (r + 1)) + (double)i;
    return sum;
}

static void story_fill(double *buf, int64_t n, int32_t me) {
    for (int64_t i = 0; i < n; i++) buf[i] = (double)((me + 1) * (me + 1)) + (double)i;
}

static plait_status story_reduce(plait_comm *comm, plait_group *group, int g) {
    static const int64_t sizes[] = { 0, 1, 7, STORY_LONG };
    int32_t              me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    double              *buf = malloc(STORY_LONG * sizeof *buf);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s], first, count;
        for (int exact = 0; exact < 2; exact++) {
            story_fill(buf, n, me);
            STORY(plait_group_allreduce(group, buf, n, PLAIT_F64, exact ? PLAIT_SUM_EXACT : PLAIT_SUM) == PLAIT_OK);
            for (int64_t i = 0; i < n; i++) STORY(buf[i] == story_sum(g, workers, i));
        }
        story_fill(buf, n, me);
        STORY(plait_group_reduce_scatter(group, buf, n, PLAIT_F64, PLAIT_SUM) == PLAIT_OK);
        plait_group_slice(group, n, plait_group_rank(group), &first, &count);
        for (int64_t i = first; i < first + count; i++) STORY(buf[i] == story_sum(g, workers, i));
    }
    free(buf);
    return PLAIT_OK;
}

static plait_status story_gather(plait_comm *comm, plait_group *group) {
    int32_t  me = plait_comm_rank(comm), n = plait_group_size(group), all[64], root = n - 1, value = me;
    size_t   sizes[64];
    void    *pieces = NULL;
    char     mine[80];
    STORY(plait_group_barrier(group) == PLAIT_OK);
    STORY(plait_group_allgather(group, &me, sizeof me, all) == PLAIT_OK);
    for (int32_t i = 0; i < n; i++) STORY(all[i] == plait_group_member(group, i));
    STORY(plait_group_broadcast(group, &value, sizeof value, root) == PLAIT_OK);
    STORY(value == plait_group_member(group, root));
    memset(mine, 'a' + me % 20, sizeof mine);
    for (int begun = 0; begun < 2; begun++) {
        plait_request *request = NULL;
        if (begun) {
            STORY(plait_group_allgatherv_begin(group, mine, (size_t)me, sizes, &pieces, &request) == PLAIT_OK);
            STORY(plait_request_wait(&request) == PLAIT_OK);
        } else {
            STORY(plait_group_allgatherv(group, mine, (size_t)me, sizes, &pieces) == PLAIT_OK);
        }
        const char *at = pieces;
        for (int32_t i = 0; i < n; i++) {
            int32_t r = plait_group_member(group, i);
            STORY(sizes[i] == (size_t)r);
            for (int32_t b = 0; b < r; b++) STORY(*at++ == 'a' + r % 20);
        }
        plait_comm_free(pieces);
    }
    return PLAIT_OK;
}

/* All of the rank's groups at once, and all workers; waited for in the other order. */
static plait_status story_at_once(plait_comm *comm, plait_group **group) {
    enum { EACH = 3, ALL = STORY_GROUPS };
    int32_t        me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    double         buf[STORY_GROUPS + 1][EACH][5];
    plait_request *request[STORY_GROUPS + 1][EACH] = { { NULL } };
    for (int k = 0; k < EACH; k++)
        for (int g = 0; g <= ALL; g++) {
            if (g < ALL && !story_has(g, me, workers)) continue;
            story_fill(buf[g][k], 5, me + k);
            STORY((g < ALL ? plait_group_allreduce_begin(group[g], buf[g][k], 5, PLAIT_F64, PLAIT_SUM, &request[g][k])
                           : plait_comm_allreduce_begin(comm, buf[g][k], 5, PLAIT_F64, PLAIT_SUM, &request[g][k])) ==
                  PLAIT_OK);
        }
    for (int g = 0; g < ALL; g++)
        if (story_has(g, me, workers)) STORY(plait_group_destroy(&group[g]) == PLAIT_EINVAL && group[g] != NULL);
    for (int k = EACH - 1; k >= 0; k--)
        for (int g = ALL; g >= 0; g--) {
            if (request[g][k] == NULL) continue;
            STORY(plait_request_wait(&request[g][k]) == PLAIT_OK);
            double want = 0;
            for (int32_t r = 0; r < workers; r++)
                if (g == ALL || story_has(g, r, workers)) want += (double)((r + k + 1) * (r + k + 1)) + 4;
            STORY(buf[g][k][4] == want);
        }
    return PLAIT_OK;
}

/* Needs 2 to 64 workers. */
static inline plait_status group_story(plait_comm *comm) {
    int32_t      me = plait_comm_rank(comm), workers = plait_comm_workers(comm), list[64];
    plait_group *group[STORY_GROUPS];
    for (int g = 0; g < STORY_GROUPS; g++) {
        int32_t n = 0;
        for (int32_t r = workers - 1; r >= 0; r--) /* in any order */
            if (story_has(g, r, workers)) list[n++] = r;
        STORY(plait_group_create(comm, story_names[g], n, list, &group[g]) == PLAIT_OK);
        STORY(plait_group_size(group[g]) == n && plait_group_member(group[g], 0) == list[n - 1]);
        STORY(plait_group_member(group[g], n) == -1 && strcmp(plait_group_name(group[g]), story_names[g]) == 0);
        STORY((plait_group_rank(group[g]) >= 0) == story_has(g, me, workers));
        STORY(plait_group_rank(group[g]) < 0 || plait_group_member(group[g], plait_group_rank(group[g])) == me);
    }
    for (int g = 0; g < STORY_GROUPS; g++) {
        if (!story_has(g, me, workers)) {
            STORY(plait_group_barrier(group[g]) == PLAIT_EREFUSED);
            STORY(strstr(plait_comm_error(comm)->text, story_names[g]) != NULL);
            continue;
        }
        PLI_TRY(story_reduce(comm, group[g], g));
        PLI_TRY(story_gather(comm, group[g]));
    }
    PLI_TRY(story_at_once(comm, group));
    STORY(plait_comm_barrier(comm) == PLAIT_OK);
    for (int g = 0; g < STORY_GROUPS; g++) STORY(plait_group_destroy(&group[g]) == PLAIT_OK && group[g] == NULL);
    return PLAIT_OK;
}

#endif
