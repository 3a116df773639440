/* named.h - what tests of vertex programs share: a built-in program by its name, values that are doubles by their bits,
 * the settings of a run. Needs cmocka.h before. */
#ifndef PLI_TESTS_VERTEX_NAMED_H
#define PLI_TESTS_VERTEX_NAMED_H

#include <string.h>

#include "vertex/vertex.h"

static inline double double_of(int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** The program of this name, as far as it is a gather and an apply. choice is lent. */
static inline void make(const char *name, const pli_vertex_choice *choice, plait_vertex_program *program) {
    plait_error             err;
    const pli_vertex_named *named = pli_vertex_find(name, &err);
    assert_non_null(named);
    plait_vertex_program_init(program);
    program->name = name;
    program->user = (void *)choice;
    if (named->make != NULL) assert_int_equal(named->make(choice, program, &err), PLAIT_OK);
}

typedef struct setting {
    const char *topology, *consistency, *cut;
    int32_t     workers;
} setting;

static inline void options_of(const setting *s, plait_comm_opts *comm, plait_job_opts *job) {
    plait_comm_opts_init(comm);
    plait_job_opts_init(job);
    comm->workers = s->workers;
    comm->threads = 2;
    job->topology = s->topology;
    job->consistency = s->consistency;
}

#endif
