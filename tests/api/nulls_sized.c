/* NULL for the calls that fill option structs of a given size. */
#include "api/nulls.h"

#define SIZED(X)                                                                                                       \
    X(comm_opts) X(job_opts) X(table_opts) X(data_opts) X(train_opts) X(place_opts) X(schedule_opts)                   \
    X(graph_file_opts) X(table_store_opts) X(session_opts) X(checkpoint_opts) X(cut) X(memory_opts)             \
    X(arrow_opts) X(edges_opts) X(vertex_program) X(vertex_opts)

#define CALL(name)                                                                                                     \
    static int name(fixture *f, int arg) {                                                                             \
        plait_##name opts;                                                                                             \
        (void)f;                                                                                                       \
        plait_##name##_init_sized(N(0, &opts), sizeof opts);                                                           \
        return NEUTRAL;                                                                                                \
    }
SIZED(CALL)

#define CASE(name) { #name "_init_sized", name, NULL },
const null_case sized_cases[] = { SIZED(CASE) { NULL, NULL, NULL } };
