/* base/alloc.h - memory: checked sizes, allocation that tests can make fail, arenas by lifetime. */
#ifndef PLI_BASE_ALLOC_H
#define PLI_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All memory of the library comes from these calls, so that a test can make the n-th allocation fail
 * (pli_alloc_fail_after). Multiplications are checked; 0 bytes give a valid pointer. NULL: out of memory. */
void *pli_malloc(size_t bytes);
void *pli_calloc(size_t count, size_t bytes);               /* zeroed                                  */
void *pli_array(size_t count, size_t bytes);                /* not zeroed, count * bytes checked       */
void *pli_realloc(void *memory, size_t count, size_t bytes); /* memory stays valid when NULL is returned */
void *pli_aligned(size_t bytes);                            /* 64-byte aligned, not zeroed; pli_free   */
char *pli_strdup(const char *text);
char *pli_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void  pli_free(void *memory); /* NULL is fine */

/** Grows *array, which has *capacity elements of `bytes`, by doubling until it holds at least `need`. false: out of
 *  memory, and *array is unchanged. */
bool pli_grow(void **array, int64_t *capacity, int64_t need, size_t bytes);

/* For tests. pli_alloc_fail_after(k) makes the k-th allocation from now fail (0: the next), and only that one; -1:
 * none fails. pli_alloc_live counts the blocks not yet freed. Both work where PLI_TESTING is defined (every preset
 * but release); elsewhere nothing fails and the count is 0. The counters are process-wide atomics. */
void    pli_alloc_fail_after(int64_t k);
int64_t pli_alloc_live(void);

/* A bump allocator: everything taken from it dies at once with destroy. Memory is 64-byte aligned. Not thread-safe. */
typedef struct pli_arena {
    struct pli_arena_chunk *chunk; /* newest first */
    size_t                  chunk_bytes;
} pli_arena;
void  pli_arena_init(pli_arena *arena, size_t chunk_bytes);
void *pli_arena_take(pli_arena *arena, size_t bytes); /* NULL: out of memory */
void  pli_arena_destroy(pli_arena *arena);

#endif
