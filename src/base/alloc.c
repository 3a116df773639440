/* base/alloc.c - one door for all memory.
 *
 * Two ideas. First, the size of a request is checked where it is computed: count * bytes is multiplied with an overflow
 * test, so that a hostile header cannot ask for 2^64 + 8 bytes and be given 8. Second, since all requests pass here, a
 * test can let the k-th of them fail and see that its caller leaves nothing behind; running a call for k = 0, 1, 2, ...
 * until it succeeds walks through every error path that memory can cause. SQLite made this method known
 * (www.sqlite.org/malloc.html).
 *
 * The arena does the opposite: things that die together are taken together and freed at once (Hanson, "Fast
 * Allocation and Deallocation of Memory Based on Object Lifetimes", 1990). */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_BYTES  ((size_t)64)
#define HUGE_BYTES  ((size_t)2 << 20) /* a huge page of x86-64 and of most 64-bit ARM */
#define LARGE_BYTES (2 * HUGE_BYTES)

#ifdef PLI_TESTING
#include <stdatomic.h>

/* Both only count; no other memory is published through them. So they are relaxed and have no pair. */
static _Atomic int64_t fail_after = -1;
static _Atomic int64_t live;

static bool must_fail(void) {
    if (atomic_load_explicit(&fail_after, memory_order_relaxed) < 0) return false;
    return atomic_fetch_sub_explicit(&fail_after, 1, memory_order_relaxed) == 0;
}

static void *born(void *memory) {
    if (memory != NULL) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return memory;
}

static void died(const void *memory) {
    if (memory != NULL) atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
}

void    pli_alloc_fail_after(int64_t k) { atomic_store_explicit(&fail_after, k, memory_order_relaxed); }
int64_t pli_alloc_live(void) { return atomic_load_explicit(&live, memory_order_relaxed); }
#else
static bool  must_fail(void) { return false; }
static void *born(void *memory) { return memory; }
static void  died(const void *memory) { (void)memory; }

void    pli_alloc_fail_after(int64_t k) { (void)k; }
int64_t pli_alloc_live(void) { return 0; }
#endif

/* malloc may answer NULL to 0 bytes, which would look like a failure. */
static size_t at_least_one(size_t bytes) { return bytes > 0 ? bytes : 1; }

void *pli_malloc(size_t bytes) { return must_fail() ? NULL : born(malloc(at_least_one(bytes))); }

/* With 4 KiB pages, each random access to a large table costs a walk of the page table, and first touches cost five
 * times as much. Large blocks therefore ask for huge pages; the system may refuse. */
static void wish_huge_pages(void *memory, size_t bytes) {
    uintptr_t begin = ((uintptr_t)memory + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)memory + bytes) & ~(HUGE_BYTES - 1);
    if (memory != NULL && end > begin) (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

/* The system gives large blocks already zeroed, so they are not touched here. */
void *pli_calloc(size_t count, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total) || must_fail()) return NULL;
    void *memory = calloc(at_least_one(total), 1);
    if (total >= LARGE_BYTES) wish_huge_pages(memory, total);
    return born(memory);
}

void *pli_array(size_t count, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) return NULL;
    return pli_malloc(total);
}

void *pli_realloc(void *memory, size_t count, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total) || must_fail()) return NULL;
    void *moved = realloc(memory, at_least_one(total));
    return memory == NULL ? born(moved) : moved;
}

void *pli_aligned(size_t bytes) {
    if (bytes > SIZE_MAX / 2 || must_fail()) return NULL;
    size_t align = bytes >= LARGE_BYTES ? HUGE_BYTES : LINE_BYTES;
    size_t rounded = (at_least_one(bytes) + LINE_BYTES - 1) & ~(LINE_BYTES - 1);
    void  *memory = NULL;
    if (posix_memalign(&memory, align, rounded) != 0) return NULL;
    if (bytes >= LARGE_BYTES) wish_huge_pages(memory, rounded);
    return born(memory);
}

char *pli_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char  *copy = pli_malloc(bytes);
    if (copy != NULL) memcpy(copy, text, bytes);
    return copy;
}

char *pli_format(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int length = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = length < 0 ? NULL : pli_malloc((size_t)length + 1);
    if (text == NULL) return NULL;
    va_start(ap, fmt);
    vsnprintf(text, (size_t)length + 1, fmt, ap);
    va_end(ap);
    return text;
}

void pli_free(void *memory) {
    died(memory);
    free(memory);
}

bool pli_grow(void **array, int64_t *capacity, int64_t need, size_t bytes) {
    if (need <= *capacity) return true;
    int64_t doubled = *capacity > INT64_MAX / 2 ? INT64_MAX : 2 * *capacity;
    int64_t want = need > doubled ? need : doubled;
    if (want < 8) want = 8;
    void *moved = pli_realloc(*array, (size_t)want, bytes);
    if (moved == NULL) return false;
    *array = moved;
    *capacity = want;
    return true;
}

/* --- arena ------------------------------------------------------------------------------------------- */

struct pli_arena_chunk {
    struct pli_arena_chunk *older;
    size_t                  used, size; /* bytes after the header, which fills the first line */
};
_Static_assert(sizeof(struct pli_arena_chunk) <= 64, "the header of a chunk is one cache line");

void pli_arena_init(pli_arena *arena, size_t chunk_bytes) {
    *arena = (pli_arena){ .chunk = NULL, .chunk_bytes = chunk_bytes };
}

static struct pli_arena_chunk *add_chunk(pli_arena *arena, size_t bytes) {
    size_t                  size = bytes > arena->chunk_bytes ? bytes : arena->chunk_bytes;
    struct pli_arena_chunk *chunk = size > SIZE_MAX / 4 ? NULL : pli_aligned(LINE_BYTES + size);
    if (chunk == NULL) return NULL;
    *chunk = (struct pli_arena_chunk){ .older = arena->chunk, .used = 0, .size = size };
    return arena->chunk = chunk;
}

void *pli_arena_take(pli_arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 4) return NULL;
    size_t                  rounded = (at_least_one(bytes) + LINE_BYTES - 1) & ~(LINE_BYTES - 1);
    struct pli_arena_chunk *chunk = arena->chunk;
    if (chunk == NULL || chunk->size - chunk->used < rounded) chunk = add_chunk(arena, rounded);
    if (chunk == NULL) return NULL;
    unsigned char *at = (unsigned char *)chunk + LINE_BYTES + chunk->used;
    chunk->used += rounded;
    return at;
}

void pli_arena_destroy(pli_arena *arena) {
    while (arena->chunk != NULL) {
        struct pli_arena_chunk *older = arena->chunk->older;
        pli_free(arena->chunk);
        arena->chunk = older;
    }
}
