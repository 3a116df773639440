#include "watch/prometheus.h"

#include <math.h>

const char pli_prometheus_type[] = "text/plain; version=0.0.4; charset=utf-8";

void pli_prom_head(pli_text *text, const char *name, const char *type, const char *help) {
    pli_text_add(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void pli_prom_value(pli_text *text, double value) {
    if (isnan(value)) pli_text_add(text, "NaN\n");
    else if (isinf(value)) pli_text_add(text, value > 0 ? "+Inf\n" : "-Inf\n");
    else if (value == rint(value) && fabs(value) < 9e15) pli_text_add(text, "%.0f\n", value); /* counts stay exact */
    else pli_text_add(text, "%.9g\n", value);
}

void pli_prom_one(pli_text *text, const char *name, const char *type, const char *help, double value) {
    pli_prom_head(text, name, type, help);
    pli_text_add(text, "%s ", name);
    pli_prom_value(text, value);
}

void pli_prom_label(pli_text *text, const char *label, const char *value) {
    pli_text_add(text, "%s=\"", label);
    for (const char *p = value != NULL ? value : ""; *p != '\0'; p++) {
        if (*p == '\n') pli_text_add(text, "\\n");
        else if (*p == '"' || *p == '\\') pli_text_add(text, "\\%c", *p);
        else pli_text_add_bytes(text, p, 1);
    }
    pli_text_add(text, "\"");
}
