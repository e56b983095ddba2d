// Appending to the note area of a page: where an operator was called from, and with what.
//
// Shared state: the note area of the current page.
//   Writers: any thread, at the first sights of an operator, under one mutex. A record is written
//   whole before the area's length grows over it (release), so a process that is killed half-way
//   leaves no gap. Readers: other processes, which trust nothing.
// On fork: the mutex is made anew; the child's page has an area of its own.
#pragma once

#include <cstdint>
#include <string_view>

#include "page_layout.h"

namespace nfe {

enum class NoteType : std::uint16_t { kCallSite = 1, kArguments = 2 };

// What further sights of an operator leave free, so that operators that come later find room.
inline constexpr std::size_t kNoteReserve = kNoteBytes / 4;

// False when `text` finds no room, beside `keep_free` bytes; that is counted in notes_dropped.
bool append_note(Page& page, NoteType type, std::uint16_t op_row, std::uint64_t unix_ns,
                 std::string_view text, std::size_t keep_free) noexcept;

// Only for the fork handler.
void notes_in_forked_child() noexcept;

}  // namespace nfe
