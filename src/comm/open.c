/* plait_comm_open and plait_comm_close: a run without a body, for a program whose language or main loop owns the
 * thread. The rank is the calling thread itself; nothing else of comm knows the difference. run.c has the parts. */
#include "comm/callback.h"
#include "comm/world.h"

/* Ends the only rank here, and the run in this process; result: that of the rank's work. */
static plait_status end(plait_comm *comm, plait_status result, plait_error *err) {
    pli_world *world = comm->world;
    pli_world_finish_rank(comm, result);
    const bool   all_ended = world->place.count == world->size || pli_world_await(world);
    plait_status status = pli_world_finish(world, PLAIT_OK, all_ended, err);
    pli_world_free(&world);
    return status;
}

plait_status plait_comm_open(const plait_comm_opts *opts, plait_comm **comm_out, plait_error *err) {
    plait_error own;
    pli_world  *world = NULL;
    if (err == NULL) err = &own;
    *err = (plait_error){ .rank = -1 };
    PLI_TRY(pli_callback_refuses(__func__));
    PLI_TRY(PLI_GIVEN(err, comm_out));
    PLI_TRY(pli_world_open(opts, true, &world, err));
    plait_status status = pli_world_start(world, err);
    if (status < 0) {
        status = pli_world_finish(world, status, true, err);
        pli_world_free(&world);
        return status;
    }
    plait_comm *comm = &world->local[0];
    status = pli_world_begin_rank(comm);
    if (status < 0) return end(comm, status, err);
    *comm_out = comm;
    return PLAIT_OK;
}

plait_status plait_comm_close(plait_comm **comm_ptr, plait_status result, plait_error *err) {
    plait_comm *comm = comm_ptr == NULL ? NULL : *comm_ptr;
    plait_error own;
    if (err == NULL) err = &own;
    *err = (plait_error){ .rank = -1 };
    if (comm == NULL) return PLAIT_OK;
    PLI_TRY(pli_callback_refuses(__func__));
    if (comm->world->body != NULL)
        return pli_fail(err, PLAIT_EINVAL, "plait_comm_close: rank %d runs in plait_comm_run, which ends it when its "
                                           "body returns", comm->rank);
    *comm_ptr = NULL;
    return end(comm, result, err);
}
