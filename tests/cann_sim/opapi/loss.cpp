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
