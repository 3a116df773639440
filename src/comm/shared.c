/* Memory that all ranks of a process share, found by name; and what a rank leaves to the others. */
#include <string.h>

#include "comm/shared.h"
#include "comm/world.h"

struct pli_shared {
    struct pli_shared *next;
    char              *name;
    void              *memory;
    size_t             bytes;
    int32_t            refs;
    void             (*release)(void *memory); /* NULL: pli_free */
};

static void free_one(struct pli_shared *shared) {
    if (shared->release != NULL) shared->release(shared->memory);
    else pli_free(shared->memory);
    pli_free(shared->name);
    pli_free(shared);
}

static struct pli_shared *make(const char *name, size_t bytes) {
    struct pli_shared *shared = pli_calloc(1, sizeof *shared);
    if (shared == NULL) return NULL;
    shared->name = pli_strdup(name);
    shared->memory = pli_aligned(bytes);
    shared->bytes = bytes;
    if (shared->name == NULL || shared->memory == NULL) {
        free_one(shared);
        return NULL;
    }
    memset(shared->memory, 0, bytes);
    return shared;
}

void *pli_comm_shared(plait_comm *comm, const char *name, size_t bytes) {
    pli_world *world = comm->world;
    if (!pli_comm_shares_process(comm)) return NULL;
    pthread_mutex_lock(&world->lock);
    struct pli_shared *shared = world->shared;
    while (shared != NULL && (shared->name == NULL || strcmp(shared->name, name) != 0)) shared = shared->next;
    if (shared == NULL && (shared = make(name, bytes)) != NULL) {
        shared->next = world->shared;
        world->shared = shared;
    }
    if (shared != NULL && shared->bytes != bytes) shared = NULL;
    if (shared != NULL) shared->refs++;
    pthread_mutex_unlock(&world->lock);
    return shared != NULL ? shared->memory : NULL;
}

void pli_comm_shared_release(plait_comm *comm, void *memory) {
    pli_world *world = comm->world;
    if (memory == NULL) return;
    pthread_mutex_lock(&world->lock);
    for (struct pli_shared **at = &world->shared; *at != NULL; at = &(*at)->next) {
        struct pli_shared *shared = *at;
        if (shared->memory != memory) continue;
        if (--shared->refs == 0) {
            *at = shared->next;
            free_one(shared);
        }
        break;
    }
    pthread_mutex_unlock(&world->lock);
}

bool pli_comm_leave_behind(plait_comm *comm, void *state, void (*release)(void *state)) {
    pli_world         *world = comm->world;
    struct pli_shared *shared = pli_calloc(1, sizeof *shared);
    if (shared == NULL) return false;
    shared->memory = state;
    shared->release = release;
    pthread_mutex_lock(&world->lock);
    shared->next = world->shared;
    world->shared = shared;
    pthread_mutex_unlock(&world->lock);
    return true;
}

void pli_shared_free_all(pli_world *world) {
    for (struct pli_shared *shared = world->shared, *next; shared != NULL; shared = next) {
        next = shared->next;
        free_one(shared);
    }
    world->shared = NULL;
}
