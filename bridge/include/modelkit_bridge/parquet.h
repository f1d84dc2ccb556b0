/* Parquet files read row by row: the C interface of the bridge (bridge/src/parquet_file.rs).
 *
 * A file is opened once; a cursor walks chosen rows of chosen columns forwards, one row group at a time, so that memory
 * stays at a few pages whatever the file's size. Every compression and encoding that data sets use is read.
 * Calls never unwind into the caller: a panic below is an error. A file may be used by several threads, a cursor by
 * one.
 *
 * Text is UTF-8 with a length. Functions return 0 on success and -1 on failure, with a message in *error.
 * Every MkbBuffer that was filled is released with mkb_buffer_free; an empty one may be.
 */
#ifndef MODELKIT_BRIDGE_PARQUET_H
#define MODELKIT_BRIDGE_PARQUET_H

#include "modelkit_bridge/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MkbParquet MkbParquet;
typedef struct MkbCursor MkbCursor;

int32_t mkb_parquet_open(const uint8_t* path, size_t path_size, MkbParquet** file, MkbBuffer* error);
void mkb_parquet_close(MkbParquet* file);

uint64_t mkb_parquet_row_count(const MkbParquet* file);

/* A row as in mkb_cursor_next, with two fields: "columns", the list of the names, in the file's order, and "metadata",
 * a struct of the file's key-value texts ("huggingface": JSON of the features). */
int32_t mkb_parquet_describe(const MkbParquet* file, MkbBuffer* row, MkbBuffer* error);

/* Columns by their index among the names; rows in ascending order. The cursor outlives the file. */
int32_t mkb_parquet_cursor(const MkbParquet* file, const uint32_t* columns, size_t column_count, const uint64_t* rows,
                           size_t row_count, MkbCursor** cursor, MkbBuffer* error);
void mkb_cursor_close(MkbCursor* cursor);

/* The next row into *row, whose memory is used again when it has some. Returns 1 for a row, 0 at the end, -1 on
 * failure. A row is a struct value. A value is a tag byte and what follows it; numbers are little-endian: 0 null    1
 * false    2 true    3 int64    4 uint64 (above int64)    5 float64 6 text: u64 length, bytes      7 bytes: u64 length,
 * bytes 8 list: u64 count, values      9 struct: u64 count, then for each field u64 length, name, value Dates and times
 * are integers in the unit of their type, decimals are texts, a map is a list of [key, value] lists. */
int32_t mkb_cursor_next(MkbCursor* cursor, MkbBuffer* row, MkbBuffer* error);

#ifdef __cplusplus
}
#endif

#endif
