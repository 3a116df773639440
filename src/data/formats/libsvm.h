/* data/formats/libsvm.h - "label index:value index:value ... # comment", one row on each line. */
#ifndef PLI_DATA_LIBSVM_H
#define PLI_DATA_LIBSVM_H

#include "data/dataset/rows.h"
#include "data/formats/number.h"
#include "data/schema/names.h"
#include "data/schema/origins.h"

typedef struct pli_libsvm_rules {
    int32_t  base;         /* subtracted from each index: 0 or 1 */
    bool     base_is_sure; /* an index 0 is an error if base is 1; otherwise it is found and reported */
    bool     label_is_optional, unlabelled; /* unlabelled: labels are passed over */
    int32_t  hash_bits; /* > 0: key = hash of the index as written                              */
    uint64_t limit;     /* entries whose index, as written, is not below this are dropped */
    const pli_column_origin *origin; /* [origins] the schema's; a row that does not give such a feature gets -origin */
    int64_t           origins;
} pli_libsvm_rules;

#define PLI_MAX_LABELS 65536

/* What was found in the rows, besides the rows themselves. Zero-initialised is empty. */
typedef struct pli_found {
    uint64_t   max_index; /* as written */
    bool       any_index, zero_index, real_labels;
    bool       parses;    /* tables: a look at the lines is not enough */
    int64_t    qids, dropped, unknown_texts, unknown_labels, passed_labels;
    pli_keymap labels;    /* bits of the distinct labels; at most PLI_MAX_LABELS */
    double     recent[2]; /* the labels added last */
    double     least_label; /* the least below 0; 0: none is */
    pli_names *names; /* NULL: parsers forget names; else (vw, tables) they give it those that it wants */
    uint64_t   letters[4]; /* vw: a bit for the first letter of each namespace */
    int64_t    cold[2];    /* pairs: rows whose user, or item, the model does not know; the first such text */
    char       cold_text[2][40];
} pli_found;
bool pli_found_label(pli_found *found, double label); /* false: out of memory */
void pli_found_free(pli_found *found);

/* Where a text is wrong, and what is wrong. */
typedef struct pli_bad {
    const unsigned char *at;
    char                 text[360];
} pli_bad;
plait_status pli_bad_at(pli_bad *bad, const unsigned char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** "expected ..., found ...": adds the word at `at`, which a blank or the end of the line follows. */
plait_status pli_bad_expected(pli_bad *bad, const unsigned char *at, const char *expected);

/** rules: a pli_libsvm_rules. Appends the rows of [from, to), which ends behind a newline; PLI_PARSE_PAD bytes
 *  behind `to` must be readable. Errors: EFORMAT, see bad; ENOMEM (bad->at NULL). */
plait_status pli_libsvm_parse(const void *rules, const unsigned char *from, const unsigned char *to, pli_rows *rows,
                              pli_found *found, pli_bad *bad);

/** The first byte of the row at or behind `from`, past blank lines and comments; `to` if there is none. */
const unsigned char *pli_libsvm_row(const unsigned char *from, const unsigned char *to);
/** Gives names to keys of hashed rows [from, to): their indices as written. false: out of memory. */
bool pli_libsvm_name(const unsigned char *from, const unsigned char *to, int32_t bits, pli_names *names);
/** The query that a row names (pli_block.query, without the file), or 0. */
uint64_t pli_libsvm_query(const unsigned char *row, const unsigned char *to);
/** Finds the features that are read less a number of their own, and adds these to the schema; not wanted: warns of
 *  them. Errors: ENOMEM. */
plait_status pli_libsvm_origins(pli_dataset *dataset, bool wanted, plait_error *err);
/** Does any row of [from, to) begin with an index 0? */
bool pli_libsvm_has_zero(const unsigned char *from, const unsigned char *to);

#endif
