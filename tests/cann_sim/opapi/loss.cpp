// Losses and their gradients.
#include "operator.h"

namespace {

std::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt;
}

}  // namespace

#define LOSS(Name, function)                                                        \
  OPERATOR(Name, Tensor self, Tensor target, int64_t reduction, Out out) {          \
    out = function(self, target, reduction);                                        \
  }

LOSS(MseLoss, at::mse_loss)
LOSS(L1Loss, at::l1_loss)
LOSS(SoftMarginLoss, at::soft_margin_loss)

OPERATOR(MseLossBackward, Tensor grad, Tensor self, Tensor target, int64_t reduction, Out out) {
  out = at::mse_loss_backward(grad, self, target, reduction);
}
OPERATOR(L1LossBackward, Tensor grad, Tensor self, Tensor target, int64_t reduction, Out out) {
  const Tensor sign = at::sign(self - target) * grad;
  out = reduction == at::Reduction::Mean ? sign / self.numel() : sign;
}
OPERATOR(SmoothL1Loss, Tensor self, Tensor target, int64_t reduction, float beta, Out out) {
  out = at::smooth_l1_loss(self, target, reduction, beta);
}
OPERATOR(SmoothL1LossBackward, Tensor grad, Tensor self, Tensor target, int64_t reduction,
         float beta, Out out) {
  out = at::smooth_l1_loss_backward(grad, self, target, reduction, beta);
}

OPERATOR(BinaryCrossEntropy, Tensor self, Tensor target, Tensor weight, int64_t reduction,
         Out out) {
  out = at::binary_cross_entropy(self, target, if_defined(weight), reduction);
}
OPERATOR(BinaryCrossEntropyBackward, Tensor grad, Tensor self, Tensor target, Tensor weight,
         int64_t reduction, Out out) {
  out = at::binary_cross_entropy_backward(grad, self, target, if_defined(weight), reduction);
}
OPERATOR(BinaryCrossEntropyWithLogits, Tensor self, Tensor target, Tensor weight, Tensor positive,
         int64_t reduction, Out out) {
  out = at::binary_cross_entropy_with_logits(self, target, if_defined(weight),
                                             if_defined(positive), reduction);
}

OPERATOR(KlDiv, Tensor self, Tensor target, int64_t reduction, bool log_target, Out out) {
  out = at::kl_div(self, target, reduction, log_target);
}

OPERATOR(NLLLoss, Tensor self, Tensor target, Tensor weight, int64_t reduction, int64_t ignored,
         Out out, Out total) {
  auto [loss, sum] = at::nll_loss_forward(self, target.to(at::kLong), if_defined(weight),
                                          reduction, ignored);
  out = loss;
  total = sum.reshape(total.sizes());
}
OPERATOR(NLLLossBackward, Tensor grad, Tensor self, Tensor target, Tensor weight,
         int64_t reduction, int64_t ignored, Tensor total, Out out) {
  out = at::nll_loss_backward(grad, self, target.to(at::kLong), if_defined(weight), reduction,
                              ignored, total.reshape({}));
}
OPERATOR(NLLLoss2d, Tensor self, Tensor target, Tensor weight, int64_t reduction, int64_t ignored,
         Out out, Out total) {
  auto [loss, sum] = at::nll_loss2d_forward(self, target.to(at::kLong), if_defined(weight),
                                            reduction, ignored);
  out = loss;
  total = sum.reshape(total.sizes());
}
OPERATOR(NLLLoss2dBackward, Tensor grad, Tensor self, Tensor target, Tensor weight,
         int64_t reduction, int64_t ignored, Tensor total, Out out) {
  out = at::nll_loss2d_backward(grad, self, target.to(at::kLong), if_defined(weight), reduction,
                                ignored, total.reshape({}));
}

OPERATOR(BinaryCrossEntropyWithLogitsBackward, Tensor grad, Tensor self, Tensor target,
         Tensor weight, Tensor positive, int64_t reduction, Out out) {
  // With p = positive: d/dx = (1 - y + p y) sigmoid(x) - p y.
  const Tensor hits = positive.defined() ? target * positive : target;
  Tensor slope = (1 - target + hits) * at::sigmoid(self) - hits;
  if (weight.defined()) slope = slope * weight;
  slope = slope * grad;
  out = reduction == at::Reduction::Mean ? slope / self.numel() : slope;
}
OPERATOR(SoftMarginLossBackward, Tensor grad, Tensor self, Tensor target, int64_t reduction,
         Out out) {
  out = at::soft_margin_loss_backward(grad, self, target, reduction);
}
OPERATOR(KlDivBackward, Tensor grad, Tensor self, Tensor target, int64_t reduction,
         bool log_target, Out out) {
  Tensor slope = log_target ? -at::exp(target) : at::where(target > 0, -target, 0);
  slope = (slope * grad).broadcast_to(self.sizes());
  out = reduction == at::Reduction::Mean ? slope / self.numel() : slope;
}
OPERATOR(KlDivTargetBackward, Tensor grad, Tensor self, Tensor target, int64_t reduction,
         bool log_target, Out out) {
  const Tensor slope = log_target ? at::exp(target) * (target + 1 - self)
                                  : at::where(target > 0, at::log(target) + 1 - self, 0);
  const Tensor scaled = (slope * grad).broadcast_to(out.sizes());
  out = reduction == at::Reduction::Mean ? scaled / target.numel() : scaled;
}
OPERATOR(MultilabelMarginLoss, Tensor self, Tensor target, int64_t reduction, Out out,
         Out is_target) {
  auto [loss, hit] =
      at::multilabel_margin_loss_forward(self, target.to(at::kLong), reduction);
  out = loss;
  is_target = hit;
}

OPERATOR(CtcLoss, Tensor probabilities, Tensor targets, Ints input_lengths, Ints target_lengths,
         int64_t blank, bool zero_infinity, Out loss, Out alpha) {
  auto [negative, forward] = at::_ctc_loss(probabilities, targets, input_lengths, target_lengths,
                                           blank, zero_infinity);
  loss = negative;
  // A device pads the last dimension; the gradient below cuts it off again.
  alpha.fill_(-std::numeric_limits<float>::infinity());
  alpha.slice(-1, 0, forward.size(-1)).copy_(forward);
}
OPERATOR(CtcLossBackward, Tensor grad, Tensor probabilities, Tensor targets, Ints input_lengths,
         Ints target_lengths, Tensor loss, Tensor alpha, int64_t blank, bool zero_infinity,
         Out out) {
  const int64_t longest = *std::max_element(target_lengths.begin(), target_lengths.end());
  out = at::_ctc_loss_backward(grad, probabilities, targets, input_lengths, target_lengths, loss,
                               alpha.slice(-1, 0, 2 * longest + 1), blank, zero_infinity);
}
