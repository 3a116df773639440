/* The page: the bytes of page/dashboard.html, written by CMakeLists.txt. */
#include "watch/dashboard/dashboard.h"

static const unsigned char page[] = {
#include "dashboard_html.inc"
};

void pli_dash_page(pli_text *text) { pli_text_add_bytes(text, page, sizeof page); }
