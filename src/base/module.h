/* base/module.h - optional parts: each is a shared library plait-<name>.so beside the program, opened when it is
 * asked for. One table says what each module gives and what installs it. Code that needs a module loads it by name
 * and ABI; if it is missing, the error has the words of the table. To add a module, add a line to the table in
 * module.c. */
#ifndef PLI_BASE_MODULE_H
#define PLI_BASE_MODULE_H

#include "base/error.h"

typedef struct pli_module {
    const char *name, *symbol; /* its file is plait-<name>.so; symbol is its entry, a pli_module_entry_fn */
    const char *gives, *install;
} pli_module;

/** All modules; the last row has no name. */
const pli_module *pli_modules(void);

/** What a module gives: a struct that lives as long as the module is open, and whose first member is uint32_t abi. */
typedef const void *pli_module_entry_fn(void);

/** Opens the module, which must be of this ABI; pli_module_close closes it. Errors: ENAME no module has this name;
 *  EMODULE it is missing or does not load (the text says what installs it), or is of another version; ENOMEM. */
plait_status pli_module_load(const char *name, uint32_t abi, void **handle_out, const void **given_out,
                             plait_error *err);

#endif
