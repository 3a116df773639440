/* table/client/exchange.h - a worker asks servers something and waits for their answers.
 *
 *     pli_exchange x;
 *     pli_exchange_begin(&x, job, &ticket);             enters the client's port and opens the ticket
 *     status = pli_client_send(..., x.now_ns, ..., &ticket, &x.out, err);                 any number of messages
 *     status = pli_exchange_wait(&x, status, "clock 7 of table w", err);       leaves the port, waits for all answers
 *     ... looks at ticket.replies ...
 *     pli_ticket_free(&ticket);
 *
 * That enters the port only once: the question who holds the answers up is scheduled when the messages leave, and the
 * machine lets go of a ticket by itself when the last answer has come. A worker that asks now and waits later calls
 * pli_exchange_send, which leaves the port, and then pli_job_wait.
 */
#ifndef PLI_TABLE_EXCHANGE_H
#define PLI_TABLE_EXCHANGE_H

#include "table/client/client.h"

/* An exchange between begin and wait or send: the worker is in the client's port. */
typedef struct pli_exchange {
    plait_job  *job;
    pli_ticket *ticket;
    uint64_t    now_ns;
    pli_out     out;
} pli_exchange;

/** Enters the port and opens the ticket, which the caller owns. */
void pli_exchange_begin(pli_exchange *x, plait_job *job, pli_ticket *ticket);
/** The same if another function opens the ticket, as those of ask.c do. */
void pli_exchange_enter(pli_exchange *x, plait_job *job, pli_ticket *ticket);
/** Leaves the port. status: the result of sending; a failure closes the ticket, and is returned. */
plait_status pli_exchange_send(pli_exchange *x, plait_status status);
/** The same, then waits as pli_job_wait does. */
plait_status pli_exchange_wait(pli_exchange *x, plait_status status, const char *what, plait_error *err);

/** Waits until the ticket has all its answers, and closes it in any case. Returns the first failure among the servers'
 *  answers. what: "creation of table w", "barrier"; NULL, for a ticket with an ask: the get's clock and table, put into
 *  words only if somebody wants to know. */
plait_status pli_job_wait(plait_job *job, pli_ticket *ticket, const char *what, plait_error *err);

/** Writes "clock 7 of table w". */
void pli_exchange_name_get(const plait_job *job, const pli_ask *ask, char *text, size_t bytes);

/** Builds and sends what is pending, as pli_client_build_push does. Waits for no answer. */
plait_status pli_job_push(plait_job *job, pli_client_table *table, pli_kind kind, plait_error *err);

/** Closes a ticket whose answers nobody waits for any more. */
void pli_job_drop_ticket(plait_job *job, pli_ticket *ticket);

/** Sends an empty message of this kind to the servers that hold shards, and waits for all answers. *sum_out: the sum
 *  of the counts that they bring. */
plait_status pli_job_ask_all(plait_job *job, pli_kind kind, const char *what, int64_t *sum_out, plait_error *err);

#endif
