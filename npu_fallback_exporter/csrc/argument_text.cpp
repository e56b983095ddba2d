#include "argument_text.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace nfe {
namespace {

constexpr std::size_t kMaxJsonBytes = 4096;
constexpr std::size_t kMaxWordsBytes = 400;
constexpr std::size_t kMaxItems = 16;
constexpr std::size_t kMaxStringBytes = 128;

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char character : text.substr(0, kMaxStringBytes)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\') {
      result += character;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      result += escaped;
    }
  }
  return result + "\"";
}

std::string number(double value) {
  if (std::isnan(value)) return "{\"float\":\"nan\"}";
  if (std::isinf(value)) return value > 0 ? "{\"float\":\"inf\"}" : "{\"float\":\"-inf\"}";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  std::string result = text;
  // A float stays a float when it is read back.
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

std::string numbers(at::IntArrayRef values, const char* separator) {
  std::string text = "[";
  for (std::size_t index = 0; index < values.size(); ++index) {
    if (index != 0) text += separator;
    text += std::to_string(values[index]);
  }
  return text + "]";
}

std::string dtype_name(c10::ScalarType type) { return std::string(c10::getDtypeNames(type).first); }

std::string tensor_json(const at::Tensor& tensor) {
  std::string text = "{\"tensor\":" + numbers(tensor.sizes(), ",") + ",\"dtype\":" +
                     json_string(dtype_name(tensor.scalar_type())) + ",\"device\":" +
                     json_string(tensor.is_privateuseone() ? "npu" : tensor.device().str());
  if (tensor.layout() != c10::kStrided) {
    text += ",\"layout\":" + std::to_string(static_cast<int>(tensor.layout()));
  } else if (!tensor.is_contiguous()) {
    text += ",\"strides\":" + numbers(tensor.strides(), ",");
  }
  return text + "}";
}

// The kind of a type, looking through Optional.
c10::TypeKind kind_of(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return optional == nullptr ? type->kind() : optional->getElementType()->kind();
}

std::string value_json(const c10::IValue& value, c10::TypeKind kind);

std::string list_json(c10::ArrayRef<c10::IValue> items) {
  std::string text = "{\"list\":[";
  const std::size_t told = std::min(items.size(), kMaxItems);
  for (std::size_t index = 0; index < told; ++index) {
    if (index != 0) text += ",";
    text += value_json(items[index], c10::TypeKind::AnyType);
  }
  text += "]";
  if (told < items.size()) text += ",\"more\":" + std::to_string(items.size() - told);
  return text + "}";
}

std::string int_json(std::int64_t value, c10::TypeKind kind) {
  switch (kind) {  // what the dispatcher passes as a number
    case c10::TypeKind::ScalarTypeType:
      return "{\"dtype\":" + json_string(dtype_name(static_cast<c10::ScalarType>(value))) + "}";
    case c10::TypeKind::LayoutType:
      return "{\"layout\":" + std::to_string(value) + "}";
    case c10::TypeKind::MemoryFormatType:
      return "{\"memory_format\":" + std::to_string(value) + "}";
    default:
      return std::to_string(value);
  }
}

std::string value_json(const c10::IValue& value, c10::TypeKind kind) {
  if (value.isNone()) return "null";
  if (value.isTensor()) return value.toTensor().defined() ? tensor_json(value.toTensor()) : "null";
  if (value.isBool()) return value.toBool() ? "true" : "false";
  if (value.isInt()) return int_json(value.toInt(), kind);
  if (value.isDouble()) return number(value.toDouble());
  if (value.isString()) return json_string(value.toStringRef());
  if (value.isDevice()) {
    const at::Device device = value.toDevice();
    return "{\"device\":" + json_string(device.is_privateuseone() ? "npu" : device.str()) + "}";
  }
  if (value.isComplexDouble()) {
    const auto pair = value.toComplexDouble();
    return "{\"complex\":[" + number(pair.real()) + "," + number(pair.imag()) + "]}";
  }
  if (value.isGenerator()) return "{\"generator\":true}";
  if (value.isList()) {
    const auto items = value.toList().vec();
    return list_json(items);
  }
  return "{\"other\":" + json_string(value.tagKind()) + "}";
}

std::string tensor_words(const at::Tensor& tensor) {
  return tensor.defined() ? dtype_name(tensor.scalar_type()) + numbers(tensor.sizes(), ", ")
                          : std::string("none");
}

std::string value_words(const c10::IValue& value) {
  if (value.isTensor()) return tensor_words(value.toTensor());
  if (!value.isTensorList() && !value.isOptionalTensorList()) return "";
  const auto items = value.toListRef();
  std::string text = "list of " + std::to_string(items.size());
  if (!items.empty() && items.front().isTensor()) {
    text += ", first " + tensor_words(items.front().toTensor());
  }
  return text;
}

}  // namespace

ArgumentText describe_arguments(const c10::FunctionSchema& schema, std::size_t arguments,
                                const torch::jit::Stack& stack) {
  ArgumentText text;
  const std::size_t begin = stack.size() - arguments;
  text.json = "{\"arguments\":[";
  for (std::size_t index = 0; index < arguments; ++index) {
    const c10::Argument& argument = schema.arguments()[index];
    const c10::IValue& value = stack[begin + index];
    if (index != 0) text.json += ",";
    text.json += "{\"name\":" + json_string(argument.name());
    if (argument.kwarg_only()) text.json += ",\"keyword\":true";
    text.json += ",\"value\":" + value_json(value, kind_of(argument.real_type())) + "}";
    const std::string words = value_words(value);
    if (words.empty() || text.words.size() > kMaxWordsBytes) continue;
    if (!text.words.empty()) text.words += ", ";
    text.words += argument.name() + " " + words;
  }
  text.json += "]}";
  if (text.json.size() > kMaxJsonBytes) text.json.clear();
  return text;
}

}  // namespace nfe
