#include "operator.h"
OPERATOR(Abs, Tensor self, Out out) { out = at::abs(self); }
OPERATOR(InplaceCopy, Out self, Tensor source) { self.copy_(source); }
OPERATOR(Add, Tensor self, Tensor other, Scalar alpha, Out out) { out = at::add(self, other, alpha); }
OPERATOR(Adds, Tensor self, Scalar other, Scalar alpha, Out out) { out = at::add(self, other, alpha); }
