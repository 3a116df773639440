/* Answers to users' questions: which ranks wait here, and what each rank of the whole job waits for. */
#include "comm/rounds_impl.h"

#include <stdio.h>
#include <string.h>

/* Looks at all ranks; those of other processes count if they answer within timeout_ns. Any thread, also while rounds
 * go on, which use the same mail. */
static void look_at_all(pli_world *world, uint64_t timeout_ns, pli_look *looks) {
    pli_doctor *d = world->doctor;
    uint64_t    number = 0, until_ns = pli_world_now(world) + timeout_ns;
    for (int32_t i = 0; i < world->place.count; i++)
        pli_doctor_look_at(&world->local[i], pli_world_now(world), &looks[world->place.first + i]);
    if (d->mail == NULL) return;
    pthread_mutex_lock(&d->mail_lock);
    number = ++d->rounds;
    for (int32_t r = 0; r < world->size; r++)
        if (!pli_world_is_local(world, r) && !pli_world_has_ended(world, r)) pli_doctor_ask(world, r, number, false);
    pthread_mutex_unlock(&d->mail_lock);
    for (bool missing = true; missing;) {
        uint32_t came = atomic_load(&d->came);
        missing = false;
        pthread_mutex_lock(&d->mail_lock);
        for (int32_t r = 0; r < world->size; r++) {
            if (pli_world_is_local(world, r)) continue;
            if (pli_world_has_ended(world, r)) looks[r] = (pli_look){ .state = PLI_LOOK_ENDED };
            else if (d->mail[r].round >= number) looks[r] = d->mail[r].look;
            else missing = true;
        }
        pthread_mutex_unlock(&d->mail_lock);
        uint64_t now_ns = pli_world_now(world);
        if (missing && now_ns >= until_ns) return;
        if (missing) pli_futex_wait(&d->came, came, until_ns - now_ns);
    }
}

static int32_t add_line(char *text, size_t bytes, size_t *at, const char *line) {
    int n = *at < bytes ? snprintf(text + *at, bytes - *at, "%s\n", line) : 0;
    *at += (size_t)n;
    return 1;
}

int32_t plait_comm_waits(const plait_comm *comm, char *text, size_t bytes) {
    if (comm == NULL || (text == NULL && bytes > 0)) return 0;
    pli_world *world = comm->world;
    int32_t    lines = 0;
    size_t     at = 0;
    if (bytes > 0) text[0] = '\0';
    for (int32_t i = 0; i < world->place.count; i++) {
        pli_look look;
        char     line[560];
        pli_doctor_look_at(&world->local[i], pli_world_now(world), &look);
        if (look.what[0] == '\0') continue;
        pli_doctor_tell(&look, world->local[i].rank, line, sizeof line);
        lines += add_line(text, bytes, &at, line);
    }
    return lines;
}

int32_t plait_comm_doctor(const plait_comm *comm, uint64_t timeout_ns, char *text, size_t bytes) {
    if (comm == NULL || (text == NULL && bytes > 0)) return 0;
    pli_world *world = comm->world;
    pli_look  *looks = pli_calloc((size_t)world->size, sizeof *looks);
    int32_t    lines = 0;
    size_t     at = 0;
    if (bytes > 0) text[0] = '\0';
    if (looks == NULL) return 0;
    look_at_all(world, timeout_ns, looks);
    for (int32_t r = 0; r < world->size; r++) {
        char line[560];
        pli_doctor_tell(&looks[r], r, line, sizeof line);
        lines += add_line(text, bytes, &at, line);
    }
    pli_free(looks);
    return lines;
}
