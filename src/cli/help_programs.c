/* help NAME of a vertex program: what each vertex's value is, and how it is run. */
#include "cli/cli.h"
#include "vertex/vertex.h"

bool pli_cli_help_program(const char *name, pli_text *text) {
    int32_t                 n;
    const pli_vertex_named *is = pli_vertex_all(&n);
    int32_t                 i = 0;
    while (i < n && !pli_is(is[i].name, name)) i++;
    if (i == n) return false;
    pli_text line = { 0 };
    pli_text_add(&line, "%s: a vertex program. A vertex's value is %s.", name, is[i].summary);
    pli_cli_wrap(text, line.data != NULL ? line.data : "", 0, pli_cli_width());
    pli_text_free(&line);
    pli_text_add(text, "\n  plait graph run %s --data EDGES%s%s\n\n", name, is[i].needs != NULL ? " " : "",
                 is[i].needs != NULL ? is[i].needs : "");
    pli_cli_wrap(text, "'plait help graph' has its options, and docs/vertex.md all programs.", 0, pli_cli_width());
    return true;
}
