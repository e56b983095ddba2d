// The page format as the binary has it, for readers to compare with their own.
#pragma once

#include <string>

namespace nfe {

// {"magic", "version", "page_bytes", "constants": {name: number}, "structs": {name: {"size",
// "fields": {name: {"offset", "size"}}}}}. Array fields give the size of the whole array.
const std::string& layout_json();

}  // namespace nfe
