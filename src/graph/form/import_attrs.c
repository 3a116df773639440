/* Checks the attributes of an ONNX node before its op looks at them: the op must list each, with its kind.
 *
 * If an op ignored an `axis` that is a float, or an attribute that a newer opset has added, it would compute another
 * function than the file says. So attributes that are not listed are refused. Some are listed and not used, because in
 * the cases that are accepted they do not change the values: storage_order (for MaxPool's indices, which are refused),
 * momentum (for the running means of training, refused too), saturate (for casts to 8-bit types, refused too), sorted
 * of TopK (if it is 0, any order is right), seed of a Dropout that does not train. */
#include <string.h>

#include "graph/form/import.h"

static const struct {
    pli_onnx_kind kind;
    const char   *word, *text;
} kinds[] = {
    { PLI_ONNX_FLOAT, "float", "a float" },  { PLI_ONNX_INT, "int", "an integer" },
    { PLI_ONNX_TEXT, "text", "a text" },     { PLI_ONNX_TENSOR, "tensor", "a tensor" },
    { PLI_ONNX_FLOATS, "floats", "floats" }, { PLI_ONNX_INTS, "ints", "integers" },
    { PLI_ONNX_TEXTS, "texts", "texts" },
};
enum { KINDS = sizeof kinds / sizeof *kinds, LISTED = 16, WORD = 40 };

/* An op's list, "axis int, alpha float", parsed. */
typedef struct listed {
    char   name[LISTED][WORD], kind[LISTED][WORD];
    size_t n;
} listed;

static void copy_word(char to[WORD], const char *from, size_t length) {
    if (length >= WORD) length = WORD - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

static void take_apart(const char *list, listed *out) {
    out->n = 0;
    for (const char *at = list; at != NULL && *at != '\0' && out->n < LISTED; out->n++) {
        const size_t name = strcspn(at, " "), kind = strcspn(at + name + 1, ",");
        copy_word(out->name[out->n], at, name);
        copy_word(out->kind[out->n], at + name + 1, kind);
        at += name + 1 + kind;
        at += strspn(at, ", ");
    }
}

static const char *text_of(pli_onnx_kind kind) {
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].kind == kind) return kinds[i].text;
    return "of another kind";
}

static plait_status check(const pli_import *im, const listed *known, const pli_onnx_attr *attr) {
    const char *names[LISTED];
    for (size_t k = 0; k < known->n; k++) {
        names[k] = known->name[k];
        if (strcmp(attr->name, names[k]) != 0) continue;
        for (size_t i = 0; i < KINDS; i++)
            if (strcmp(kinds[i].word, known->kind[k]) == 0 && kinds[i].kind != attr->kind)
                return pli_import_fail(im, PLAIT_EFORMAT, "attribute '%s' is %s; it is to be %s", names[k],
                                       text_of(attr->kind), kinds[i].text);
        return PLAIT_OK;
    }
    if (known->n == 0)
        return pli_import_fail(im, PLAIT_EREFUSED, "attribute '%.40s' is refused: the op has none in opset %d to %d",
                               attr->name, PLI_ONNX_OPSET_MIN, PLI_ONNX_OPSET_MAX);
    return pli_fail_unknown(im->err, "attribute", attr->name, names, known->n);
}

plait_status pli_import_check_attrs(const pli_import *im) {
    const pli_onnx_attr *attr = im->node->attr;
    listed               known;
    take_apart(im->op->attrs, &known);
    for (int32_t i = 0; i < im->node->n_attrs; i++) {
        PLI_TRY(check(im, &known, &attr[i])); /* at most LISTED pass, so the next loop is short */
        for (int32_t k = 0; k < i; k++)
            if (strcmp(attr[i].name, attr[k].name) == 0)
                return pli_import_fail(im, PLAIT_EFORMAT, "attribute '%.40s' is there twice", attr[i].name);
    }
    return PLAIT_OK;
}

/* --- for ops -------------------------------------------------------------------------------------------------- */

const pli_onnx_attr *pli_import_attr(const pli_import *im, const char *name, pli_onnx_kind kind) {
    for (int32_t i = 0; i < im->node->n_attrs; i++)
        if (im->node->attr[i].kind == kind && strcmp(im->node->attr[i].name, name) == 0) return &im->node->attr[i];
    return NULL;
}

int64_t pli_import_int(const pli_import *im, const char *name, int64_t absent) {
    const pli_onnx_attr *a = pli_import_attr(im, name, PLI_ONNX_INT);
    return a != NULL ? a->i : absent;
}

double pli_import_float(const pli_import *im, const char *name, double absent) {
    const pli_onnx_attr *a = pli_import_attr(im, name, PLI_ONNX_FLOAT);
    return a != NULL ? (double)a->f : absent;
}

const char *pli_import_text(const pli_import *im, const char *name, const char *absent) {
    const pli_onnx_attr *a = pli_import_attr(im, name, PLI_ONNX_TEXT);
    return a != NULL ? a->text : absent;
}

int32_t pli_import_list(const pli_import *im, const char *name, int32_t most, int64_t *ints) {
    const pli_onnx_attr *a = pli_import_attr(im, name, PLI_ONNX_INTS);
    if (a == NULL) return -1;
    if (a->n > most) return -2;
    for (int32_t i = 0; i < a->n; i++) ints[i] = a->ints[i];
    return a->n;
}
