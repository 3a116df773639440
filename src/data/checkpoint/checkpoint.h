/* data/checkpoint/checkpoint.h - a folder of checkpoints: each is written by several ranks, is complete or does not
 * exist, and is read back by any number of ranks.
 *
 *     DIR/checkpoint-000000000500/               clock 500; a second one of that clock is -2, -3, ...
 *         part-00000-of-00004.safetensors        written by one rank each, streamed
 *         ...
 *         manifest.json                          last: names every part, tensor and checksum
 *
 * A checkpoint exists if and only if its manifest does. Parts are written to a temporary name, synced, renamed, and the
 * folder is synced before the manifest is begun; the manifest goes the same way, then DIR is synced. So after a crash
 * at any instant each manifest that can be read names parts that are whole, and the checkpoint before is untouched
 * (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014, on what happens if a step is left out).
 *
 * Life of a checkpoint: one rank, the lead, calls pli_checkpoint_begin and tells the others the folder's name. Each
 * writer streams its part through a pli_partfile; the end of that gives a digest (plain text), which the writer sends
 * to the lead. The lead commits with all digests, then prunes. If anything fails on any rank, the lead calls
 * pli_checkpoint_discard instead, and earlier checkpoints are not touched. Only one checkpoint is being made in a DIR
 * at a time.
 *
 * Rows. If a tensor is cut over parts, each part holds pieces: some rows (the first axis), which begin at `first` of
 * the whole's `rows`. The manifest lists all pieces; those of a tensor must cover each row once. So a reader asks for
 * rows of the whole, and need not know how many ranks wrote it. If a writer cannot know its place (the rows of a sparse
 * table come in any order), its piece is *loose*: the commit lays the loose pieces of a name one behind the other, by
 * number of part and by their order in the part. So loose tensors whose pieces have equal rows in each part stay side
 * by side: row r of TABLE.keys is the key of row r of TABLE.values.
 *
 * Names by convention: TABLE.values, TABLE.slot.NAME, TABLE.paid, TABLE.keys (sparse).
 *
 * No call prints. Paths are those of this process; all ranks that write must see the same DIR. */
#ifndef PLI_DATA_CHECKPOINT_H
#define PLI_DATA_CHECKPOINT_H

#include "base/base.h"

enum {
    PLI_CHECKPOINT_DIMS = 4,
    PLI_CHECKPOINT_NAME = 200,    /* longest name of a tensor, in bytes */
    PLI_CHECKPOINT_PARTS = 99999, /* most parts                                          */
    PLI_CHECKPOINT_FOLDER = 40,   /* "checkpoint-000000000500-2" and its NUL */
    PLI_CHECKPOINT_LOOSE = -1     /* as first: the commit lays it behind the others */
};

/* A tensor, or a piece of one: rows first .. first + shape[0] - 1 of a whole of `rows`. */
typedef struct pli_checkpoint_tensor {
    const char *name; /* UTF-8 without control characters, 1 .. PLI_CHECKPOINT_NAME bytes                    */
    const char *type; /* as safetensors writes it: "F32", "F64", "I64", "U64", "U8", ... */
    int32_t     dims; /* 1 .. PLI_CHECKPOINT_DIMS                                                            */
    int64_t     shape[PLI_CHECKPOINT_DIMS]; /* of this piece; shape[0] rows, 0 is fine                       */
    int64_t     first, rows; /* PLI_CHECKPOINT_LOOSE, and rows is ignored; in a tensor that was found: 0, all */
} pli_checkpoint_tensor;

/** Bytes of one row; -1: there is no such type, or the bytes exceed an int64_t. */
int64_t pli_checkpoint_row_bytes(const pli_checkpoint_tensor *tensor);

/* --- writing ---------------------------------------------------------------------------------------------- */

/** Called by the lead: makes DIR if it is missing, and in it the folder of a checkpoint of this clock (>= 0). Every
 *  writer needs the folder's name. Errors: EINVAL, EIO, ENOSPACE. */
plait_status pli_checkpoint_begin(const char *dir, int64_t clock, char folder_out[PLI_CHECKPOINT_FOLDER],
                                  plait_error *err);

/* One rank's part while it is being written. Any thread, one at a time. */
typedef struct pli_partfile pli_partfile;

/** Begins part `part` of `parts`. tensors [n]: what it will hold, in this order; copied. A part may hold several
 *  pieces of a tensor, or no piece at all. Errors: EINVAL a tensor's name, type, shape or place; EIO, ENOSPACE,
 *  ENOMEM. */
plait_status pli_partfile_begin(const char *dir, const char *folder, int32_t part, int32_t parts,
                                const pli_checkpoint_tensor *tensors, int64_t n, pli_partfile **part_out,
                                plait_error *err);
/** Writes the next bytes: those of the tensors one after the other, row-major, little-endian, in pieces of any size.
 *  Each byte is hashed and written in one pass and not kept. Errors: EINVAL more bytes than were announced; EIO,
 *  ENOSPACE. After an error the part can only be abandoned. */
plait_status pli_partfile_write(pli_partfile *part, const void *data, size_t bytes, plait_error *err);
/** Syncs, renames, syncs the folder. Ends *part, also on failure. Adds to digest what the lead needs (text, some 200
 *  bytes for each piece, no NUL within). Errors: EINVAL fewer bytes than were announced; EIO, ENOSPACE, ENOMEM. */
plait_status pli_partfile_end(pli_partfile **part, pli_text *digest, plait_error *err);
void         pli_partfile_abandon(pli_partfile **part); /* removes the bytes written; NULL is fine */

/** Called by the lead when all parts have ended: writes the manifest. digests [n]: NUL-terminated, one for each
 *  part, in any order. meta: a JSON object, kept as it is (canonical: without blanks, numbers as jansson writes
 *  them); NULL: {}. If it returns PLAIT_OK the checkpoint survives a loss of power. Errors: EINVAL meta is no
 *  object, a part is missing or there twice, or pieces overlap, leave rows out, or disagree on type, shape or rows
 *  (the text says which); EIO (also: this process cannot see a part), ENOSPACE, ENOMEM. After an error there may be
 *  a manifest that is not yet safe: discard. */
plait_status pli_checkpoint_commit(const char *dir, const char *folder, const char *meta, const char *const *digests,
                                   int32_t n, plait_error *err);
/** Removes a checkpoint, its manifest first. Foreign files in its folder stay, and then so does the folder. Errors:
 *  EINVAL folder is no checkpoint's name; EIO. A checkpoint that does not exist is fine. */
plait_status pli_checkpoint_discard(const char *dir, const char *folder, plait_error *err);
struct pli_checkpoint_list;
/** Called by the lead after a commit. Removes complete checkpoints beyond the newest `keep` (>= 1), where complete
 *  means that the manifest can be read and the parts have their lengths; damaged ones older than these; and those
 *  without a manifest that had none in `before` either (NULL: all without one), since nobody will end them. So a
 *  checkpoint is never removed before newer ones are complete. Errors: EINVAL, EIO; all that can be removed is. */
plait_status pli_checkpoint_prune(const char *dir, int32_t keep, const struct pli_checkpoint_list *before,
                                  plait_error *err);

/* --- looking around --------------------------------------------------------------------------------------- */

typedef enum pli_checkpoint_state {
    PLI_CHECKPOINT_COMPLETE,   /* the manifest is right and the parts have their lengths; bytes were not checked */
    PLI_CHECKPOINT_UNFINISHED, /* no manifest: the write was cut off, or is under way */
    PLI_CHECKPOINT_DAMAGED
} pli_checkpoint_state;

typedef struct pli_checkpoint_entry {
    char                 folder[PLI_CHECKPOINT_FOLDER];
    int64_t              clock;
    int64_t              serial; /* counts a DIR's checkpoints in the order of their commits; 0: not known */
    pli_checkpoint_state state;
    int32_t              parts;   /* 0 without a good manifest, like the next two */
    int64_t              tensors; /* whole ones                                                                 */
    int64_t              bytes;   /* of its files                                                               */
    plait_error          why;     /* DAMAGED: file, tensor, the fault, and its code */
} pli_checkpoint_entry;

typedef struct pli_checkpoint_list {
    pli_checkpoint_entry *entry; /* [n] the oldest first */
    int64_t               n;
} pli_checkpoint_list;

/** Lists the checkpoints in DIR. A DIR without checkpoints gives an empty list. Errors: EIO no such directory;
 *  ENOMEM. */
plait_status pli_checkpoint_list_read(const char *dir, pli_checkpoint_list *list_out, plait_error *err);
void         pli_checkpoint_list_free(pli_checkpoint_list *list);
/** Is there no checkpoint at all: no directory, or none in it that was ever complete? */
bool pli_checkpoint_is_none(const char *dir);
/** The bytes of a checkpoint's files. */
int64_t pli_checkpoint_bytes(const char *dir, const char *folder);
/** Is it the name of a checkpoint's folder? clock_out and copy_out (the suffix; 1: none) may be NULL. */
bool pli_checkpoint_folder_read(const char *name, int64_t *clock_out, int64_t *copy_out);

/* --- reading ---------------------------------------------------------------------------------------------- */

/* One thread at a time. */
typedef struct pli_checkpoint pli_checkpoint;

/** Opens the newest good checkpoint, and checks every byte of it. For each newer one that was passed over, a line is
 *  added to passed_over (may be NULL): folder, file, tensor, reason. Errors: EIO no such directory; ENAME it holds
 *  no checkpoint; ECHECKSUM none of its checkpoints is good (the text has the newest one's fault); ENOMEM. */
plait_status pli_checkpoint_open(const char *dir, pli_checkpoint **checkpoint_out, pli_text *passed_over,
                                 plait_error *err);
/** Opens a named one. Its bytes are checked when they are first read, so that many ranks may open what one rank has
 *  judged. Errors: ENAME folder does not exist; EFORMAT, EVERSION, ECHECKSUM, EIO. */
plait_status pli_checkpoint_open_at(const char *dir, const char *folder, pli_checkpoint **checkpoint_out,
                                    plait_error *err);
/** Checks every byte of every part (verify_part: of one part). Errors: ECHECKSUM altered or cut, EIO; the text names
 *  file and tensor. */
plait_status pli_checkpoint_verify(pli_checkpoint *checkpoint, plait_error *err);
plait_status pli_checkpoint_verify_part(pli_checkpoint *checkpoint, int32_t part, plait_error *err);

const char *pli_checkpoint_folder(const pli_checkpoint *checkpoint);
/** What it is, as an event log says it: its folder's name, and its manifest's checksum. */
const char *pli_checkpoint_origin(const pli_checkpoint *checkpoint);
int64_t     pli_checkpoint_clock(const pli_checkpoint *checkpoint);
int64_t     pli_checkpoint_serial(const pli_checkpoint *checkpoint);
const char *pli_checkpoint_meta(const pli_checkpoint *checkpoint); /* JSON, as it was committed */
int32_t     pli_checkpoint_parts(const pli_checkpoint *checkpoint);
int64_t     pli_checkpoint_part_bytes(const pli_checkpoint *checkpoint, int32_t part); /* of its file */
/** Whole tensors, in order of name. i = 0 .. tensors - 1. */
int64_t                      pli_checkpoint_tensors(const pli_checkpoint *checkpoint);
const pli_checkpoint_tensor *pli_checkpoint_tensor_at(const pli_checkpoint *checkpoint, int64_t i);
/** NULL: there is none of that name. Valid as long as the checkpoint is open. */
const pli_checkpoint_tensor *pli_checkpoint_find(const pli_checkpoint *checkpoint, const char *name);
/** How many pieces the tensor lies in. */
int64_t pli_checkpoint_pieces(const pli_checkpoint *checkpoint, const pli_checkpoint_tensor *tensor);
/** Reads rows first .. first + rows - 1 of a tensor that was found here into out (rows times row_bytes), from all
 *  parts that hold them. A piece's checksum is checked when it is first read. Errors: EINVAL rows outside;
 *  ECHECKSUM, EIO. */
plait_status pli_checkpoint_read(pli_checkpoint *checkpoint, const pli_checkpoint_tensor *tensor, int64_t first,
                                 int64_t rows, void *out, plait_error *err);
void         pli_checkpoint_close(pli_checkpoint **checkpoint); /* NULL is fine */

#endif
