#include "cli/described.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_TEXT = 96 };

/* "0-63" of a dense table, "17 keys" of a sparse one, "-" for none; of a second replica also whose they are. */
static void tell_rows(const plait_table_part *p, char text[ROWS_TEXT]) {
    if (p->held == 0) snprintf(text, ROWS_TEXT, "-");
    else if (p->rows == 0) snprintf(text, ROWS_TEXT, "%" PRId64 " keys", p->held);
    else
        snprintf(text, ROWS_TEXT, "%" PRId64 "-%" PRId64 "%s", p->first, p->first + p->held - 1,
                 p->copy ? " (copy)" : "");
    const size_t length = strlen(text);
    if (p->replica_of >= 0)
        snprintf(text + length, ROWS_TEXT - length, p->serves ? " (for rank %d)" : " (replica of rank %d)",
                 (int)p->replica_of);
}

static void tell_clock(int64_t clock, const char *before, pli_text *text) {
    if (clock < 0) pli_text_add(text, "%s-", before);
    else pli_text_add(text, "%s%" PRId64, before, clock);
}

static void tell_part(const plait_table_part *p, pli_text *text) {
    char rows[ROWS_TEXT], size[32] = "sparse";
    if (p->name[0] == '\0') {
        pli_text_add(text, "rank %d does not answer\n", (int)p->rank);
        return;
    }
    tell_rows(p, rows);
    if (p->rows > 0) snprintf(size, sizeof size, "%" PRId64, p->rows);
    pli_text_add(text, "%s\t%s\t%d\t%s\t%s\t%s x %" PRId64 "\t%d\t%s\t%" PRId64, p->name,
                 p->group[0] != '\0' ? p->group : "all", (int)p->members, p->topology, p->consistency, size, p->cols,
                 (int)p->rank, rows, p->bytes);
    tell_clock(p->version, "\t", text);
    tell_clock(p->clock, "\t", text);
    tell_clock(p->last_get, "\t", text);
    tell_clock(p->last_push, "\t", text);
    pli_text_add(text, "\n");
}

void pli_described_tell(const plait_comm *comm, uint64_t timeout_ns, pli_text *text) {
    int64_t           n = 0;
    plait_table_part *part = NULL;
    plait_error       err = { .rank = -1 };
    if (plait_job_describe(comm, timeout_ns, &n, &part, &err) < 0) {
        pli_text_add(text, "%s\n", err.text);
        return;
    }
    if (n == 0) pli_text_add(text, "there are no tables at this moment\n");
    else
        pli_text_add(text, "table\tgroup\tmembers\ttopology\tconsistency\tshape\trank\trows here\tbytes\tversion"
                           "\tclock\tlast get\tlast push\n");
    for (int64_t i = 0; i < n; i++) tell_part(&part[i], text);
    plait_comm_free(part);
}
