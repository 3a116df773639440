/* base/module.h - what is optional: each a shared library plait-<name>.so beside the program, opened when it is asked
 * for. One table says what each gives and what installs it; who needs one loads it by name and ABI, and whoever lacks
 * it reads the same words. To add one: a line of the table in module.c. */
#ifndef PLI_BASE_MODULE_H
#define PLI_BASE_MODULE_H

#include "base/error.h"

typedef struct pli_module {
    const char *name, *symbol; /* plait-<name>.so, and its entry, a pli_module_entry_fn */
    const char *gives, *install;
} pli_module;

/** All of them; the last has no name. */
const pli_module *pli_modules(void);

/** What a module gives: a struct that lives as long as the module is open, and whose first member is uint32_t abi. */
typedef const void *pli_module_entry_fn(void);

/** Opens the module, which must be of this ABI. Errors: ENAME no module has this name; EMODULE it is not there or does
 *  not load (with what installs it), or is of another version; ENOMEM. pli_module_close closes it. */
plait_status pli_module_load(const char *name, uint32_t abi, void **handle_out, const void **given_out,
                             plait_error *err);

#endif
