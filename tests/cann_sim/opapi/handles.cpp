// Making and destroying handles. This runs on the thread that launches an operator, under
// whatever modes the user has set there, so nothing here may dispatch a PyTorch operator.
#include "handles.h"

#include <algorithm>
#include <cstring>

#include "export.h"

namespace sim {

at::ScalarType torch_type(int acl_type) {
  switch (acl_type) {
    case 0: return at::kFloat;
    case 1: return at::kHalf;
    case 2: return at::kChar;
    case 3: return at::kInt;
    case 4: return at::kByte;
    case 6: return at::kShort;
    case 7: return at::kUInt16;
    case 8: return at::kUInt32;
    case 9: return at::kLong;
    case 10: return at::kUInt64;
    case 11: return at::kDouble;
    case 12: return at::kBool;
    case 16: return at::kComplexFloat;
    case 17: return at::kComplexDouble;
    case 27: return at::kBFloat16;
    case 33: return at::kComplexHalf;
    case 35: return at::kFloat8_e5m2;
    case 36: return at::kFloat8_e4m3fn;
    default: TORCH_CHECK(false, "the simulated device has no data type ", acl_type);
  }
}

}  // namespace sim

at::Tensor aclTensor::open() const {
  return at::from_blob(data, sizes, strides, at::TensorOptions().dtype(dtype));
}

using sim::torch_type;

SIM_EXPORT aclTensor* aclCreateTensor(const int64_t* sizes, uint64_t dimensions, int type,
                                      const int64_t* strides, int64_t offset, int,
                                      const int64_t*, uint64_t, void* storage) {
  const at::ScalarType dtype = torch_type(type);
  char* first = static_cast<char*>(storage);
  if (first != nullptr) first += offset * static_cast<int64_t>(c10::elementSize(dtype));
  return new aclTensor{dtype, {sizes, sizes + dimensions}, {strides, strides + dimensions}, first};
}

SIM_EXPORT int aclDestroyTensor(const aclTensor* tensor) {
  delete tensor;
  return 0;
}

SIM_EXPORT int aclGetViewShape(const aclTensor* tensor, int64_t** sizes, uint64_t* dimensions) {
  *dimensions = tensor->sizes.size();
  *sizes = new int64_t[tensor->sizes.size()];  // the caller deletes it
  std::copy(tensor->sizes.begin(), tensor->sizes.end(), *sizes);
  return 0;
}

SIM_EXPORT aclScalar* aclCreateScalar(const void* value, int type) {
  switch (torch_type(type)) {
    case at::kDouble: return new aclScalar{*static_cast<const double*>(value)};
    case at::kFloat: return new aclScalar{*static_cast<const float*>(value)};
    case at::kLong: return new aclScalar{*static_cast<const int64_t*>(value)};
    case at::kInt: return new aclScalar{*static_cast<const int32_t*>(value)};
    case at::kBool: return new aclScalar{*static_cast<const bool*>(value)};
    case at::kComplexDouble:
      return new aclScalar{*static_cast<const c10::complex<double>*>(value)};
    default: return nullptr;
  }
}

SIM_EXPORT int aclDestroyScalar(const aclScalar* scalar) {
  delete scalar;
  return 0;
}

SIM_EXPORT aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t size) {
  return new aclIntArray{{values, values + size}};
}

SIM_EXPORT int aclDestroyIntArray(const aclIntArray* array) {
  delete array;
  return 0;
}

SIM_EXPORT aclFloatArray* aclCreateFloatArray(const float* values, uint64_t size) {
  return new aclFloatArray{{values, values + size}};
}

SIM_EXPORT int aclDestroyFloatArray(const aclFloatArray* array) {
  delete array;
  return 0;
}

SIM_EXPORT aclBoolArray* aclCreateBoolArray(const bool* values, uint64_t size) {
  return new aclBoolArray{{values, values + size}};
}

SIM_EXPORT int aclDestroyBoolArray(const aclBoolArray* array) {
  delete array;
  return 0;
}

SIM_EXPORT aclTensorList* aclCreateTensorList(const aclTensor* const* tensors, uint64_t size) {
  return new aclTensorList{{tensors, tensors + size}};
}

SIM_EXPORT int aclDestroyTensorList(const aclTensorList* list) {
  for (const aclTensor* tensor : list->elements) delete tensor;
  delete list;
  return 0;
}

SIM_EXPORT aclScalarList* aclCreateScalarList(const aclScalar* const* scalars, uint64_t size) {
  return new aclScalarList{{scalars, scalars + size}};
}

SIM_EXPORT int aclDestroyScalarList(const aclScalarList* list) {
  for (const aclScalar* scalar : list->elements) delete scalar;
  delete list;
  return 0;
}
