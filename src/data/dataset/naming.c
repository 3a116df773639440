/* Names behind hashed keys: a pass over the front of the data, once training has ended (schema/names.h). */
#include "data/formats/table/table.h"
#include "data/schema/names.h"

enum { CHUNK = 1 << 20, BITS_MAX = 26 };

/* Parses the rows of a piece of text, and forgets them; their names stay. */
static plait_status name_piece(const pli_dataset *d, const pli_segment *segment, size_t from, size_t to, pli_rows *rows,
                               pli_found *found) {
    const unsigned char *data = d->sources->source[segment->source].data;
    pli_rows_clear(rows);
    if (d->reader != &pli_libsvm_reader) return pli_parse_bytes(d, segment, from, to, rows, found, NULL);
    return pli_libsvm_name(data + from, data + to, d->schema->hash_bits, found->names) ? PLAIT_OK : PLAIT_ENOMEM;
}

static plait_status name_segment(const pli_dataset *d, const pli_segment *segment, pli_rows *rows, pli_found *found,
                                 int64_t *left) {
    const pli_source *source = &d->sources->source[segment->source];
    for (size_t from = segment->from, to; from < segment->to && *left > 0 && found->names->left > 0;
         from = to) {
        const unsigned char *newline = NULL;
        if (segment->to - from > CHUNK)
            newline = memchr(source->data + from + CHUNK, '\n', segment->to - from - CHUNK);
        to = newline != NULL ? (size_t)(newline + 1 - source->data) : segment->to;
        PLI_TRY(name_piece(d, segment, from, to, rows, found));
        pli_source_drop(source, pli_drop_again(from), to);
        *left -= (int64_t)(to - from);
    }
    return PLAIT_OK;
}

/* The columns of numbers have a key each; those of texts are named as they come. */
static bool name_columns(const pli_dataset *d, pli_names *names) {
    for (int64_t i = 0; d->table != NULL && i < d->table->cells; i++) {
        const pli_table_cell *cell = &d->table->cell[i];
        if (cell->column < 0 || cell->role != PLI_ROLE_NUMBER || !pli_names_wants(names, cell->hashed)) continue;
        const char *name = d->schema->column[cell->column].name;
        if (!pli_names_give(names, cell->hashed, name, strlen(name))) return false;
    }
    return true;
}

static plait_status find_names(const pli_dataset *d, int64_t bytes, pli_names *names) {
    pli_found    found = { .names = names };
    pli_rows     rows = { 0 };
    plait_status status = name_columns(d, names) ? PLAIT_OK : PLAIT_ENOMEM;
    for (int64_t i = 0; status == PLAIT_OK && i < d->segments && bytes > 0 && names->left > 0; i++)
        status = name_segment(d, &d->segment[i], &rows, &found, &bytes);
    pli_rows_free(&rows);
    pli_found_free(&found);
    return status;
}

bool pli_dataset_has_text(const pli_dataset *d) { return d->sources != NULL; }

void pli_dataset_name(const pli_dataset *d, int64_t bytes, int64_t n, const uint64_t *wanted, pli_schema *schema) {
    const int32_t bits = d->schema->hash_bits;
    pli_names     names;
    if (d->sources == NULL || bits == 0 || bits > BITS_MAX || schema->hash_bits != bits) return;
    if (pli_names_init(&names, bits, NULL) < 0) return;
    for (int64_t i = 0; i < n; i++) pli_names_want(&names, wanted[i]);
    if (find_names(d, bytes, &names) == PLAIT_OK) (void)pli_schema_take_names(schema, &names);
    pli_names_free(&names);
}
