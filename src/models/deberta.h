#pragma once
// DeBERTa (He et al. 2020) and DeBERTaV2 (He et al. 2021): BERT whose attention knows distances by embeddings of their
// own. The two differ in the attention.

#include <cstdint>
#include <string>

#include "models/bert.h"

namespace mk::models {

struct DebertaConfig : BertConfig {
  bool second = false;  // DeBERTaV2
  bool relative_attention = false;
  bool position_biased_input = true;  // positions are among the embeddings
  std::int64_t position_kinds = 0;    // how many pos_att_type names
  bool c2p = false, p2c = false;      // which: content to position, position to content
  std::int64_t max_relative_positions = 0;
  std::int64_t pooler_hidden_size = 0;
  std::string pooler_hidden_act = "gelu";
  bool legacy = true;         // the head of masked tokens
  bool talking_head = false;  // the first's

  // The second's.
  std::int64_t position_buckets = -1;  // none below 1
  bool share_att_key = false;
  bool norm_rel_ebd = false;
  std::int64_t conv_kernel_size = 0, conv_groups = 1;
  std::string conv_act = "tanh";

  static DebertaConfig read(const Family& family, ConfigReader& fields);
  // Embeddings there are of distances to one side.
  std::int64_t span() const { return second && position_buckets > 0 ? position_buckets : max_relative_positions; }
};

// x [batch, sequence, hidden_size], mask bool [batch, 1, sequence, sequence] or empty, `distances` [2 * span,
// hidden_size] or empty.
Value deberta_attention(const Scope& s, const DebertaConfig& c, Value x, Value mask, Value distances);

}  // namespace mk::models
