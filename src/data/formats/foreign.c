/* Names formats that Plait does not read. A table of first bytes recognises binary files; first lines recognise
 * texts. */
#include "data/formats/foreign.h"

#include <string.h>

#include "data/formats/number.h"
#include "data/formats/table/cells.h"

/* FILE in a remedy is replaced by the file's name, if that is short. */
static plait_status refuse(const char *name, const char *what, const char *remedy, plait_error *err) {
    const char *file = strlen(name) <= 60 && strchr(name, ' ') == NULL ? strstr(remedy, "FILE") : NULL;
    const int   before = file != NULL ? (int)(file - remedy) : 0;
    return pli_fail(err, PLAIT_EFORMAT, "%s: is %s: %.*s%s%s", name, what, before, remedy, file != NULL ? name : "",
                    file != NULL ? file + strlen("FILE") : remedy);
}

/* --- bytes ------------------------------------------------------------------------------------------------------ */

typedef struct magic {
    size_t      at, n;
    const char *bytes, *what, *remedy;
} magic;

#define SAVE_AS_CSV "save its rows as CSV"
#define UNPACK      "unpack it, and give its files"
#define UNTAR       "unpack it with `tar -xf FILE`, and give its files"

/* A longer magic comes before one that it begins with. */
static const magic magics[] = {
    { 0, 3, "BZh", "bzip2", "unpack it with `bunzip2 -k FILE`" },
    { 0, 6,
      "\xfd"
      "7zXZ\0",
      "xz", "unpack it with `xz -dk FILE`" },
    { 0, 4, "\x04\x22\x4d\x18", "lz4", "unpack it with `lz4 -d FILE`" },
    { 0, 2, "\x1f\x9d", "packed by compress", "unpack it with `uncompress -k FILE`" },
    { 0, 6, "7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK },
    { 0, 6, "Rar!\x1a\x07", "a rar archive", UNPACK },
    { 257, 6, "ustar\0", "a tar archive", UNTAR },    /* POSIX */
    { 257, 8, "ustar  \0", "a tar archive", UNTAR }, /* GNU */
    { 0, 4, "PAR1", "a Parquet table",
      "write it as CSV, as `import pyarrow.csv, pyarrow.parquet; "
      "pyarrow.csv.write_csv(pyarrow.parquet.read_table(\"FILE\"), \"rows.csv\")` does" },
    { 0, 8, "ARROW1\0\0", "an Arrow table", SAVE_AS_CSV },
    { 0, 4, "FEA1", "a Feather table", SAVE_AS_CSV },
    { 0, 4, "Obj\x01", "an Avro table", SAVE_AS_CSV },
    { 0, 8, "\x89HDF\r\n\x1a\n", "HDF5", "write its rows as CSV, as h5py and numpy.savetxt do" },
    { 0, 10, "MATLAB 5.0", "a MATLAB file", "write its rows as CSV, as writematrix does" },
    { 0, 15, "SQLite format 3", "an SQLite database",
      "write a table as CSV, as `sqlite3 -csv -header FILE \"select * from T\"` does" },
    { 0, 8, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", SAVE_AS_CSV },
    { 0, 5, "%PDF-", "a PDF document", SAVE_AS_CSV },
    { 0, 8, "\x89PNG\r\n\x1a\n", "a PNG image", "write images as IDX, or their pixels as CSV" },
    { 0, 3, "\xff\xd8\xff", "a JPEG image", "write images as IDX, or their pixels as CSV" },
    { 0, 4, "GIF8", "a GIF image", "write images as IDX, or their pixels as CSV" },
    { 0, 4, "\xff\xfe\0\0", "UTF-32 text", "make it UTF-8 with `iconv -f UTF-32 -t UTF-8 FILE >rows`" },
    { 0, 4, "\0\0\xfe\xff", "UTF-32 text", "make it UTF-8 with `iconv -f UTF-32 -t UTF-8 FILE >rows`" },
    { 0, 2, "\xff\xfe", "UTF-16 text", "make it UTF-8 with `iconv -f UTF-16 -t UTF-8 FILE >rows`" },
    { 0, 2, "\xfe\xff", "UTF-16 text", "make it UTF-8 with `iconv -f UTF-16 -t UTF-8 FILE >rows`" },
    { 0, 2, "\x80\x02", "a Python pickle", SAVE_AS_CSV },
    { 0, 2, "\x80\x03", "a Python pickle", SAVE_AS_CSV },
    { 0, 2, "\x80\x04", "a Python pickle", SAVE_AS_CSV },
    { 0, 2, "\x80\x05", "a Python pickle", SAVE_AS_CSV },
};

/* A text may begin with the letters of a magic, so the bytes behind them must be binary, too. */
static bool is_magic(const magic *m, const unsigned char *data, size_t bytes) {
    if (bytes < m->at + m->n || memcmp(data + m->at, m->bytes, m->n) != 0) return false;
    if (memcmp(m->bytes, "BZh", 3) == 0)
        return bytes >= 10 && (memcmp(data + 4, "1AY&SY", 6) == 0 || memcmp(data + 4, "\x17rE8P\x90", 6) == 0);
    if (m->n != 4 || data[0] < 'A' || data[0] > 'Z') return true;
    for (size_t i = 0; i < bytes && i < 16; i++) /* PAR1, FEA1, GIF8: a line of text does not go on like this */
        if (data[i] < ' ' && data[i] != '\n' && data[i] != '\r' && data[i] != '\t') return true;
    return memcmp(data + bytes - 4, m->bytes, 4) == 0; /* PAR1 also stands at the end */
}

static bool holds(const unsigned char *data, size_t bytes, const char *word) {
    return memmem(data, bytes < 4096 ? bytes : 4096, word, strlen(word)) != NULL;
}

/* A zip archive is named by its contents. */
static plait_status check_zip(const char *name, const unsigned char *data, size_t bytes, plait_error *err) {
    if (bytes < 4 || (memcmp(data, "PK\3\4", 4) != 0 && memcmp(data, "PK\5\6", 4) != 0)) return PLAIT_OK;
    if (holds(data, bytes, "[Content_Types].xml") || holds(data, bytes, "mimetypeapplication/vnd.oasis"))
        return refuse(name, "a spreadsheet or another Office document", "save its table as CSV", err);
    if (holds(data, bytes, ".npy"))
        return refuse(name, "NumPy arrays (npz)",
                      "save each in a file of its own, as `numpy.save(\"rows.npy\", numpy.load(\"FILE\")[\"arr_0\"])` "
                      "does", err);
    return refuse(name, "a zip archive", "unpack it with `unzip FILE`, and give its files", err);
}

/* Is it text of two bytes a character without a byte-order mark? Then among its first bytes every second one, from
 * `zero` (0 or 1) on, is zero, and the rest is ASCII. */
static bool is_bare_utf16(const unsigned char *data, size_t bytes, size_t zero) {
    const size_t n = bytes < 64 ? bytes & ~(size_t)1 : 64;
    for (size_t i = 0; i < n; i++) {
        const bool ascii = (data[i] >= ' ' && data[i] <= '~') || (data[i] >= '\t' && data[i] <= '\r');
        if ((i & 1) == zero ? data[i] != 0 : !ascii) return false;
    }
    return n >= 8;
}

/* Is it a length of eight bytes, then JSON? train --out writes that. */
static bool is_safetensors(const unsigned char *data, size_t bytes) {
    uint64_t length = 0;
    for (size_t i = 0; bytes > 10 && i < 8; i++) length |= (uint64_t)data[i] << 8 * i;
    return bytes > 10 && length > 1 && length <= bytes - 8 && length < UINT32_MAX && memcmp(data + 8, "{\"", 2) == 0;
}

plait_status pli_foreign_check(const char *name, const unsigned char *data, size_t bytes, plait_error *err) {
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (is_magic(&magics[i], data, bytes)) return refuse(name, magics[i].what, magics[i].remedy, err);
    if (is_bare_utf16(data, bytes, 1))
        return refuse(name, "UTF-16 text", "make it UTF-8 with `iconv -f UTF-16LE -t UTF-8 FILE >rows`", err);
    if (is_bare_utf16(data, bytes, 0))
        return refuse(name, "UTF-16 text", "make it UTF-8 with `iconv -f UTF-16BE -t UTF-8 FILE >rows`", err);
    if (is_safetensors(data, bytes))
        return refuse(name, "a safetensors file, as models are",
                      "data are rows of text or idx; a model is named by --model-file or --init-model", err);
    return check_zip(name, data, bytes, err);
}

/* --- text ------------------------------------------------------------------------------------------------------- */

static bool begins(const unsigned char *p, const unsigned char *end, const char *word) {
    for (; *word != '\0'; word++, p++)
        if (p >= end || ((unsigned)(*p - 'A') < 26 ? *p | 32 : *p) != (unsigned char)*word) return false;
    return true;
}

static const unsigned char *skip_space(const unsigned char *p, const unsigned char *end) {
    while (p < end && (pli_is_space(*p) || *p == '\n' || *p == '\r')) p++;
    return p;
}

/* Does the text go on from its first number like a JSON array? "[1, 2]" does, "[1] as Smith says" does not. */
static bool is_number_array(const unsigned char *p, const unsigned char *end) {
    if (p < end && *p == '-') p++;
    if (p >= end || (unsigned)(*p - '0') >= 10) return false;
    while (p < end && ((unsigned)(*p - '0') < 10 || strchr("+-.eE", *p) != NULL) && *p != '\0') p++;
    p = skip_space(p, end);
    if (p >= end || *p == ',') return true;
    if (*p != ']') return false;
    const unsigned char *next = skip_space(p + 1, end);
    return next == end || (*next == '[' && memchr(p, '\n', (size_t)(next - p)) != NULL); /* one array on each line */
}

/* Is it a JSON object, or an array of objects or numbers? */
static bool is_json(const unsigned char *p, const unsigned char *end) {
    if (p >= end || (*p != '{' && *p != '[')) return false;
    const bool object = *p == '{';
    p = skip_space(p + 1, end);
    if (p >= end || *p == '"') return p < end;
    return object ? *p == '}' : *p == '{' || *p == '[' || *p == ']' || is_number_array(p, end);
}

#define NOT_JSON ", or say --format text or --format csv if it is one of these"

plait_status pli_foreign_check_text(const pli_source *source, plait_error *err) {
    static const char lines[] =
        "write its rows as CSV, as `pandas.read_json(\"FILE\", lines=True).to_csv(\"rows.csv\", index=False)` "
        "does" NOT_JSON;
    static const char array[] =
        "write its rows as CSV, as `pandas.read_json(\"FILE\").to_csv(\"rows.csv\", index=False)` does" NOT_JSON;
    const unsigned char *p = source->data + source->begin, *end = source->data + source->bytes;
    p = skip_space(p, end);
    if (is_json(p, end)) return refuse(source->path, "JSON", *p == '{' ? lines : array, err);
    if (begins(p, end, "<!doctype") || begins(p, end, "<html") || begins(p, end, "<?xml"))
        return refuse(source->path, "HTML or XML", "if it was downloaded, the download is a web page and not the data",
                      err);
    if (begins(p, end, "@relation"))
        return refuse(source->path, "a Weka ARFF table", "take the lines behind @data as CSV", err);
    return PLAIT_OK;
}
