/* Sheets: rows that a rank shows. See sheet.h; questions and answers between processes are rounds_mail.c's. */
#include "comm/sheet.h"

#include <string.h>

#include "comm/figures.h"
#include "comm/rounds_impl.h"

void pli_sheet_init(pli_sheet *sheet) {
    sheet->row = NULL;
    pthread_mutex_init(&sheet->lock, NULL);
}

void pli_sheet_destroy(pli_sheet *sheet) {
    for (pli_sheet_row *row = sheet->row, *next; row != NULL; row = next) {
        next = row->next;
        pli_free(row);
    }
    pthread_mutex_destroy(&sheet->lock);
}

pli_sheet *pli_comm_sheet(plait_comm *comm) { return &comm->sheet; }

/* --- a rank's own ------------------------------------------------------------------------------------------------- */

static uint64_t kind_of(pli_sheet_row *row) { return atomic_load_explicit(&row->word[0], memory_order_acquire); }

static pli_sheet_row *find_free(pli_sheet *sheet) {
    pli_sheet_row *row = sheet->row;
    while (row != NULL && kind_of(row) != PLI_SHEET_FREE) row = row->next;
    if (row != NULL || (row = pli_calloc(1, sizeof *row)) == NULL) return row;
    row->next = sheet->row;
    sheet->row = row;
    return row;
}

pli_sheet_row *pli_sheet_add(pli_sheet *sheet, const uint64_t word[PLI_SHEET_WORDS]) {
    pthread_mutex_lock(&sheet->lock);
    pli_sheet_row *row = find_free(sheet);
    for (int32_t i = PLI_SHEET_WORDS - 1; row != NULL && i > 0; i--)
        atomic_store_explicit(&row->word[i], word[i], memory_order_relaxed);
    if (row != NULL) atomic_store_explicit(&row->word[0], word[0], memory_order_release);
    pthread_mutex_unlock(&sheet->lock);
    return row;
}

void pli_sheet_hide(pli_sheet_row *row) {
    if (row != NULL) atomic_store_explicit(&row->word[0], PLI_SHEET_HIDDEN, memory_order_release);
}

void pli_sheet_free(pli_sheet_row *row) {
    if (row != NULL) atomic_store_explicit(&row->word[0], PLI_SHEET_FREE, memory_order_release);
}

bool pli_sheet_copy(pli_sheet *sheet, uint64_t **rows_out, int64_t *n_out) {
    int64_t n = 0;
    pthread_mutex_lock(&sheet->lock);
    for (pli_sheet_row *row = sheet->row; row != NULL; row = row->next) n++;
    uint64_t *to = *rows_out = pli_array((size_t)n + 1, PLI_SHEET_WORDS * sizeof *to);
    *n_out = 0;
    for (pli_sheet_row *row = sheet->row; to != NULL && row != NULL; row = row->next) {
        if (kind_of(row) <= PLI_SHEET_HIDDEN) continue;
        for (int32_t i = 0; i < PLI_SHEET_WORDS; i++)
            *to++ = atomic_load_explicit(&row->word[i], memory_order_relaxed);
        ++*n_out;
    }
    pthread_mutex_unlock(&sheet->lock);
    return *rows_out != NULL;
}

/* --- all ranks' --------------------------------------------------------------------------------------------------- */

static bool read_local(pli_world *world, pli_sheet_read *reads) {
    bool done = true;
    for (int32_t i = 0; done && i < world->place.count; i++) {
        pli_sheet_read *read = &reads[world->place.first + i];
        pli_figures_show(&world->local[i]);
        done = read->heard = pli_sheet_copy(&world->local[i].sheet, &read->row, &read->n);
    }
    return done;
}

/* Takes the answers that have come; returns whether some are missing. */
static bool take_answers(pli_world *world, uint64_t number, pli_sheet_read *reads) {
    pli_doctor *d = world->doctor;
    bool        missing = false;
    pthread_mutex_lock(&d->mail_lock);
    for (int32_t r = 0; r < world->size; r++) {
        pli_doctor_mail *mail = &d->mail[r];
        if (pli_world_is_local(world, r) || reads[r].heard || pli_world_has_ended(world, r)) continue;
        if (mail->sheet_round < number) {
            missing = true;
            continue;
        }
        reads[r] = (pli_sheet_read){ .row = mail->sheet, .n = mail->sheet_rows, .heard = true };
        mail->sheet = NULL;
    }
    pthread_mutex_unlock(&d->mail_lock);
    return missing;
}

static void read_others(pli_world *world, uint64_t timeout_ns, pli_sheet_read *reads) {
    pli_doctor *d = world->doctor;
    uint64_t    until_ns = pli_world_now(world) + timeout_ns;
    if (d->mail == NULL) return;
    const uint64_t number = pli_doctor_ask_sheets(world);
    for (;;) {
        const uint32_t came = atomic_load(&d->came);
        if (!take_answers(world, number, reads)) return;
        const uint64_t now_ns = pli_world_now(world);
        if (now_ns >= until_ns) return;
        pli_futex_wait(&d->came, came, until_ns - now_ns);
    }
}

plait_status pli_sheets_read(const plait_comm *comm, uint64_t timeout_ns, pli_sheet_read **reads_out,
                             plait_error *err) {
    pli_world      *world = comm->world;
    pli_sheet_read *reads = pli_calloc((size_t)world->size, sizeof *reads);
    if (reads == NULL || !read_local(world, reads)) {
        pli_sheets_free(&reads, world->size);
        return pli_fail(err, PLAIT_ENOMEM, "no memory to read what ranks show");
    }
    read_others(world, timeout_ns, reads);
    *reads_out = reads;
    return PLAIT_OK;
}

void pli_sheets_free(pli_sheet_read **reads, int32_t n) {
    for (int32_t r = 0; *reads != NULL && r < n; r++) pli_free((*reads)[r].row);
    pli_free(*reads);
    *reads = NULL;
}
