/* cli/serve/queue.h - requests that wait for a worker, first in, first out. Its owner's mutex guards it. */
#ifndef PLI_CLI_SERVE_QUEUE_H
#define PLI_CLI_SERVE_QUEUE_H

#include "cli/serve/http.h"

/* One that is zero-initialised is empty. */
typedef struct pli_request_queue {
    pli_http_request *first, *last;
    int64_t           n;
} pli_request_queue;

static inline void pli_request_queue_add(pli_request_queue *queue, pli_http_request *r) {
    r->next = NULL;
    if (queue->first == NULL) queue->first = r;
    else queue->last->next = r;
    queue->last = r;
    queue->n++;
}

/** Takes the first `n` requests, or as many as there are, as a list that NULL ends. */
static inline pli_http_request *pli_request_queue_take(pli_request_queue *queue, int64_t n) {
    pli_http_request *list = queue->first, **end = &list;
    for (; *end != NULL && n > 0; n--, queue->n--) end = &(*end)->next;
    queue->first = *end;
    *end = NULL;
    return list;
}

#endif
