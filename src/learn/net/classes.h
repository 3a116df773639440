/* learn/net/classes.h - a softmax whose classes lie over ranks. See classes.c. */
#ifndef PLI_LEARN_CLASSES_H
#define PLI_LEARN_CLASSES_H

#include <stdbool.h>

#include <plait/op.h>

struct pli_net;
struct pli_net_units;

enum { PLI_CLASS_OPS = 3 };

/** Nodes from `first` on lie on the rank that has this part. */
typedef void pli_place_fn(struct pli_net *net, int64_t first, int32_t part);

/** The ops of the loss; units are borrowed for the ops' life. */
void pli_class_ops(const struct pli_net_units *units, plait_op op[PLI_CLASS_OPS]);
/** Is the net's last layer, from `width` values to its scores, better cut by classes than by rows? width 0: whatever it
 *  costs. */
bool pli_classes_suit(const struct pli_net *net, int64_t width);
/** Adds the loss of the scores, one value for each of net->columns parts: sets net->loss and net->sums. */
void pli_classes_lose(struct pli_net *net, const plait_value *scores, pli_place_fn *place);

#endif
