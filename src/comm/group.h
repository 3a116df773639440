/* comm/group.h - groups inside the library: how their members are numbered, and what each rank keeps of them.
 *
 * A machine of a group is the same machine that serves all workers: a collective of 3 members is the collective of a
 * run of 3 workers. So no machine knows of groups. Each group has ports of its own (comm/comm.h), and a port translates
 * between ranks and the group's numbers: its members are 0 .. n - 1 in order of rank, and the run's servers follow. */
#ifndef PLI_COMM_GROUP_H
#define PLI_COMM_GROUP_H

#include <plait/group.h>

#include "comm/collective.h"
#include "comm/comm.h"
#include "comm/hosts.h"

enum { PLI_GROUP_NAME = 48 };

typedef struct pli_numbers {
    int32_t  members, count; /* count: with the servers */
    int32_t *rank;           /* [count] ascending */
} pli_numbers;

struct plait_group {
    plait_group   *next; /* the rank's list */
    plait_comm    *comm;
    uint32_t       id;   /* 1, 2, ... the same on all ranks */
    int32_t        me;   /* the rank's number; -1: no member */
    int32_t        uses; /* calls under way, and tables: the rank's thread only */
    bool           ended; /* destroyed; kept until the run ends, since its messages may have to be sent again */
    pli_numbers    numbers;
    pli_hosts      hosts; /* of the members */
    uint64_t       begun; /* calls so far   */
    pli_collective collective;
    struct pli_port *port; /* NULL: no member */
    pli_carriage   carriage; /* of its collectives, while tables of it have two replicas; by the members' numbers */
    char           name[PLI_GROUP_NAME];
};

/** The rank with this number; -1: there is none. numbers NULL: ranks are numbered as the run numbers them. */
static inline int32_t pli_numbers_rank(const pli_numbers *numbers, int32_t number) {
    if (numbers == NULL) return number;
    return number >= 0 && number < numbers->count ? numbers->rank[number] : -1;
}
/** The number of this rank; -1: it has none. */
int32_t pli_numbers_of(const pli_numbers *numbers, int32_t rank);
/** workers [n]: ascending. false: out of memory. */
bool    pli_numbers_make(int32_t n, const int32_t *workers, int32_t first_server, int32_t servers,
                         pli_numbers *numbers_out);

/* group NULL: all workers. */
static inline const pli_numbers *pli_group_numbers(const plait_group *group) {
    return group == NULL ? NULL : &group->numbers;
}
static inline uint32_t pli_group_id(const plait_group *group) { return group == NULL ? 0 : group->id; }

/** From now on the group's collectives are carried (comm/carried.h) and go on when a member dies; else they end with
 *  EPEER. All members call this between the same two collectives of the group; the same holds for its end. The rank's
 *  own thread. Errors: ENOMEM. */
plait_status pli_group_carry(plait_group *group, const pli_carrier *carrier, plait_error *err);
void         pli_group_carry_no_more(plait_group *group);
/** A byte for each member, the same on all members: [members] 1: it is absent; NULL: no collective was carried. */
static inline const uint8_t *pli_group_absentees(const plait_group *group) { return group->carriage.absent; }

/** Frees all groups of a rank whose ports are closed. */
void pli_groups_free(plait_comm *comm);

#endif
