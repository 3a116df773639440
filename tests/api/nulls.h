/* NULL for each argument of every public function: what the cases share. A case calls its function once, with NULL
 * for argument number `arg` (from 0 on) and right values for the others; arg -1: all arguments are right. */
#ifndef TESTS_API_NULLS_H
#define TESTS_API_NULLS_H

#include <plait/arrow.h>
#include <plait/checkpoint.h>
#include <plait/events.h>
#include <plait/fit.h>
#include <plait/graph_file.h>
#include <plait/group.h>
#include <plait/memory.h>
#include <plait/model.h>
#include <plait/nn.h>
#include <plait/place.h>
#include <plait/schedule.h>
#include <plait/session.h>
#include <plait/table_store.h>
#include <plait/vertex.h>

/* The answer of a call that returns no status: the neutral value of plait/status.h, or another value. */
enum { NEUTRAL = 1000, OTHER = 1001 };

/* What cases call with: one worker in a job. */
typedef struct fixture {
    const char       *dir; /* for files; it contains the model "model", the graph "graph.json" and the checkpoint
                            * "ckpt" */
    char              model_path[512], graph_path[512], ckpt[512], out_path[512];
    plait_error       err;
    plait_comm       *comm;
    plait_job        *job;
    plait_table      *table;
    plait_data       *data;
    plait_model      *model;
    plait_graph      *graph, *fresh; /* fresh: made anew for a case that builds */
    plait_value       x, v, y;       /* of graph: a placeholder, a variable, x + v */
    plait_session    *session;
    plait_table_store *store;
    plait_checkpoint *checkpoint;
    plait_request    *request;
} fixture;

typedef struct null_case {
    const char *function; /* without "plait_" */
    int (*call)(fixture *f, int arg);
    const char *may; /* the arguments that may be NULL according to the function's comment: "opts log"; besides
                      * error_out and user */
} null_case;

/** The cases of each header; a case without a function ends the list. */
extern const null_case comm_cases[], table_cases[], graph_cases[], channel_cases[], learn_cases[], learner_cases[],
    schedule_cases[], vertex_cases[], sized_cases[];

/** The k-th argument: NULL in the turn of argument k. */
#define N(k, value) (arg == (k) ? NULL : (value))
#define NEUTRAL_IF(condition) ((condition) ? NEUTRAL : OTHER)

/** fresh_graph: an empty graph. built: the answer of a call that builds, its failure or OK. */
plait_graph *fresh_graph(fixture *f);
int          built(fixture *f, plait_value value);

/** Makes all objects, calls body with them, and destroys them. */
plait_status with_fixture(const char *dir, void (*body)(fixture *f, void *user), void *user, plait_error *err);

/* --- what the headers declare ------------------------------------------------------------------------------ */

typedef struct declared {
    char    function[64]; /* without "plait_" */
    int32_t n_args;
    struct {
        char name[32];
        int  pointer;
    } arg[24];
} declared;

/** All PLAIT_API functions of include/plait: [n], freed by the caller. NULL: the headers could not be read. */
declared *read_headers(const char *folder, int32_t *n_out);

#endif
