/* watch/page/page.h - self-contained HTML pages: a template, the style and the script that all pages share, and one
 * JSON object, which the template's own script draws. A page asks the network for nothing.
 *
 *     compare.html, cv.html, tune.html   the templates, with the places @HEAD@, @STYLE@, @TOP@ and @SCRIPT@
 *     head.html, style.css, top.html     what all of them share
 *     script.html, tools.js              the same, with the places @DATA@ and @TOOLS@
 *
 * dashboard.html is none of them: watch/dashboard/page.c hands it out as it is, and it asks its run for figures. */
#ifndef PLI_WATCH_PAGE_H
#define PLI_WATCH_PAGE_H

#include "base/base.h"

/** Adds the page of this template ("compare", "cv", "tune") with the JSON object in it. The text fails if there is no
 *  such template. */
void pli_page_add(const char *name, const char *json, pli_text *text);
/** Writes the page to a file, whole or not at all. Errors: EIO; ENOMEM (json has failed, too). */
plait_status pli_page_write(const char *path, const char *name, const pli_text *json, plait_error *err);
/** Can the file be written? Asked before the work, not after it. Errors: EIO. */
plait_status pli_page_check(const char *path, plait_error *err);

#endif
