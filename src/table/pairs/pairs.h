/* table/pairs/pairs.h - which settings of a run go together: the one place that decides.
 *
 * A run is a topology, a consistency, and settings beside them: exact sums, replicas, sums inside a host, filters,
 * checkpoints, data that stream, a learner that needs this or that. Two tables, and nothing else, say what does not go
 * together:
 *
 *     matrix.c    a topology with a consistency, which is contract.md's matrix
 *     rules.c     a setting with what the pair keeps to (plait/property.h), or with another setting
 *
 * facts.c knows when a setting is on, and check.c goes through the tables. Tables, jobs and runs ask pli_pair_check
 * before they read anything. It looks at settings alone, so every rank is told the same text. settings.c lists the
 * settings for `plait help pairs`, which asks pli_pair_check too.
 */
#ifndef PLI_TABLE_PAIRS_H
#define PLI_TABLE_PAIRS_H

#include "table/filter/filter.h"
#include "table/topology/topology.h"

/* What a learner or a solver that computes with the tables of a run needs of the settings. */
typedef struct pli_demand {
    const char      *who, *name; /* for texts: "lbfgs" and NULL, "model" and "kmeans"                        */
    plait_properties needs;      /* of the pair of each table                                                */
    const char      *why;        /* "a line search compares sums ..."; NULL: what the first that lacks means */
    plait_traits     traits;     /* what it asks of other settings                                           */
} pli_demand;

enum { PLI_DEMANDS = 2 };

/* The settings of a run that its tables do not see. All zero: there are none. */
typedef struct pli_above {
    pli_demand  demand[PLI_DEMANDS];
    const char *instead;   /* what to take where lbfgs does not go: "adagrad"                            */
    const char *model;     /* "logistic"; NULL: no rows are learnt from                                  */
    const char *loss;      /* "huber"; NULL: not known                                                   */
    const char *optimizer; /* as it was given; NULL: it was not                                          */
    const char *kernels;   /* of a module: "onednn"; NULL: Plait's own                                   */
    const char *intercept; /* why the model has one in any case; NULL: it may do without                 */
    const char *pipe;      /* the first of the data that can be read but once, "-" among them; NULL      */
    bool        standard_input; /* "-" is among the data to learn from                                   */
    bool        processes;      /* ranks are processes: only one of them can read a pipe                 */
    bool        single;         /* one pass over the data                                                */
    bool        streamed;       /* a single pass over data that are not kept                             */
    bool        balanced;       /* blocks change hands: --balance dynamic                                */
    bool        class_balance;  /* class weights from the data: --class-weight balanced                  */
    bool        net;            /* the model is a graph                                                  */
    bool        loss_by_option; /* the loss is --loss's, not the model's own                             */
    bool        kinked;         /* the loss has no slope somewhere                                       */
    bool        dropout;        /* the graph drops values at random                                      */
    bool        adds;           /* the model's tables add: no update rule is applied                     */
    bool        unjudged;       /* the model does not judge rows that are held back                     */
    bool        classless;      /* the model's labels are no classes                                     */
    bool        each_update;    /* no update of the model's tables may be dropped                        */
    bool        two_passes;     /* one pass over the rows is not enough for the model                    */
    bool        one_pass;       /* the model passes over the data once                                   */
    bool        whole_passes;   /* each clock of the model is a pass over all rows                       */
    bool        cut;            /* the model is cut, in stages or columns, each on a rank ... */
    bool        columns;        /* ... in columns */
    bool        micro_batches;  /* rows of a clock go through the model in pieces */
    bool        curve;          /* the objective at moments of the run is asked for */
    bool        no_intercept, schedule, rate, penalty, validation, patience, net_options;
    bool        start; /* from a model, of a learner that does not say that it may */
    bool        epochs, batch; /* more than one; given                                                   */
    bool        checkpoint, resume;
} pli_above;

/* A topology, a consistency, and the settings that they must go with. */
typedef struct pli_pair {
    const char      *topology, *consistency; /* as users write them */
    const char      *table;       /* whose pair it is; NULL: not known */
    bool             apart;       /* other tables have other pairs: a refusal of this one begins with its name */
    const pli_scope *scope;       /* where policies are found besides plait's own, and the backup workers; NULL:
                                     nothing */
    bool             one_process; /* all ranks are threads of one process */
    bool             by_default;  /* nobody has named the topology: for texts */
    pli_fill         fill;        /* ANY: does it train for some table? */
    bool             grows;       /* rows are there from the first update of their key on */
    bool             staleness_aware; /* plait_rule_opts' */
    const char      *rule;            /* NULL: additive */
    plait_type       type;            /* of the values; 0: float32, or not known yet */
    const char      *combine;         /* NULL: the default */
    bool             late;            /* it is created behind the first clock, or dropped */
    bool             sharded;         /* the rule's state is in parts */
    bool             exact;           /* sums are exact */
    bool             aggregates;      /* hosts add up before anything leaves them */
    bool             logged;          /* there is an event log */
    int32_t          replicas;        /* copies of each shard; 0, 1: the one */
    int32_t          spares;          /* workers without shards and items, for who dies */
    int32_t          slots;           /* workers that may join, and are away at first */
    int32_t          servers;         /* ranks with shards; 0: not known yet */
    const char      *group;           /* whose table it is; NULL: all workers' */
    int32_t          only_servers;    /* ranks with shards that are no workers */
    const char      *collective;      /* how sums go, with aggregates; NULL: not known yet */
    const char      *filter;          /* NULL, "": none */
    const pli_filter_scope *filters;  /* where filters are found besides plait's own; NULL: nowhere */
    const pli_rule_scope   *rules;    /* where rules are; NULL: nowhere */
    const pli_above        *above;    /* NULL: a job of tables alone */
} pli_pair;

/** Does this train? EREFUSED with the reason and what to take instead, ENAME and EINVAL for names and parameters. */
plait_status pli_pair_check(const pli_pair *pair, plait_error *err);
/** The same for what does not depend on a table's pair, by settings that are known before there are ranks: `above`,
 *  `logged`. */
plait_status pli_job_check(const pli_pair *pair, plait_error *err);
/** Checks that the workers include that many spares and at least one worker that is no spare. Errors: EINVAL. */
plait_status pli_spares_check(int32_t spares, int32_t workers, plait_error *err);
/** The same of slots, and workers that are in from the first. */
plait_status pli_slots_check(int32_t slots, int32_t workers, plait_error *err);
/** Refuses what plait_job_opts says of moves, in a job whose shards do not move. option: a member of plait_job_opts. */
plait_status pli_moves_check(const char *option, int32_t slots, bool revives, plait_error *err);
/** May dead workers of such a job return? simulated: does the transport start ranks anew? anew: this one has been.
 *  Errors: EREFUSED. */
plait_status pli_revives_check(bool revives, int32_t slots, const char *transport, bool simulated, bool anew,
                               plait_error *err);

/* --- for help ----------------------------------------------------------------------------------------------------- */

/* A setting, as `plait help pairs` shows it. */
typedef struct pli_setting {
    const char *name;   /* "exact sums"      */
    const char *option; /* "--reduce exact"  */
    void (*turn_on)(pli_pair *pair, pli_above *above);
    const char *model;  /* whose it is: "mlp"; "": any net's; NULL: any model's */
} pli_setting;

/** All settings; the last has the name NULL. */
const pli_setting *pli_settings(void);

#endif
