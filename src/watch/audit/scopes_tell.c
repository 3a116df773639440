/* What the audit of scopes says, as text and as JSON. See scopes.h. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "watch/audit/scopes.h"

static const char *const scopes[] = { "vertex", "edge", "full" };

void pli_scopes_text(const pli_scopes_proof *p, pli_text *text) {
    static const char *const promise[] = {
        "each update changed its own vertex alone, of whole values",
        "nobody changed what an update read, and each value is that of the last update before it",
        "an update had its neighbors for itself, and each value is that of the last update before it",
    };
    if (p->verdict == PLI_AUDIT_EMPTY) return;
    pli_text_add(text, "%s: %" PRId64 " update%s by %d worker%s, which read %" PRId64 " value%s and wrote %" PRId64
                 "; locks given and back: %" PRId64 "\n", p->program, p->updates, pli_plural(p->updates), p->workers,
                 pli_plural(p->workers), p->reads, pli_plural(p->reads), p->writes, p->locks);
    if (p->deaths > 0)
        pli_text_add(text, "all began anew %" PRId64 " time%s, after a death\n", p->deaths, pli_plural(p->deaths));
    if (p->verdict == PLI_AUDIT_PROVEN)
        pli_text_add(text, "proven under scope %s: %s\n", scopes[p->scope], promise[p->scope]);
    if (p->verdict == PLI_AUDIT_REFUTED)
        pli_text_add(text, "refuted under scope %s: %" PRId64 " violation%s, the first (%s): %s\n", scopes[p->scope],
                     p->violations, pli_plural(p->violations), p->first.rule, p->first.text);
}

void pli_scopes_json(const pli_scopes_proof *p, pli_text *text) {
    static const char *const verdicts[] = { [PLI_AUDIT_PROVEN] = "proven", [PLI_AUDIT_REFUTED] = "refuted",
                                            [PLI_AUDIT_CUT] = "cut", [PLI_AUDIT_EMPTY] = "empty" };
    const bool refuted = p->verdict == PLI_AUDIT_REFUTED;
    pli_json_begin(text);
    pli_json_text(text, "verdict", verdicts[p->verdict]);
    pli_json_text(text, "program", p->program);
    pli_json_text(text, "scope", scopes[p->scope]);
    pli_json_i64(text, "workers", p->workers);
    pli_json_i64(text, "deaths", p->deaths);
    pli_json_i64(text, "rounds", p->rounds);
    pli_json_i64(text, "updates", p->updates);
    pli_json_i64(text, "reads", p->reads);
    pli_json_i64(text, "writes", p->writes);
    pli_json_i64(text, "locks", p->locks);
    pli_json_i64(text, "violations", p->violations);
    pli_json_text(text, "rule", refuted ? p->first.rule : NULL);
    if (refuted) {
        char id[24]; /* ids may be beyond what JSON's numbers hold */
        snprintf(id, sizeof id, "%" PRIu64, p->first.row);
        pli_json_text(text, "vertex", id);
        pli_json_i64(text, "worker", p->first.rank);
        pli_json_i64(text, "other", p->other);
    }
    pli_json_text(text, "first", refuted ? p->first.text : NULL);
    pli_json_end(text);
    pli_text_add(text, "\n");
}
