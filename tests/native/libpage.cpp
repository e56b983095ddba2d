// The page writer for a Python process, through ctypes.
#include "page_writer.h"

extern "C" void open_page(const char* folder) {
  nfe::PageConfig config;
  config.directory = folder;
  nfe::PageWriter::instance().open(config);
}

extern "C" void touch_page() { nfe::PageWriter::instance().page()->header.armed_ns.fetch_add(1); }
