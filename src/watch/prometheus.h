/* watch/prometheus.h - figures in the text form in which Prometheus reads them (version 0.0.4): for each metric a line
 * # HELP, a line # TYPE, and its samples. */
#ifndef PLI_WATCH_PROMETHEUS_H
#define PLI_WATCH_PROMETHEUS_H

#include "base/base.h"

/** Content-Type of such a text. */
extern const char pli_prometheus_type[];

/** Begins a metric, whose samples follow. type: "counter", "gauge" or "histogram". */
void pli_prom_head(pli_text *text, const char *name, const char *type, const char *help);
/** Adds a value and ends the line: NaN and infinities are written as Prometheus reads them. */
void pli_prom_value(pli_text *text, double value);
/** A metric with one sample. */
void pli_prom_one(pli_text *text, const char *name, const char *type, const char *help, double value);
/** Adds label="value" with the escapes of the form. */
void pli_prom_label(pli_text *text, const char *label, const char *value);

#endif
