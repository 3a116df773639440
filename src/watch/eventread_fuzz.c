/* An event log of any content gives an error or a verdict, and no access outside the file. The input is frames of a
 * byte (rank, side, group), two bytes of length, and records. This program adds the head, checksums and end of a file,
 * because a fuzzer would not find them by chance. First byte: 1: the input is used as it is, 2: the end is left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "watch/audit/audit.h"
#include "watch/audit/scopes.h"
#include "watch/eventcode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_u32(pli_text *file, uint64_t x) {
    const unsigned char bytes[4] = { (unsigned char)x, (unsigned char)(x >> 8), (unsigned char)(x >> 16),
                                     (unsigned char)(x >> 24) };
    pli_text_add_bytes(file, bytes, 4);
}

static void add_chunk(pli_text *file, char tag, unsigned side, unsigned group, unsigned rank, const void *records,
                      size_t bytes) {
    const char head[4] = { tag, (char)side, (char)group };
    size_t     at = file->length;
    pli_text_add_bytes(file, head, 4);
    add_u32(file, rank);
    add_u32(file, bytes);
    add_u32(file, file->failed ? 0 : pli_log_checksum((unsigned char *)file->data + at, records, bytes));
    pli_text_add_bytes(file, records, bytes);
}

static void make_file(const uint8_t *data, size_t size, bool whole, pli_text *file) {
    uint64_t chunks = 0;
    pli_text_add_bytes(file, "plaitlog", 8);
    add_u32(file, PLI_EVENTLOG_VERSION);
    add_u32(file, 0);
    pli_text_add_bytes(file, "fuzz            ", PLI_LOG_HEAD_BYTES - 16);
    for (; size >= 3; chunks++) {
        size_t bytes = (size_t)data[1] | (size_t)data[2] << 8;
        if (bytes > size - 3) bytes = size - 3;
        add_chunk(file, 'R', (data[0] >> 3 & 3) % PLI_SIDES, data[0] >> 5, data[0] & 7, data + 3, bytes);
        data += 3 + bytes;
        size -= 3 + bytes;
    }
    if (whole) add_chunk(file, 'E', 0, 0, 0, &chunks, sizeof chunks);
}

static void judge(const char *path) {
    pli_logfile *log = NULL;
    pli_audit   *audit = NULL;
    pli_text     text = { 0 };
    if (pli_logfile_open(&path, 1, &log, NULL) >= 0 && pli_audit_run(log, NULL, &audit, NULL) >= 0) {
        pli_audit_text(audit, &text);
        pli_audit_json(audit, &text);
    }
    pli_scopes_proof proof;
    if (log != NULL && pli_scopes_prove(log, NULL, &proof, NULL) >= 0) {
        pli_scopes_text(&proof, &text);
        pli_scopes_json(&proof, &text);
    }
    pli_text_free(&text);
    pli_audit_free(&audit);
    pli_logfile_close(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_text file = { 0 };
    char     path[64];
    if (size == 0) return 0;
    if (data[0] & 1) pli_text_add_bytes(&file, data + 1, size - 1);
    else
        make_file(data + 1, size - 1, (data[0] & 2) == 0, &file);
    int fd = memfd_create("log", 0);
    if (fd < 0 || file.failed || (file.length > 0 && write(fd, file.data, file.length) != (ssize_t)file.length))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    judge(path);
    close(fd);
    pli_text_free(&file);
    return 0;
}
