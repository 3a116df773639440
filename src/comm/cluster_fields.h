/* comm/cluster_fields.h - which fields may stand where in a cluster's file, and how their text is read. Only the
 * reader (cluster_read.c) uses it. */
#ifndef PLI_COMM_CLUSTER_FIELDS_H
#define PLI_COMM_CLUSTER_FIELDS_H

#include "comm/cluster.h"

typedef enum pli_field_kind {
    PLI_FIELD_COUNT,
    PLI_FIELD_NUMBER,
    PLI_FIELD_SECONDS,
    PLI_FIELD_NANOSECONDS,
    PLI_FIELD_BANDWIDTH,
    PLI_FIELD_BYTES,
    PLI_FIELD_NAME,
    PLI_FIELD_RANKS,
    PLI_FIELD_RACK,
    PLI_FIELD_SITE,
    PLI_FIELD_ONE_OR_ALL,
    PLI_FIELD_SIDES
} pli_field_kind;

typedef struct pli_field {
    const char    *name;
    pli_field_kind kind;
    size_t         at;        /* offset in the struct that the mapping fills */
    double         low, high; /* bounds of a number, in its own unit */
    bool           required;
} pli_field;

/* The keys of a mapping. */
typedef struct pli_fields {
    const pli_field *field; /* [n] */
    size_t           n;
} pli_fields;
extern const pli_fields pli_host_fields, pli_rack_fields, pli_site_fields, pli_cost_fields, pli_machine_fields;

/* An event is a mapping with one key, the event's name; its value is a mapping of these fields. */
typedef struct pli_event_form {
    const char     *name;
    pli_mishap_kind kind;
    pli_fields      fields;
} pli_event_form;
enum { PLI_EVENT_FORMS = 11 };
extern const pli_event_form pli_event_forms[PLI_EVENT_FORMS];

enum { PLI_FIELD_WANTED = 144 };
/** Reads a field's text as a number in the struct's unit. false: the text is no such number; wanted says what was
 *  expected. Only for the kinds up to BYTES. */
bool pli_field_parse(const pli_field *field, const char *text, double *value, char wanted[PLI_FIELD_WANTED]);

#endif
