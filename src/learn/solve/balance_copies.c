/* Blocks on lease in a run that goes on when a worker dies: each worker has a copy of the lease book. See balance.h. */
#include "learn/solve/balance.h"

#include "comm/comm.h"

static plait_status no_memory(const pli_balance *balance) {
    return pli_fail(balance->run->err, PLAIT_ENOMEM, "no memory for leases of %lld blocks",
                    (long long)balance->terms.blocks);
}

/* Each knows the rows of its own blocks alone. */
static plait_status count_rows(pli_balance *balance) {
    double *rows = balance->copies.rows;
    for (int64_t i = 0; i < balance->n; i++) rows[balance->lease[i].block] = (double)balance->lease[i].rows;
    return plait_comm_allreduce(balance->run->comm, rows, balance->terms.blocks, PLAIT_F64, PLAIT_SUM);
}

/* Opens the book. All workers bring the same. */
static plait_status bring(pli_balance *balance) {
    pli_run *run = balance->run;
    PLI_TRY(pli_book_open(plait_comm_workers(run->comm), &balance->terms, &balance->copies.book, run->err));
    for (int64_t b = 0; b < balance->terms.blocks; b++) {
        const pli_lease lease = { .block = b, .rows = (int64_t)balance->copies.rows[b], .until = PLI_LEASE_OPEN };
        balance->copies.home[b] = pli_dataset_home(run->data, (int32_t)b);
        PLI_TRY(pli_book_bring(balance->copies.book, balance->copies.home[b], &lease, 1, run->err));
    }
    return PLAIT_OK;
}

plait_status pli_balance_copies_anew(pli_balance *balance, int64_t clock) {
    const int32_t me = plait_comm_rank(balance->run->comm);
    for (int32_t b = 0; b < (int32_t)balance->terms.blocks; b++)
        if (balance->batches != NULL && balance->copies.home[b] == me && pli_dataset_home(balance->run->data, b) != me)
            pli_batches_drop(balance->batches, b);
    balance->pace = (pli_pace){ 0, 0 };
    balance->terms.first = pli_lease_first(clock, balance->terms.clocks);
    pli_book_close(&balance->copies.book);
    return bring(balance);
}

plait_status pli_balance_copies_begin(pli_balance *balance) {
    pli_run      *run = balance->run;
    const int32_t workers = plait_comm_workers(run->comm);
    balance->copies.home = pli_array((size_t)balance->terms.blocks, sizeof *balance->copies.home);
    balance->copies.told = pli_array((size_t)workers, sizeof *balance->copies.told);
    balance->copies.rows = pli_calloc((size_t)balance->terms.blocks, sizeof *balance->copies.rows);
    if (balance->copies.home == NULL || balance->copies.told == NULL || balance->copies.rows == NULL)
        return no_memory(balance);
    PLI_TRY(pli_heir_begin(&balance->copies.heir, run, balance->batches));
    balance->copies.heir.home = balance->copies.home;
    PLI_TRY(count_rows(balance));
    return bring(balance);
}

void pli_balance_copies_end(pli_balance *balance) {
    pli_heir_end(&balance->copies.heir);
    pli_book_close(&balance->copies.book);
    pli_free(balance->copies.home);
    pli_free(balance->copies.told);
    pli_free(balance->copies.rows);
}

static bool some_spare_lives(const pli_run *run) {
    const int32_t workers = plait_comm_workers(run->comm);
    for (int32_t w = workers - run->opts->spares; w < workers; w++)
        if (!pli_comm_is_absent(run->comm, w)) return true;
    return false;
}

/* All living workers hear the same paces, and of the same dead. */
plait_status pli_balance_copies_agree(pli_balance *balance, int64_t now) {
    pli_run  *run = balance->run;
    pli_book *book = balance->copies.book;
    PLI_TRY(plait_comm_allgather(run->comm, &balance->pace, sizeof balance->pace, balance->copies.told));
    balance->pace = (pli_pace){ 0, 0 };
    const bool spared = some_spare_lives(run);
    for (int32_t w = 0; w < (int32_t)balance->terms.tenants; w++) {
        if (!pli_comm_is_absent(run->comm, w)) continue;
        if (spared) pli_book_leave(book, w);
        else pli_book_bury(book, w, now);
    }
    for (int32_t w = 0; w < (int32_t)balance->terms.tenants; w++)
        if (!pli_comm_is_absent(run->comm, w))
            PLI_TRY(pli_book_ask(book, w, now, &balance->copies.told[w], run->err));
    for (int32_t b = 0; b < (int32_t)balance->terms.blocks; b++) {
        const int32_t before = balance->copies.home[b], me = plait_comm_rank(run->comm);
        balance->copies.home[b] = pli_book_holder(book, b, now);
        if (before == me && balance->copies.home[b] != me && balance->batches != NULL)
            pli_batches_drop(balance->batches, b);
    }
    return PLAIT_OK;
}

plait_status pli_balance_copies_batch(pli_balance *balance, int64_t epoch, int64_t clock, bool inherited,
                                      pli_batch *batch_out) {
    if (!inherited && clock % PLI_LEASE_EVERY == 0)
        PLI_TRY(pli_balance_copies_agree(balance, epoch * balance->terms.clocks + clock));
    return pli_heir_batch(&balance->copies.heir, epoch, clock, inherited, batch_out);
}
