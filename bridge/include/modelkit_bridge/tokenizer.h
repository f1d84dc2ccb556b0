/* Tokenizers: the C interface of the bridge (bridge/src/tokenizer.rs).
 *
 * Made from a tokenizer.json, or from BERT's vocab.txt. What the file says of truncation and padding does not count:
 * truncation is chosen here, padding is the caller's. Encoding may be done by several threads.
 *
 * Text is UTF-8 with a length. Functions return 0 on success and -1 on failure, with a message in *error. Calls never
 * unwind into the caller. Every MkbBuffer that was filled is released with mkb_buffer_free.
 */
#ifndef MODELKIT_BRIDGE_TOKENIZER_H
#define MODELKIT_BRIDGE_TOKENIZER_H

#include "modelkit_bridge/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MkbTokenizer MkbTokenizer;

typedef struct MkbText {
  const uint8_t* data;
  size_t size;
} MkbText;

typedef struct MkbBertOptions {
  int32_t lower_case;
  int32_t strip_accents; /* 1, 0, or -1: as lower_case says */
  int32_t split_chinese;
  MkbText unknown; /* these three must be in the vocabulary */
  MkbText separator;
  MkbText class_token;
  MkbText padding;
  MkbText mask;
} MkbBertOptions;

int32_t mkb_tokenizer_open(const uint8_t* json, size_t json_size, MkbTokenizer** tokenizer, MkbBuffer* error);
int32_t mkb_tokenizer_open_bert(MkbText vocabulary_path, const MkbBertOptions* options, MkbTokenizer** tokenizer,
                                MkbBuffer* error);
void mkb_tokenizer_close(MkbTokenizer* tokenizer);

/* The id of a token; -1 where there is no such token. */
int64_t mkb_tokenizer_token_id(const MkbTokenizer* tokenizer, MkbText token);

/* At most this many tokens, special ones included; of a pair the longer text is cut first. `left` cuts the beginning.
 */
int32_t mkb_tokenizer_truncate(MkbTokenizer* tokenizer, size_t max_length, int32_t left, MkbBuffer* error);

/* A text, or two (`pair` is null where there is one), with the special tokens. *tokens gets the ids, then as many type
 * ids, each a little-endian uint32. */
int32_t mkb_tokenizer_encode(const MkbTokenizer* tokenizer, MkbText text, const MkbText* pair, MkbBuffer* tokens,
                             MkbBuffer* error);

#ifdef __cplusplus
}
#endif

#endif
