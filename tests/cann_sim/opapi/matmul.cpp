// Matrix products and linear algebra.
#include "operator.h"

OPERATOR(Mm, Tensor self, Tensor other, Out out, int8_t) { out = at::mm(self, other); }
OPERATOR(Matmul, Tensor self, Tensor other, Out out, int8_t) { out = at::matmul(self, other); }
OPERATOR(BatchMatMul, Tensor self, Tensor other, Out out, int8_t) { out = at::bmm(self, other); }
OPERATOR(Mv, Tensor self, Tensor vector, Out out, int8_t) { out = at::mv(self, vector); }
OPERATOR(Dot, Tensor self, Tensor other, Out out) { out = at::dot(self, other); }

OPERATOR(Addmm, Tensor self, Tensor first, Tensor second, Scalar beta, Scalar alpha, Out out,
         int8_t) {
  out = at::addmm(self, first, second, beta, alpha);
}
OPERATOR(InplaceAddmm, Out self, Tensor first, Tensor second, Scalar beta, Scalar alpha, int8_t) {
  self = at::addmm(self, first, second, beta, alpha);
}
OPERATOR(Baddbmm, Tensor self, Tensor first, Tensor second, Scalar beta, Scalar alpha, Out out,
         int8_t) {
  out = at::baddbmm(self, first, second, beta, alpha);
}
OPERATOR(InplaceBaddbmm, Out self, Tensor first, Tensor second, Scalar beta, Scalar alpha,
         int8_t) {
  self = at::baddbmm(self, first, second, beta, alpha);
}
OPERATOR(Addbmm, Tensor self, Tensor first, Tensor second, Scalar beta, Scalar alpha, Out out,
         int8_t) {
  out = at::addbmm(self, first, second, beta, alpha);
}
OPERATOR(InplaceAddbmm, Out self, Tensor first, Tensor second, Scalar beta, Scalar alpha, int8_t) {
  self = at::addbmm(self, first, second, beta, alpha);
}
// Unlike all others, alpha comes first here.
OPERATOR(Addmv, Tensor self, Tensor matrix, Tensor vector, Scalar alpha, Scalar beta, Out out,
         int8_t) {
  out = at::addmv(self, matrix, vector, beta, alpha);
}
OPERATOR(Addr, Tensor self, Tensor first, Tensor second, Scalar beta, Scalar alpha, Out out) {
  out = at::addr(self, first, second, beta, alpha);
}

OPERATOR(Inverse, Tensor self, Out out) { out = at::inverse(self); }
OPERATOR(LinalgCholesky, Tensor self, bool upper, Out out) {
  out = at::linalg_cholesky(self, upper);
}
OPERATOR(LinalgCross, Tensor self, Tensor other, int64_t dim, Out out) {
  out = at::linalg_cross(self, other, dim);
}
OPERATOR(LinalgQr, Tensor self, int64_t mode, Out q, Out r) {
  constexpr std::array modes = {"reduced", "complete", "r"};
  auto [orthogonal, triangular] = at::linalg_qr(self, modes.at(mode));
  if (mode != 2) q = orthogonal;
  r = triangular;
}
OPERATOR(Slogdet, Tensor self, Out sign, Out logarithm) {
  auto [s, l] = at::slogdet(self);
  sign = s;
  logarithm = l;
}
OPERATOR(Svd, Tensor self, bool full_matrices, bool compute_uv, Out s, Out u, Out v) {
  if (!compute_uv) {
    s = at::linalg_svdvals(self);
    return;
  }
  auto [left, values, right] = at::linalg_svd(self, full_matrices);
  s = values;
  u = left;
  v = right.mH();
}
OPERATOR(TriangularSolve, Tensor self, Tensor a, bool upper, bool transpose, bool unitriangular,
         Out x, Out m) {
  auto [solution, copy] = at::triangular_solve(self, a, upper, transpose, unitriangular);
  x = solution;
  m = copy;
}

OPERATOR(Cdist, Tensor first, Tensor second, float p, int64_t mode, Out out) {
  out = at::cdist(first, second, p, mode);
}
OPERATOR(Pdist, Tensor self, float p, Out out) { out = at::pdist(self, p); }
OPERATOR(CdistBackward, Tensor grad, Tensor first, Tensor second, Tensor distance, float p,
         Out out) {
  out = at::_cdist_backward(grad, first, second, p < 0 ? INFINITY : p, distance);
}
