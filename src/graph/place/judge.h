/* graph/place/judge.h - the scratch memory of a judge, and what its two orders share.
 *
 *     simulate.c  events, links, and the order of whatever is ready
 *     follow.c    the order of a pipeline's schedule */
#ifndef PLI_GRAPH_PLACE_JUDGE_H
#define PLI_GRAPH_PLACE_JUDGE_H

#include "graph/pipeline.h"
#include "graph/place/place.h"

typedef struct pli_place_event {
    double  at;
    int32_t task, value, rank; /* value < 0: what a rank did ends, or one of the kinds of follow.c */
    int32_t number;            /* decides between equal times */
} pli_place_event;

typedef struct pli_place_heap {
    int32_t *task;
    int32_t  n;
} pli_place_heap;

/* One thing that a part does for a micro-batch, in the order of its plan. */
typedef enum pli_place_kind { PLI_PLACE_COMPUTES, PLI_PLACE_SENDS, PLI_PLACE_TAKES } pli_place_kind;
typedef struct pli_place_item {
    pli_place_kind kind;
    int32_t        index; /* of the node, or of the way */
} pli_place_item;

/* The way of a value from the part that makes it to one that reads it. */
typedef struct pli_place_way {
    int32_t value, from, to;
    int32_t under_way; /* micro-batches of it that were sent and not taken */
} pli_place_way;

/* Where a rank is in its schedule. */
typedef struct pli_place_turn {
    pli_pipeline      schedule;
    pli_pipeline_work work;
    int32_t           at, end; /* items of the piece that it works on */
    bool              begun, done;
} pli_place_turn;

struct pli_judge {
    const pli_placing *load;
    pli_place_event   *event; /* a heap */
    int64_t            events;
    int32_t            numbers;
    bool              *busy;                          /* [ranks] */
    double            *sends, *takes, *worked, *sent; /* [ranks] */
    pli_memory_scratch memory;
    /* in the order of what is ready */
    int32_t        *waits; /* [tasks] */
    pli_place_heap *ready; /* [ranks] */
    /* in the order of a schedule */
    int32_t        *begin; /* [2 parts + 1] items of a part forward, and backward */
    int32_t        *stamp; /* [parts] */
    pli_place_item *item;
    pli_place_way  *way;
    bool           *there; /* [micro-batches, ways] has the value come? */
    pli_place_turn *turn;  /* [ranks] */
    int32_t         ways;
    int32_t         back; /* forward edges that lead to an earlier part */
};

void            pli_judge_push(pli_judge *judge, pli_place_event event);
pli_place_event pli_judge_pop(pli_judge *judge);
/** Sends a value over the link of two ranks from `start` on; returns when its last byte is there. */
double pli_judge_carry(pli_judge *judge, int32_t value, int32_t from, int32_t to, double start);

/** follow.c. Takes what it needs from load's arena; false: no memory. */
bool pli_follow_make(pli_judge *judge, pli_placing *load);
/** Seconds of a step in the order of the schedule; sets back. */
double pli_follow_step(pli_judge *judge, const int32_t *part);

#endif
