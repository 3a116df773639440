/* A schedule of replicas from its first event to its verdict. See replicas_world.h. */
#include "table/replicas_world.h"

bool    audit_judges;
jmp_buf gave_up;

/* In one of four schedules the workers pause after each death, until all replicas are made again: they need nobody for
 * that. */
static void await_replicas(world *w, int32_t *known) {
    int32_t dead = 0;
    bool    is_over = false;
    for (int32_t r = 0; r < w->ranks; r++) dead += w->dead[r];
    for (int32_t k = 0; k < w->workers; k++)
        is_over = is_over || w->worker[k].state == LEAVING || w->worker[k].state == DONE;
    if (dead == *known || w->seed % 4 != 1 || w->suspects || is_over) return;
    *known = dead;
    if (!direct_run_until(w->d, all_are_made, w, 200000)) tell(w);
    SURE(w, all_are_made(w));
}

/* false: the job has ended before its time, as it may */
static bool play(world *w) {
    int32_t known = 0;
    for (int64_t turn = 0; turn < 2000000; turn++) {
        int32_t over = 0;
        await_replicas(w, &known);
        if (w->dies && direct_events(w->d) >= w->death_at) kill_rank(w, w->victim, w->suspects);
        if (w->dies && w->fellow >= 0 && w->dead[w->victim] && direct_events(w->d) >= w->fellow_at) kill_fellow(w);
        if (w->dies && w->dies_again && w->dead[w->victim]) kill_another(w);
        if (w->revives) revive_some(w);
        if (w->dies && w->second_at >= 0 && direct_events(w->d) >= w->second_at &&
            (!holds(w, w->second) || may_die(w, w->second)))
            kill_rank(w, w->second, w->suspects);
        for (int32_t k = 0; k < w->workers; k++)
            over += w->worker[k].state == DONE || w->worker[k].state == DEAD || w->zombie[k];
        if (over == w->workers) return true;
        int32_t first = (int32_t)pick(w, (uint64_t)w->workers);
        bool    moved = false;
        if (pick(w, 2) == 0) moved = step_worker(w, first);
        if (!moved && direct_step(w->d)) moved = true;
        for (int32_t i = 0; !moved && i < w->workers; i++) moved = step_worker(w, (first + i) % w->workers);
        for (int32_t r = 0; r < w->ranks; r++) {
            if (is_dead(w, r) || direct_error(w->d, r)->code == 0) continue;
            tell(w);
            fail_msg("rank %d: %s\nreplay: PLAIT_SEED=%llu", r, direct_error(w->d, r)->text,
                     (unsigned long long)w->seed);
        }
        if (moved) continue;
        tell(w);
        fail_msg("all wait\nreplay: PLAIT_SEED=%llu %s", (unsigned long long)w->seed, program_invocation_name);
    }
    tell(w);
    fail_msg("no end\nreplay: PLAIT_SEED=%llu %s", (unsigned long long)w->seed, program_invocation_name);
    return false;
}

void run_schedule(world *w, uint64_t seed, int32_t replicas, bool lives, way how) {
    if (setjmp(gave_up) != 0) {
        witness_judge(&w->witness, false, w->seed, audit_judges);
        return;
    }
    open_world(w, seed, replicas, lives, how);
    w->revives = how == RETURNING && w->layout.slots > 0;
    const bool ends = play(w);
    if (ends) compare_copies(w);
    witness_judge(&w->witness, ends, w->seed, audit_judges);
    close_world(w);
}
