/* gzip and zstd, seen through. */
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "data/source.h"

enum { OUT_BYTES = 1 << 18, IN_BYTES = 1 << 30 };

static bool is_gzip(const unsigned char *data, size_t bytes) {
    return bytes >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}
static bool is_zstd(const unsigned char *data, size_t bytes) {
    return bytes >= 4 && ((data[0] == 0x28 && data[1] == 0xb5 && data[2] == 0x2f && data[3] == 0xfd) ||
                          (data[1] == 0x2a && data[2] == 0x4d && data[3] == 0x18 && (data[0] & 0xf0) == 0x50));
}

bool pli_is_packed(const unsigned char *data, size_t bytes) { return is_gzip(data, bytes) || is_zstd(data, bytes); }

static plait_status bad_stream(plait_error *err, const char *name, const char *kind, const char *why) {
    return pli_fail(err, PLAIT_EFORMAT, "%s: expected a whole %s stream: %s", name, kind, why);
}

/* One piece of output. *again: the stream goes on. */
static plait_status gzip_piece(const char *name, z_stream *z, unsigned char *out, pli_spool *spool, bool *again,
                               plait_error *err) {
    z->next_out = out;
    z->avail_out = OUT_BYTES;
    int          result = inflate(z, Z_NO_FLUSH);
    plait_status status = pli_spool_add(spool, out, OUT_BYTES - z->avail_out, err);
    *again = result == Z_OK;
    if (status < 0) return status;
    if (result == Z_MEM_ERROR) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to unpack it", name);
    if (result == Z_BUF_ERROR) return bad_stream(err, name, "gzip", "it is cut short");
    if (result != Z_OK && result != Z_STREAM_END)
        return bad_stream(err, name, "gzip", z->msg != NULL ? z->msg : "damaged");
    return PLAIT_OK;
}

static plait_status gunzip(const char *name, const unsigned char *data, size_t bytes, unsigned char *out,
                           pli_spool *spool, plait_error *err) {
    z_stream z = { 0 };
    if (inflateInit2(&z, 15 + 16) != Z_OK) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to unpack it", name);
    plait_status status = PLAIT_OK;
    while (status == PLAIT_OK && bytes > 0) { /* a member a turn, in pieces of input that zlib can count */
        bool again = true;
        while (status == PLAIT_OK && again) {
            uInt given = bytes > IN_BYTES ? IN_BYTES : (uInt)bytes;
            z.next_in = (unsigned char *)(uintptr_t)data;
            z.avail_in = given;
            status = gzip_piece(name, &z, out, spool, &again, err);
            data += given - z.avail_in;
            bytes -= given - z.avail_in;
        }
        if (status == PLAIT_OK && !is_gzip(data, bytes)) break; /* padding behind the last member, as gzip has it */
        if (status == PLAIT_OK && inflateReset(&z) != Z_OK) status = bad_stream(err, name, "gzip", "damaged");
    }
    inflateEnd(&z);
    return status;
}

static plait_status unzstd(const char *name, const unsigned char *data, size_t bytes, unsigned char *out,
                           pli_spool *spool, plait_error *err) {
    ZSTD_DStream *stream = ZSTD_createDStream();
    if (stream == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to unpack it", name);
    plait_status  status = PLAIT_OK;
    ZSTD_inBuffer in = { data, bytes, 0 };
    size_t        left = 1;
    bool          full = false;
    while (status == PLAIT_OK && (in.pos < in.size || full)) {
        ZSTD_outBuffer piece = { out, OUT_BYTES, 0 };
        left = ZSTD_decompressStream(stream, &piece, &in);
        if (ZSTD_isError(left))
            status = bad_stream(err, name, "zstd", ZSTD_getErrorName(left));
        else
            status = pli_spool_add(spool, out, piece.pos, err);
        full = piece.pos == piece.size && left != 0;
    }
    if (status == PLAIT_OK && left != 0) status = bad_stream(err, name, "zstd", "it is cut short");
    ZSTD_freeDStream(stream);
    return status;
}

plait_status pli_inflate(const char *name, const unsigned char *data, size_t bytes, pli_spool *spool,
                         plait_error *err) {
    unsigned char *out = pli_malloc(OUT_BYTES);
    if (out == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to unpack it", name);
    plait_status status =
        is_gzip(data, bytes) ? gunzip(name, data, bytes, out, spool, err) : unzstd(name, data, bytes, out, spool, err);
    pli_free(out);
    return status;
}
