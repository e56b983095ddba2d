// What stands behind aclnn's opaque pointers.
#pragma once

#include <memory>

#include "torch_headers.h"

struct aclTensor {
  at::ScalarType dtype;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  void* data;  // of the first element, the storage offset applied

  at::Tensor open() const;
};

struct aclScalar {
  at::Scalar value;
};

struct aclIntArray {
  std::vector<int64_t> values;
};

struct aclFloatArray {
  std::vector<float> values;
};

struct aclBoolArray {
  std::vector<uint8_t> values;
};

// Both lists own their elements: op-plugin destroys the list only.
struct aclTensorList {
  std::vector<const aclTensor*> elements;
};

struct aclScalarList {
  std::vector<const aclScalar*> elements;
};

namespace sim {

at::ScalarType torch_type(int acl_type);

}  // namespace sim
