/* Runs a fuzz target without libFuzzer: every file of a corpus folder as it is, then seeded mutations of each, so
 * that the ordinary test suite (and its sanitizers) meets broken input with any compiler.
 *
 *   fuzz_NAME CORPUS [MUTATIONS]      MUTATIONS of each file, 200 unless given */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILE_MAX ((size_t)1 << 20)

static uint64_t next_random(uint64_t *state) {             /* splitmix64 */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The target gets a block of exactly size bytes, so that a sanitizer sees a read beyond it. */
static void run_once(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) abort();
    if (size > 0) memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t mutate(uint8_t *data, size_t size, uint64_t *state) {
    static const char odd[] = "\0\n\r\t :,-+.eE0915naif\"'#\xff\x80{}[]";
    int64_t edits = 1 + (int64_t)(next_random(state) % 4);
    for (int64_t i = 0; i < edits && size > 0; i++) {
        size_t at = next_random(state) % size;
        size_t span = 1 + next_random(state) % 8;
        if (span > size - at) span = size - at;
        switch (next_random(state) % 5) {
        case 0: data[at] ^= (uint8_t)(1u << (next_random(state) % 8)); break;
        case 1: data[at] = (uint8_t)odd[next_random(state) % (sizeof odd - 1)]; break;
        case 2: size = at; break;                          /* cut short */
        case 3:                                            /* a piece is lost */
            memmove(data + at, data + at + span, size - at - span);
            size -= span;
            break;
        default:                                           /* a piece is doubled */
            if (size + span > FILE_MAX) break;
            memmove(data + at + span, data + at, size - at);
            size += span;
            break;
        }
    }
    return size;
}

static int64_t run_file(const char *path, int64_t mutations, uint8_t *data, uint8_t *work) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t size = fread(data, 1, FILE_MAX, file);
    fclose(file);
    run_once(data, size);
    uint64_t state = size;
    for (int64_t i = 0; i < mutations; i++) {
        memcpy(work, data, size);
        size_t changed = mutate(work, size, &state);
        run_once(work, changed);
    }
    return 1 + mutations;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s CORPUS [MUTATIONS]\n", argv[0]);
        return 2;
    }
    int64_t mutations = argc > 2 ? strtoll(argv[2], NULL, 10) : 200;
    uint8_t *data = malloc(FILE_MAX), *work = malloc(FILE_MAX);
    if (data == NULL || work == NULL) return 1;
    struct dirent **names = NULL;
    int count = scandir(argv[1], &names, NULL, alphasort);
    if (count < 0) {
        fprintf(stderr, "%s: a fuzzer needs a corpus of at least one file\n", argv[1]);
        return 1;
    }
    int64_t files = 0, inputs = 1;
    run_once(data, 0);
    for (int i = 0; i < count; i++) {
        char path[4096];
        if (names[i]->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", argv[1], names[i]->d_name);
            inputs += run_file(path, mutations, data, work);
            files++;
        }
        free(names[i]);
    }
    free(names);
    free(data);
    free(work);
    printf("%lld files, %lld inputs\n", (long long)files, (long long)inputs);
    return files > 0 ? 0 : 1;
}
