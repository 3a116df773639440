/* cli/serve/body.h - from the body of a request to rows as text that data's readers take.
 *
 * CSV and LIBSVM text stay as they are. JSON rows become lines of the model's own format: a list of numbers holds the
 * features in order, an object holds them by name. They are read one row after the other, so a body needs little memory
 * besides itself and its lines. */
#ifndef PLI_SERVE_BODY_H
#define PLI_SERVE_BODY_H

#include "data/data.h"

typedef struct pli_body_rows {
    pli_text    text;      /* lines; empty: they are the body itself */
    size_t      head;      /* bytes of the header line in text */
    int64_t     rows;      /* -1: not known before they are read */
    const char *format;    /* "libsvm", "csv" or "auto" */
    const char *index_base;
    bool        json;
} pli_body_rows;

enum { PLI_BODY_ROW_BYTES = 4 << 20 }; /* the longest row of JSON */

/** Reads JSON rows for a model with this schema into rows_out, which pli_body_free frees in any case. Errors:
 *  EFORMAT, with row and column; EREFUSED its rows cannot be JSON; ENOMEM. */
plait_status pli_body_json(const pli_schema *schema, const char *body, size_t bytes, pli_body_rows *rows_out,
                           plait_error *err);
/** The same for text, which is judged by its content. */
void         pli_body_text(const pli_schema *schema, const char *body, size_t bytes, pli_body_rows *rows_out);
void         pli_body_free(pli_body_rows *rows);
/** Turns the place in an error of data's readers ("body:3: ...") into the row of JSON. */
void         pli_body_place(const pli_body_rows *rows, plait_error *err);

#endif
