// Random numbers: a function of seed and offset, which torch_npu's generator hands out. They are
// not a device's numbers.
#include "operator.h"

namespace {

at::Generator generator(uint64_t seed, uint64_t offset) {
  return at::make_generator<at::CPUGeneratorImpl>(seed + offset * 0x9E3779B97F4A7C15u);
}

// Eight elements to a byte, the first in the lowest bit; a set bit keeps the element.
void pack(const Tensor& keep, Out& mask) {
  const Tensor flat = keep.flatten().contiguous();
  const bool* kept = flat.const_data_ptr<bool>();
  mask.zero_();
  auto* bytes = mask.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < flat.numel(); ++i)
    bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | (kept[i] ? 1u << (i % 8) : 0u));
}

Tensor unpacked(const Tensor& mask, at::IntArrayRef shape) {
  Tensor keep = at::empty(shape, at::kBool);
  const auto* bytes = mask.const_data_ptr<uint8_t>();
  bool* kept = keep.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < keep.numel(); ++i) kept[i] = (bytes[i / 8] >> (i % 8)) & 1;
  return keep;
}

void generate_mask(const Ints& shape, double p, uint64_t seed, uint64_t offset, Out& mask) {
  pack(at::empty(shape, at::kBool).bernoulli_(1 - p, generator(seed, offset)), mask);
}

}  // namespace

OPERATOR(InplaceUniform, Out self, double from, double to, uint64_t seed, uint64_t offset) {
  self.uniform_(from, to, generator(seed, offset));
}
OPERATOR(InplaceNormal, Out self, float mean, float deviation, uint64_t seed, uint64_t offset) {
  self.normal_(mean, deviation, generator(seed, offset));
}
OPERATOR(NormalFloatFloat, float mean, float deviation, uint64_t seed, uint64_t offset, Out out) {
  out.normal_(mean, deviation, generator(seed, offset));
}
OPERATOR(NormalTensorFloat, Tensor mean, float deviation, uint64_t seed, uint64_t offset,
         Out out) {
  out = at::normal(mean, deviation, generator(seed, offset));
}
OPERATOR(NormalFloatTensor, float mean, Tensor deviation, uint64_t seed, uint64_t offset,
         Out out) {
  out = at::normal(mean, deviation, generator(seed, offset));
}
OPERATOR(NormalTensorTensor, Tensor mean, Tensor deviation, uint64_t seed, uint64_t offset,
         Out out) {
  out = at::normal(mean, deviation, generator(seed, offset));
}
OPERATOR(InplaceRandom, Out self, int64_t from, int64_t to, uint64_t seed, uint64_t offset) {
  self.random_(from, to, generator(seed, offset));
}
OPERATOR(InplaceRandomWithoutFromTo, Out self, uint64_t seed, uint64_t offset) {
  self.random_(generator(seed, offset));
}
OPERATOR(InplaceBernoulli, Out self, Scalar p, uint64_t seed, uint64_t offset) {
  self.bernoulli_(p.toDouble(), generator(seed, offset));
}
OPERATOR(InplaceBernoulliTensor, Out self, Tensor p, uint64_t seed, uint64_t offset) {
  self.bernoulli_(p, generator(seed, offset));
}
OPERATOR(SimThreadExponential, Out self, int64_t, double lambda, uint64_t seed, uint64_t offset) {
  self.exponential_(lambda, generator(seed, offset));
}
OPERATOR(Randperm, int64_t n, uint64_t seed, uint64_t offset, Out out) {
  out = at::randperm(n, generator(seed, offset), at::kLong);
}
OPERATOR(Multinomial, Tensor self, int64_t samples, bool replacement, uint64_t seed,
         uint64_t offset, Out out) {
  out = at::multinomial(self, samples, replacement, generator(seed, offset));
}

OPERATOR(DropoutGenMask, Ints shape, double p, uint64_t seed, uint64_t offset, Out mask) {
  generate_mask(shape, p, seed, offset, mask);
}
OPERATOR(DropoutGenMaskV2, Ints shape, double p, uint64_t seed, uint64_t offset, DType, Out mask) {
  generate_mask(shape, p, seed, offset, mask);
}
OPERATOR(DropoutDoMask, Tensor self, Tensor mask, double p, Out out) {
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  out = self * unpacked(mask, self.sizes()) * scale;
}
OPERATOR(RReluWithNoise, Tensor self, Out noise, Scalar lower, Scalar upper, bool training,
         uint64_t seed, uint64_t offset, Out out) {
  Tensor drawn = at::empty_like(self);
  out = at::rrelu_with_noise(self, drawn, lower, upper, training, generator(seed, offset));
  if (training) noise = drawn;
}
