/* learn/net/classes.h - a softmax whose classes lie over ranks, or of which a step scores some. See classes.c. */
#ifndef PLI_LEARN_CLASSES_H
#define PLI_LEARN_CLASSES_H

#include <stdbool.h>

#include <plait/op.h>

struct pli_net;
struct pli_net_units;

enum { PLI_CLASS_OPS = 3 };

/** The ops of the loss; units are borrowed for the ops' life. */
void pli_class_ops(const struct pli_net_units *units, plait_op op[PLI_CLASS_OPS]);
/** Is the net's last layer, from `width` values to its scores, better cut by classes than by rows? width 0: whatever it
 *  costs. */
bool pli_classes_suit(const struct pli_net *net, int64_t width);
/** Adds the loss of the scores, one value for each of net->columns parts: sets net->loss and net->sums. */
void pli_classes_lose(struct pli_net *net, const plait_value *scores);
/** Adds a sampled last layer over x [parts], which have n values side by side: sets its candidates and bonuses, the
 *  loss and the sums, and net->judged if the net is in columns. */
void pli_classes_sample(struct pli_net *net, const plait_value *x, int32_t parts, int64_t n, int32_t layer);

#endif
