#include "notes.h"

#include <cstring>
#include <mutex>
#include <new>

namespace nfe {
namespace {

std::mutex& notes_mutex() {
  // Never destroyed: threads may append while static objects are torn down.
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

}  // namespace

void notes_in_forked_child() noexcept { new (&notes_mutex()) std::mutex; }

bool append_note(Page& page, NoteType type, std::uint16_t op_row, std::uint64_t unix_ns,
                 std::string_view text, std::size_t keep_free) noexcept {
  const std::lock_guard<std::mutex> lock(notes_mutex());
  const std::size_t used = page.header.note_bytes.load(std::memory_order_relaxed);
  const std::size_t bytes = sizeof(NoteHeader) + ((text.size() + 7) & ~std::size_t{7});
  if (used > kNoteBytes || bytes + keep_free > kNoteBytes - used) {
    page.header.notes_dropped.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  std::uint8_t* const at = page.notes + used;
  auto* const header = reinterpret_cast<NoteHeader*>(at);
  header->type = static_cast<std::uint16_t>(type);
  header->op_row = op_row;
  header->unix_ns = unix_ns;
  header->text_bytes = static_cast<std::uint32_t>(text.size());
  std::memcpy(at + sizeof(NoteHeader), text.data(), text.size());
  header->record_bytes.store(static_cast<std::uint32_t>(bytes), std::memory_order_release);
  page.header.note_bytes.store(used + bytes, std::memory_order_release);
  return true;
}

}  // namespace nfe
