/* data/formats/vw/vw.h - Vowpal Wabbit text: "label importance 'tag |space:2 name:value name |other name", one row on
 * each line.
 *
 * Names have no numbers, so each feature is known by a hash of 64 bits: of the namespace, and of the name with the
 * namespace's hash as its seed (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009). A
 * name of up to 18 digits is that number behind the namespace's hash, so that numbered features do not collide with
 * each other. The default namespace's hash is 0. The hash is folded to --hash-bits (18 by default) as LIBSVM indices
 * are: below 2^bits a number of the default namespace is its own key.
 *
 *     vw_line.c   a line: label, importance, tag, namespaces, features; the names behind hashes
 *     vw_cross.c  n-grams of a namespace, products of namespaces
 *     vw.c        rows into CSR; opening a data set
 *     vw_is.c     is it such text? */
#ifndef PLI_DATA_VW_H
#define PLI_DATA_VW_H

#include "data/dataset/dataset.h"

enum {
    PLI_VW_BITS = 18,            /* of the hash, by default                                              */
    PLI_VW_TERMS = 256,          /* products of namespaces                                               */
    PLI_VW_GRAM = 16,            /* the longest n-gram                                                   */
    PLI_VW_ROW_MAX = 1 << 24,    /* features of one row, with n-grams and products                       */
    PLI_VW_DEFAULT_SPACE = ' ',  /* first letter of the namespace without a name                         */
    PLI_VW_ANY_SPACE = ':'       /* in a product of this letter alone: any namespace                     */
};

/* A product of two or three namespaces, each named by its first letter; letters are in increasing order. */
typedef struct pli_vw_term {
    unsigned char letter[3];
    uint8_t       n;
} pli_vw_term;

/* What --interactions and --ngram ask for. */
typedef struct pli_vw_cross {
    pli_vw_term term[PLI_VW_TERMS];
    int32_t     terms;
    uint8_t     gram[256]; /* by a namespace's first letter: the longest n-gram; 0 or 1: none */
} pli_vw_cross;

typedef struct pli_vw_rules {
    int32_t      hash_bits;
    bool         label_is_optional, unlabelled; /* unlabelled: labels are passed over */
    pli_vw_cross cross;
} pli_vw_rules;

/* --- a row before it is folded ------------------------------------------------------------------------------ */

typedef struct pli_vw_feature {
    uint64_t hash;
    float    value;
} pli_vw_feature;

/* The features of one namespace of the line, n-grams included. */
typedef struct pli_vw_span {
    unsigned char        letter;
    int64_t              first, n;
    const unsigned char *name; /* [bytes] in the line */
    int64_t              bytes;
} pli_vw_span;

/* Where a feature comes from; only if names are asked for. */
typedef struct pli_vw_origin {
    enum { PLI_VW_NAME, PLI_VW_NUMBER, PLI_VW_GRAMS, PLI_VW_PRODUCT } kind;
    const unsigned char *name; /* NAME: [bytes] in the line */
    int64_t              bytes;
    int64_t              span;      /* NAME, NUMBER: the namespace */
    int64_t              part[3];   /* NUMBER: the number; GRAMS: the first feature; PRODUCT: the features */
    int32_t              parts;     /* GRAMS, PRODUCT */
} pli_vw_origin;

typedef struct pli_vw_row {
    double          label; /* NaN: none */
    float           weight;
    pli_vw_feature *feature; /* [n] in the order of the line, then products */
    pli_vw_span    *span;    /* [spans] */
    pli_vw_origin  *origin;  /* [n]; NULL unless with_names */
    int64_t         n, capacity, spans, span_capacity, origin_capacity;
    bool            with_names;
} pli_vw_row;

void pli_vw_row_free(pli_vw_row *row);
bool pli_vw_row_reserve(pli_vw_row *row, int64_t more); /* false: out of memory */

/** Reads the line at `line` into row (found->letters gains its namespaces) and sets *next_out behind the line. Errors:
 *  EFORMAT, see bad; ENOMEM. */
plait_status pli_vw_line(const pli_vw_rules *rules, const unsigned char *line, pli_vw_row *row, pli_found *found,
                         pli_bad *bad, const unsigned char **next_out);

/** The name of a feature: "name", "space^name", an n-gram "space^one^two", a product "a^one*b^two". Into text. */
void pli_vw_feature_name(const pli_vw_row *row, int64_t feature, pli_text *text);

/* --- vw_cross.c --------------------------------------------------------------------------------------------- */

/** Reads "ab,bcd" (NULL: none) and "2" or "a2,b3" (NULL: none). Errors: EINVAL. */
plait_status pli_vw_cross_read(const char *interactions, const char *ngram, pli_vw_cross *cross_out, plait_error *err);
/** Adds the n-grams of the last span, up to the longest. Errors: ENOMEM; EFORMAT too many features. */
plait_status pli_vw_add_grams(pli_vw_row *row, int32_t longest);
/** Adds the products of all terms. Errors as above. */
plait_status pli_vw_add_products(pli_vw_row *row, const pli_vw_cross *cross);
/** Fails if a term or an n-gram names a namespace that none of the rows has. letters: a bit for each first letter.
 *  Errors: ENAME. */
plait_status pli_vw_check_letters(const pli_schema *schema, plait_error *err);

/* --- vw.c, vw_is.c ------------------------------------------------------------------------------------------ */

extern const pli_reader pli_vw_reader;
plait_status pli_vw_parse(const void *rules, const unsigned char *from, const unsigned char *to, pli_rows *rows,
                          pli_found *found, pli_bad *bad);
/** Sets rules and schema. Errors: EINVAL an option that cannot be; EMISMATCH the model has others. */
plait_status pli_vw_open(pli_dataset *dataset, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err);
void         pli_vw_close(pli_vw_rules **rules);
/** Does it look like such text, and not like a table with bars between its cells? */
bool pli_vw_is(const pli_source *source);

#endif
