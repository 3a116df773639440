/* data/checkpoint/checkpoint.h - a folder of checkpoints: written by many, complete or not there, read back by any
 * number.
 *
 *     DIR/checkpoint-000000000500/               clock 500; a second one of that clock is -2, -3, ...
 *         part-00000-of-00004.safetensors        written by one rank each, streamed
 *         ...
 *         manifest.json                          last: names every part, tensor and checksum
 *
 * A checkpoint exists if and only if its manifest does. Parts are written to a temporary name, synced, renamed, and the
 * folder is synced before the manifest is begun; the manifest goes the same way, then DIR is synced. So after a crash
 * at any instant each manifest that can be read names parts that are whole, and the one before is untouched (Pillai et
 * al., "All File Systems Are Not Created Equal", OSDI 2014, on what happens to those who leave a step out).
 *
 * Life of a checkpoint: one rank, the lead, calls pli_checkpoint_begin and tells the others the folder's name. Each
 * writer streams its part through a pli_partfile, and sends the digest (plain text) that its end gives to the lead. The
 * lead commits with all digests, then prunes. Where anything fails on any rank, the lead calls pli_checkpoint_discard
 * instead: the checkpoints before are as good as they were. One checkpoint is in the making in a DIR at a time.
 *
 * Rows. Of a tensor that is cut over parts, each part holds pieces: some rows (the first axis), which begin at `first`
 * of the whole's `rows`. The manifest has them all; the pieces of a tensor must cover each row once. So whoever reads
 * asks for rows of the whole, and need not know how many had written. Where a writer cannot know its place (the rows of
 * a sparse table come in any order) a piece is *loose*: the commit lays the loose pieces of a name one behind the
 * other, by number of part and by their order in the part. Loose tensors whose pieces have equal rows part by part
 * therefore stay side by side: row r of TABLE.keys is the key of row r of TABLE.values.
 *
 * Names by convention: TABLE.values, TABLE.slot.NAME, TABLE.paid, TABLE.keys (sparse).
 *
 * No call prints. Paths are those of this process; all ranks that write must see the same DIR. */
#ifndef PLI_DATA_CHECKPOINT_H
#define PLI_DATA_CHECKPOINT_H

#include "base/base.h"

enum {
    PLI_CHECKPOINT_DIMS = 4,
    PLI_CHECKPOINT_NAME = 200,    /* longest name of a tensor, bytes                     */
    PLI_CHECKPOINT_PARTS = 99999, /* most parts                                          */
    PLI_CHECKPOINT_FOLDER = 40,   /* "checkpoint-000000000500-2" and its end             */
    PLI_CHECKPOINT_LOOSE = -1     /* first: laid behind the others' by the commit        */
};

/* A tensor, or a piece of one: rows first .. first + shape[0] - 1 of a whole of `rows`. */
typedef struct pli_checkpoint_tensor {
    const char *name; /* UTF-8 without control characters, 1 .. PLI_CHECKPOINT_NAME bytes                    */
    const char *type; /* as safetensors says it: "F32", "F64", "I64", "U64", "U8", ...                       */
    int32_t     dims; /* 1 .. PLI_CHECKPOINT_DIMS                                                            */
    int64_t     shape[PLI_CHECKPOINT_DIMS]; /* of this piece; shape[0] rows, 0 is fine                       */
    int64_t     first, rows; /* PLI_CHECKPOINT_LOOSE, and rows is ignored; of a tensor that was found: 0, all */
} pli_checkpoint_tensor;

/** Bytes of one row; -1: no such type, or too many for an int64_t. */
int64_t pli_checkpoint_row_bytes(const pli_checkpoint_tensor *tensor);

/* --- writing ---------------------------------------------------------------------------------------------- */

/** By the lead: makes DIR where it is missing and in it the folder of a checkpoint of this clock (>= 0), whose name
 * every writer needs. Errors: EINVAL, EIO, ENOSPACE. */
plait_status pli_checkpoint_begin(const char *dir, int64_t clock, char folder_out[PLI_CHECKPOINT_FOLDER],
                                  plait_error *err);

/* One rank's part on its way to the disk. Used by one thread at a time, whichever. */
typedef struct pli_partfile pli_partfile;

/** Begins part `part` of `parts`. tensors [n]: what it will hold, in this order; copied. A part may hold several pieces
 * of a tensor, and none of any. Errors: EINVAL a tensor's name, type, shape or place; EIO, ENOSPACE, ENOMEM. */
plait_status pli_partfile_begin(const char *dir, const char *folder, int32_t part, int32_t parts,
                                const pli_checkpoint_tensor *tensors, int64_t n, pli_partfile **part_out,
                                plait_error *err);
/** The next bytes: those of the tensors one after the other, row-major, little-endian, in pieces of any size. Each byte
 * is hashed and written in one pass and not kept. Errors: EINVAL more than were announced; EIO, ENOSPACE. After an
 * error the part can only be abandoned. */
plait_status pli_partfile_write(pli_partfile *part, const void *data, size_t bytes, plait_error *err);
/** Syncs, renames, syncs the folder. Ends *part, also when it fails. Adds to digest what the lead needs (text, some 200
 *  bytes a piece, no NUL within). Errors: EINVAL fewer bytes than were announced; EIO, ENOSPACE, ENOMEM. */
plait_status pli_partfile_end(pli_partfile **part, pli_text *digest, plait_error *err);
void         pli_partfile_abandon(pli_partfile **part); /* removes what was written; NULL is fine */

/** By the lead, when all parts have ended: the manifest. digests [n]: NUL-terminated, one a part, in any order. meta: a
 * JSON object, kept as it is (canonical: without blanks, numbers as jansson writes them), NULL: {}. When it returns
 *  PLAIT_OK the checkpoint survives a loss of power. Errors: EINVAL meta is no object, a part is missing or there
 *  twice, pieces overlap or leave rows out, or disagree on type, shape or rows (which, is said); EIO (also: a part that
 *  this process cannot see), ENOSPACE, ENOMEM. After an error there may be a manifest that is not yet safe: discard. */
plait_status pli_checkpoint_commit(const char *dir, const char *folder, const char *meta, const char *const *digests,
                                   int32_t n, plait_error *err);
/** Removes a checkpoint, its manifest first; foreign files in its folder stay, and so does the folder then. Errors:
 * EINVAL folder is no checkpoint's name; EIO. One that is not there is fine. */
plait_status pli_checkpoint_discard(const char *dir, const char *folder, plait_error *err);
struct pli_checkpoint_list;
/** By the lead, after a commit: removes complete checkpoints beyond the newest `keep` (>= 1; of those whose manifest
 * can be read and whose parts have their lengths), damaged ones older than these, and all without a manifest that had
 * none in `before` either (NULL: whatever): nobody ends them. A checkpoint is thus never removed before newer ones
 * stand. Errors: EINVAL, EIO; what could be removed is. */
plait_status pli_checkpoint_prune(const char *dir, int32_t keep, const struct pli_checkpoint_list *before,
                                  plait_error *err);

/* --- looking around --------------------------------------------------------------------------------------- */

typedef enum pli_checkpoint_state {
    PLI_CHECKPOINT_COMPLETE,   /* the manifest is right and the parts have their lengths; bytes are not looked at */
    PLI_CHECKPOINT_UNFINISHED, /* no manifest: a write that was cut off, or is under way                         */
    PLI_CHECKPOINT_DAMAGED
} pli_checkpoint_state;

typedef struct pli_checkpoint_entry {
    char                 folder[PLI_CHECKPOINT_FOLDER];
    int64_t              clock;
    int64_t              serial; /* counts the checkpoints of a DIR in the order of their commits; 0: not known */
    pli_checkpoint_state state;
    int32_t              parts;   /* 0 where there is no good manifest, and so on                               */
    int64_t              tensors; /* whole ones                                                                 */
    int64_t              bytes;   /* of its files                                                               */
    plait_error          why;     /* DAMAGED: file, tensor, what is wrong, and its code                         */
} pli_checkpoint_entry;

typedef struct pli_checkpoint_list {
    pli_checkpoint_entry *entry; /* [n] the oldest first */
    int64_t               n;
} pli_checkpoint_list;

/** What lies in DIR. A DIR without checkpoints is an empty list. Errors: EIO no such directory; ENOMEM. */
plait_status pli_checkpoint_list_read(const char *dir, pli_checkpoint_list *list_out, plait_error *err);
void         pli_checkpoint_list_free(pli_checkpoint_list *list);
/** Is it the name of a checkpoint's folder? clock_out and copy_out (the suffix; 1: none) may be NULL. */
bool pli_checkpoint_folder_read(const char *name, int64_t *clock_out, int64_t *copy_out);

/* --- reading ---------------------------------------------------------------------------------------------- */

/* One thread at a time. */
typedef struct pli_checkpoint pli_checkpoint;

/** The newest that is good, every byte of which is looked at. Of each newer one that was passed over a line is added to
 *  passed_over (may be NULL): folder, file, tensor, reason. Errors: EIO no such directory; ENAME it holds no
 * checkpoint; ECHECKSUM none of its checkpoints is good (the newest one's reason is in the text); ENOMEM. */
plait_status pli_checkpoint_open(const char *dir, pli_checkpoint **checkpoint_out, pli_text *passed_over,
                                 plait_error *err);
/** A named one. Its bytes are looked at when they are first read, so that many ranks may open what one has judged.
 *  Errors: ENAME folder is not there; EFORMAT, EVERSION, ECHECKSUM, EIO. */
plait_status pli_checkpoint_open_at(const char *dir, const char *folder, pli_checkpoint **checkpoint_out,
                                    plait_error *err);
/** Looks at every byte of every part (part: of that one). Errors: ECHECKSUM altered or cut, EIO; the text says which
 * file and tensor. */
plait_status pli_checkpoint_verify(pli_checkpoint *checkpoint, plait_error *err);
plait_status pli_checkpoint_verify_part(pli_checkpoint *checkpoint, int32_t part, plait_error *err);

const char *pli_checkpoint_folder(const pli_checkpoint *checkpoint);
int64_t     pli_checkpoint_clock(const pli_checkpoint *checkpoint);
int64_t     pli_checkpoint_serial(const pli_checkpoint *checkpoint);
const char *pli_checkpoint_meta(const pli_checkpoint *checkpoint); /* JSON, as it was committed */
int32_t     pli_checkpoint_parts(const pli_checkpoint *checkpoint);
int64_t     pli_checkpoint_part_bytes(const pli_checkpoint *checkpoint, int32_t part); /* of its file */
/** Whole tensors, in order of name. i = 0 .. tensors - 1. */
int64_t                      pli_checkpoint_tensors(const pli_checkpoint *checkpoint);
const pli_checkpoint_tensor *pli_checkpoint_tensor_at(const pli_checkpoint *checkpoint, int64_t i);
/** NULL: none of that name. Valid as long as the checkpoint is open. */
const pli_checkpoint_tensor *pli_checkpoint_find(const pli_checkpoint *checkpoint, const char *name);
/** How many pieces it lies in. */
int64_t pli_checkpoint_pieces(const pli_checkpoint *checkpoint, const pli_checkpoint_tensor *tensor);
/** Rows first .. first + rows - 1 of a tensor that was found here, into out (rows times row_bytes), from whichever
 * parts hold them. A piece's checksum is looked at when it is first read. Errors: EINVAL rows outside; ECHECKSUM, EIO.
 */
plait_status pli_checkpoint_read(pli_checkpoint *checkpoint, const pli_checkpoint_tensor *tensor, int64_t first,
                                 int64_t rows, void *out, plait_error *err);
void         pli_checkpoint_close(pli_checkpoint **checkpoint); /* NULL is fine */

#endif
