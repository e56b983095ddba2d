// Fused attention and rotary embedding.
#include "operator.h"

namespace {

// Brings a layout to batch, heads, positions, width; undone by the second function.
Tensor to_heads(const Tensor& self, const std::string& layout, int64_t heads) {
  if (layout == "BNSD") return self;
  if (layout == "BSND") return self.transpose(1, 2);
  if (layout == "BSH") return self.unflatten(-1, {heads, -1}).transpose(1, 2);
  if (layout == "SBH") return self.unflatten(-1, {heads, -1}).permute({1, 2, 0, 3});
  TORCH_CHECK(false, "attention in the layout ", layout, " is not simulated");
}

Tensor from_heads(const Tensor& self, const std::string& layout) {
  if (layout == "BNSD") return self;
  if (layout == "BSND") return self.transpose(1, 2);
  if (layout == "BSH") return self.transpose(1, 2).flatten(2);
  return self.permute({2, 0, 1, 3}).flatten(2);
}

// Which key positions a query position may not see.
Tensor hidden_positions(const Tensor& mask, int64_t sparse_mode, int64_t queries, int64_t keys) {
  if (sparse_mode == 2) return at::ones({queries, keys}, at::kBool).triu(1);
  if (sparse_mode == 3) return at::ones({queries, keys}, at::kBool).triu(1 + keys - queries);
  TORCH_CHECK(sparse_mode <= 1, "attention in sparse mode ", sparse_mode, " is not simulated");
  return mask.defined() ? mask.to(at::kBool) : Tensor();
}

}  // namespace

OPERATOR(FlashAttentionScore, Tensor query, Tensor key, Tensor value, Tensor shift, Tensor dropped,
         Tensor, Tensor mask, Ints, double scale, double keep, int64_t, int64_t, int64_t heads,
         std::string layout, int64_t, int64_t sparse_mode, Out maximum, Out sum, Out, Out out) {
  TORCH_CHECK(keep >= 1 && !(dropped.defined() && dropped.numel() > 0),
              "attention with dropout is not simulated");
  const Tensor q = to_heads(query, layout, heads).to(at::kFloat);
  const int64_t width = q.size(-1);
  const int64_t key_heads = layout == "BNSD"   ? key.size(1)
                            : layout == "BSND" ? key.size(2)
                                               : key.size(-1) / width;
  const int64_t group = heads / key_heads;
  const Tensor k = to_heads(key, layout, key_heads).to(at::kFloat).repeat_interleave(group, 1);
  const Tensor v = to_heads(value, layout, key_heads).to(at::kFloat).repeat_interleave(group, 1);

  Tensor scores = at::matmul(q, k.transpose(-2, -1)) * scale;
  if (shift.defined() && shift.numel() > 0) scores = scores + shift;
  const Tensor hidden = hidden_positions(mask, sparse_mode, q.size(-2), k.size(-2));
  if (hidden.defined() && hidden.numel() > 0)
    scores = scores.masked_fill(hidden, -std::numeric_limits<float>::infinity());

  const Tensor most = at::amax(scores, {-1}, true);
  const Tensor weights = at::exp(scores - most);
  const Tensor total = weights.sum(-1, true);
  out = from_heads(at::matmul(weights / total, v), layout);
  if (maximum.numel() > 0) maximum = most.expand(maximum.sizes());
  if (sum.numel() > 0) sum = total.expand(sum.sizes());
}

namespace {

Tensor rotated(const Tensor& self, int64_t mode) {
  if (mode == 0) {
    const auto halves = self.chunk(2, -1);
    return at::cat({-halves[1], halves[0]}, -1);
  }
  TORCH_CHECK(mode == 1, "rotary mode ", mode, " is not simulated");
  const auto pairs = self.unflatten(-1, {-1, 2});
  return at::stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1).flatten(-2);
}

}  // namespace

OPERATOR(RotaryPositionEmbedding, Tensor self, Tensor cos, Tensor sin, int64_t mode, Out out) {
  const Tensor wide = self.to(at::kFloat);
  out = wide * cos + rotated(wide, mode) * sin;
}
