/* The names behind hashed keys (names.h). */
#include "data/schema/names.h"

#include <string.h>

plait_status pli_names_init(pli_names *names, int32_t bits, plait_error *err) {
    *names = (pli_names){ .bits = bits };
    names->wanted = pli_calloc(bits > 6 ? (size_t)1 << (bits - 6) : 1, sizeof *names->wanted);
    return names->wanted != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the names of features");
}

void pli_names_free(pli_names *names) {
    for (int64_t i = 0; i < names->n; i++) pli_free(names->name[i]);
    pli_free(names->name);
    pli_free(names->key);
    pli_free(names->wanted);
    *names = (pli_names){ 0 };
}

void pli_names_want(pli_names *names, uint64_t key) {
    if (key >> names->bits != 0 || pli_names_wants(names, key)) return;
    names->wanted[key >> 6] |= UINT64_C(1) << (key & 63);
    names->left++;
}

bool pli_names_give(pli_names *names, uint64_t key, const char *name, size_t bytes) {
    names->wanted[key >> 6] &= ~(UINT64_C(1) << (key & 63));
    names->left--;
    if (names->n >= PLI_NAMES_MAX || bytes > (size_t)(PLI_NAMES_TEXT - names->text_bytes)) {
        names->left = 0;
        return true;
    }
    if (!pli_is_utf8(name, bytes) || memchr(name, '\0', bytes) != NULL) return true;
    if (!pli_grow((void **)&names->key, &names->key_capacity, names->n + 1, sizeof *names->key) ||
        !pli_grow((void **)&names->name, &names->name_capacity, names->n + 1, sizeof *names->name))
        return false;
    char *copy = pli_malloc(bytes + 1);
    if (copy == NULL) return false;
    memcpy(copy, name, bytes);
    copy[bytes] = '\0';
    names->key[names->n] = key;
    names->name[names->n++] = copy;
    names->text_bytes += (int64_t)bytes;
    return true;
}
