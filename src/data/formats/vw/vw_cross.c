/* Crossed features of Vowpal Wabbit text: n-grams of a namespace's words, and products of namespaces.
 *
 * An n-gram stands for n features that follow one another; its value is 1. A product has one feature for each pair
 * (triple) of features of its namespaces; its value is the product of theirs. Within one namespace each pair is made
 * once, and a feature is multiplied by itself only if its value is not 1, since the square would then be the feature
 * again. The hash of a crossed feature is made of its parts' hashes, so that nothing is written out as text. */
#include "data/formats/vw/vw.h"

#include <stdlib.h>

#define GRAM    UINT64_C(0x9e3779b97f4a7c15) /* so that the n-gram of two words is not their product */
#define PRODUCT UINT64_C(0xc2b2ae3d27d4eb4f)

static uint64_t join(uint64_t kind, uint64_t hash, uint64_t next) { return pli_hash_u64(hash ^ kind) + next; }

static plait_status reserve(pli_vw_row *row, int64_t more) {
    if (more > PLI_VW_ROW_MAX - row->n) return PLAIT_EFORMAT;
    return pli_vw_row_reserve(row, more) ? PLAIT_OK : PLAIT_ENOMEM;
}

/* --- n-grams ------------------------------------------------------------------------------------------------------ */

plait_status pli_vw_add_grams(pli_vw_row *row, int32_t longest) {
    pli_vw_span  *span = &row->span[row->spans - 1];
    const int64_t first = span->first, n = span->n;
    for (int64_t length = 2; length <= longest && length <= n; length++) {
        PLI_TRY(reserve(row, n - length + 1));
        for (int64_t i = first; i + length <= first + n; i++) {
            uint64_t hash = row->feature[i].hash;
            for (int64_t k = 1; k < length; k++) hash = join(GRAM, hash, row->feature[i + k].hash);
            if (row->with_names)
                row->origin[row->n] =
                    (pli_vw_origin){ .kind = PLI_VW_GRAMS, .part = { i }, .parts = (int32_t)length };
            row->feature[row->n++] = (pli_vw_feature){ .hash = hash, .value = 1 };
        }
    }
    span->n = row->n - first;
    return PLAIT_OK;
}

/* --- products ---------------------------------------------------------------------------------------------------- */

/* A product whose first `n` factors are chosen. */
typedef struct chosen {
    int64_t  part[3];
    uint64_t hash;
    float    value;
    uint8_t  n;
} chosen;

static void put_product(pli_vw_row *row, const chosen *c) {
    if (row->with_names)
        row->origin[row->n] = (pli_vw_origin){
            .kind = PLI_VW_PRODUCT, .part = { c->part[0], c->part[1], c->part[2] }, .parts = c->n
        };
    row->feature[row->n++] = (pli_vw_feature){ .hash = c->hash, .value = c->value };
}

/* May feature i be the next factor? Within one namespace factors are chosen in order. */
static bool follows(const pli_vw_row *row, const pli_vw_term *term, const chosen *c, int64_t i) {
    if (c->n == 0 || term->letter[c->n] != term->letter[c->n - 1]) return true;
    const int64_t last = c->part[c->n - 1];
    return i > last || (i == last && row->feature[i].value != 1.0f);
}

static plait_status choose(pli_vw_row *row, const pli_vw_term *term, int64_t spans, const chosen *c) {
    if (c->n == term->n) {
        put_product(row, c);
        return PLAIT_OK;
    }
    const unsigned char letter = term->letter[c->n];
    for (int64_t s = 0; s < spans; s++) {
        const pli_vw_span span = row->span[s];
        if (letter != PLI_VW_ANY_SPACE && letter != span.letter) continue;
        if (c->n + 1 == term->n) PLI_TRY(reserve(row, span.n));
        for (int64_t i = span.first; i < span.first + span.n; i++) {
            if (!follows(row, term, c, i)) continue;
            const pli_vw_feature f = row->feature[i];
            chosen               next = *c;
            next.part[next.n++] = i;
            next.hash = c->n == 0 ? f.hash : join(PRODUCT, c->hash, f.hash);
            next.value = c->value * f.value;
            PLI_TRY(choose(row, term, spans, &next));
        }
    }
    return PLAIT_OK;
}

plait_status pli_vw_add_products(pli_vw_row *row, const pli_vw_cross *cross) {
    for (int32_t t = 0; t < cross->terms; t++)
        PLI_TRY(choose(row, &cross->term[t], row->spans, &(chosen){ .value = 1 }));
    return PLAIT_OK;
}

/* --- what the options ask for ------------------------------------------------------------------------------------ */

static int by_letter(const void *a, const void *b) {
    return (int)*(const unsigned char *)a - (int)*(const unsigned char *)b;
}

static plait_status read_term(const char *text, size_t n, pli_vw_cross *cross, plait_error *err) {
    pli_vw_term *term = &cross->term[cross->terms];
    if (n < 2 || n > 3)
        return pli_fail(err, PLAIT_EINVAL,
                        "interactions \"%.*s\": expected two or three letters, the first ones of namespaces, as in "
                        "ab,bcd (:: for all pairs)", (int)(n < 40 ? n : 40), text);
    if (cross->terms == PLI_VW_TERMS)
        return pli_fail(err, PLAIT_EINVAL, "interactions: expected at most %d products", (int)PLI_VW_TERMS);
    term->n = (uint8_t)n;
    memcpy(term->letter, text, n);
    qsort(term->letter, n, 1, by_letter);
    size_t any = 0;
    for (size_t i = 0; i < n; i++) any += term->letter[i] == PLI_VW_ANY_SPACE;
    if (any != 0 && any != n)
        return pli_fail(err, PLAIT_EINVAL, "interactions \"%.*s\": \":\" stands for any namespace only by itself, as "
                                           "in :: or :::", (int)n, text);
    for (int32_t t = 0; t < cross->terms; t++)
        if (cross->term[t].n == n && memcmp(cross->term[t].letter, term->letter, n) == 0)
            return pli_fail(err, PLAIT_EINVAL, "interactions: \"%.*s\" stands there twice", (int)n, text);
    cross->terms++;
    return PLAIT_OK;
}

static plait_status read_gram(const char *text, size_t n, bool alone, pli_vw_cross *cross, plait_error *err) {
    const bool  all = n > 0 && (unsigned)(text[0] - '0') < 10;
    const char *digits = text + !all;
    const int   left = (int)n - !all;
    int         longest = 0;
    for (int i = 0; i < left && i < 3; i++)
        longest = (unsigned)(digits[i] - '0') < 10 ? 10 * longest + (digits[i] - '0') : PLI_VW_GRAM + 1;
    if (left < 1 || left > 2 || longest < 2 || longest > PLI_VW_GRAM || (all && !alone))
        return pli_fail(err, PLAIT_EINVAL,
                        "ngram \"%.*s\": expected a length from 2 to %d for all namespaces, or lengths by the "
                        "namespaces' first letters, as in a2,b3", (int)(n < 40 ? n : 40), text, (int)PLI_VW_GRAM);
    if (all) memset(cross->gram, longest, sizeof cross->gram);
    else cross->gram[(unsigned char)text[0]] = (uint8_t)longest;
    return PLAIT_OK;
}

plait_status pli_vw_cross_read(const char *interactions, const char *ngram, pli_vw_cross *cross_out, plait_error *err) {
    *cross_out = (pli_vw_cross){ 0 };
    for (const char *at = interactions; at != NULL;) {
        const size_t n = strcspn(at, ",");
        PLI_TRY(read_term(at, n, cross_out, err));
        at = at[n] == ',' ? at + n + 1 : NULL;
    }
    for (const char *at = ngram; at != NULL;) {
        const size_t n = strcspn(at, ",");
        PLI_TRY(read_gram(at, n, at == ngram && at[n] == '\0', cross_out, err));
        at = at[n] == ',' ? at + n + 1 : NULL;
    }
    return PLAIT_OK;
}

/* --- what is not there ------------------------------------------------------------------------------------------- */

static bool is_there(const uint64_t *letters, unsigned char letter) {
    return letter == PLI_VW_ANY_SPACE || (letters[letter >> 6] >> (letter & 63) & 1) != 0;
}

static plait_status refuse_letter(const pli_schema *schema, const char *option, unsigned char letter,
                                  plait_error *err) {
    pli_text there = { 0 };
    for (int c = 0; c < 256 && there.length < 160; c++)
        if (c != PLI_VW_ANY_SPACE && is_there(schema->letters, (unsigned char)c))
            pli_text_add(&there, there.length > 0 ? ", \"%c\"" : "\"%c\"", c);
    plait_status status = pli_fail(err, PLAIT_ENAME, "%s: no namespace begins with \"%c\", but with %s", option, letter,
                                   there.data != NULL ? there.data : "nothing");
    pli_text_free(&there);
    return status;
}

plait_status pli_vw_check_letters(const pli_schema *schema, plait_error *err) {
    pli_vw_cross cross;
    PLI_TRY(pli_vw_cross_read(schema->interactions, schema->ngram, &cross, err));
    for (int32_t t = 0; t < cross.terms; t++)
        for (uint8_t i = 0; i < cross.term[t].n; i++)
            if (!is_there(schema->letters, cross.term[t].letter[i]))
                return refuse_letter(schema, "interactions", cross.term[t].letter[i], err);
    for (int c = 0; c < 256 && schema->ngram != NULL && (unsigned)(schema->ngram[0] - '0') >= 10; c++)
        if (cross.gram[c] > 0 && !is_there(schema->letters, (unsigned char)c))
            return refuse_letter(schema, "ngram", (unsigned char)c, err);
    return PLAIT_OK;
}
