// Read from the relocated addresses of the loaded objects themselves: where a call of theirs goes
// is not guessed from who was loaded first, it is looked at. Nothing is written.
//
// An object counts if it calls or looks up functions of the runtime: it imports a name that begins
// with "aclrt". Objects that are loaded later bind by the same rules as those looked at.
#include "bindings.h"

#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "counters.h"
#include "forms.h"

#if defined(__x86_64__)
enum { kJumpSlot = R_X86_64_JUMP_SLOT, kGlobalData = R_X86_64_GLOB_DAT, kAddress = R_X86_64_64 };
#elif defined(__aarch64__)
enum {
  kJumpSlot = R_AARCH64_JUMP_SLOT,
  kGlobalData = R_AARCH64_GLOB_DAT,
  kAddress = R_AARCH64_ABS64
};
#else
enum { kJumpSlot = -1, kGlobalData = -1, kAddress = -1 };  // nothing can be proven
#endif

struct survey {
  // What a binding that has not been made yet will find. Asked before, because looking up while
  // objects are walked could wait for a thread that loads one.
  bool first[NFE_FORM_COUNT];
  unsigned here;
  unsigned elsewhere;
  unsigned imports_here;  // of copying functions, without look-ups
  char* text;             // null: only count
  size_t text_bytes;
  size_t written;
};

struct object {
  const struct dl_phdr_info* info;
  const ElfW(Sym) * symbols;
  const char* strings;
};

__attribute__((format(printf, 2, 3))) static void print(struct survey* survey, const char* format,
                                                        ...) {
  va_list arguments;
  va_start(arguments, format);
  const bool room = survey->written < survey->text_bytes;
  const int length = vsnprintf(room ? survey->text + survey->written : NULL,
                               room ? survey->text_bytes - survey->written : 0, format, arguments);
  va_end(arguments);
  if (length > 0) survey->written += (size_t)length;
}

static void note(struct survey* survey, const struct object* object, const char* name, bool here) {
  ++*(here ? &survey->here : &survey->elsewhere);
  if (here && nfe_is_copy_name(name)) ++survey->imports_here;
  print(survey, "%s %s %s\n", here ? "here" : "elsewhere", name, object->info->dlpi_name);
}

// Bound late, at its first call, a slot points into its own object until then.
static bool is_unbound(const struct object* object, ElfW(Addr) value) {
  for (int i = 0; i < object->info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &object->info->dlpi_phdr[i];
    const ElfW(Addr) begin = object->info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD && value >= begin && value < begin + part->p_memsz) return true;
  }
  return false;
}

static void note_copy_import(struct survey* survey, const struct object* object, const char* name,
                             ElfW(Addr) value) {
  const enum nfe_form form = nfe_form_named(name);
  const bool here = form != NFE_FORM_COUNT &&
                    (value == (ElfW(Addr))nfe_own_definition(form) ||
                     (survey->first[form] && is_unbound(object, value)));
  note(survey, object, name, here);
}

struct imports {
  bool runtime;      // some name of the runtime
  bool dlsym;        // looks names up itself
  bool dlsym_here;
};

static void survey_table(struct survey* survey, const struct object* object,
                         const ElfW(Rela) * table, size_t count, struct imports* imports) {
  for (const ElfW(Rela)* entry = table; entry < table + count; ++entry) {
    const ElfW(Sym)* const symbol = &object->symbols[ELF64_R_SYM(entry->r_info)];
    const int type = (int)ELF64_R_TYPE(entry->r_info);
    if (type != kJumpSlot && type != kGlobalData && type != kAddress) continue;
    if (symbol->st_shndx != SHN_UNDEF || symbol->st_name == 0) continue;
    const char* const name = object->strings + symbol->st_name;
    const ElfW(Addr) value = *(const ElfW(Addr)*)(object->info->dlpi_addr + entry->r_offset);
    if (strcmp(name, "dlsym") == 0) {
      // Bound late, it would come here if the imports do; but nothing shows it.
      imports->dlsym_here = value == (ElfW(Addr))nfe_own_dlsym() &&
                            (imports->dlsym_here || !imports->dlsym);
      imports->dlsym = true;
    } else if (strncmp(name, "aclrt", 5) == 0) {
      imports->runtime = true;
      if (nfe_is_copy_name(name)) note_copy_import(survey, object, name, value);
    }
  }
}

static int survey_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct survey* const survey = data;
  const ElfW(Dyn)* entry = NULL;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      entry = (const ElfW(Dyn)*)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
  }
  if (entry == NULL) return 0;
  ElfW(Addr) symbols = 0;
  ElfW(Addr) strings = 0;
  ElfW(Addr) tables[2] = {0, 0};  // data and functions
  size_t bytes[2] = {0, 0};
  bool with_addends = true;
  for (; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB: symbols = entry->d_un.d_ptr; break;
      case DT_STRTAB: strings = entry->d_un.d_ptr; break;
      case DT_RELA: tables[0] = entry->d_un.d_ptr; break;
      case DT_RELASZ: bytes[0] = entry->d_un.d_val; break;
      case DT_JMPREL: tables[1] = entry->d_un.d_ptr; break;
      case DT_PLTRELSZ: bytes[1] = entry->d_un.d_val; break;
      case DT_PLTREL: with_addends = entry->d_un.d_val == DT_RELA; break;
      default: break;
    }
  }
  // The loader makes these addresses absolute, except in the kernel's own object, which imports
  // nothing.
  if (symbols < info->dlpi_addr || strings < info->dlpi_addr || !with_addends) return 0;
  const struct object object = {info, (const ElfW(Sym)*)symbols, (const char*)strings};
  struct imports imports = {false, false, false};
  for (int i = 0; i < 2; ++i) {
    survey_table(survey, &object, (const ElfW(Rela)*)tables[i], bytes[i] / sizeof(ElfW(Rela)),
                 &imports);
  }
  if (imports.runtime && imports.dlsym) note(survey, &object, "dlsym", imports.dlsym_here);
  return 0;
}

static void take(struct survey* survey) {
#define NFE_ASK_FIRST(name) \
  survey->first[NFE_FORM_##name] = nfe_first_definition(#name) == nfe_own_definition(NFE_FORM_##name);
  NFE_FORMS(NFE_ASK_FIRST)
#undef NFE_ASK_FIRST
  dl_iterate_phdr(survey_object, survey);
}

enum nfe_boundary_coverage nfe_bindings_coverage(void) {
  struct survey survey = {0};
  take(&survey);
  // Without an import that comes here, a look-up that would come here proves nothing.
  if (survey.imports_here == 0) return NFE_BOUNDARY_NONE;
  return survey.elsewhere == 0 ? NFE_BOUNDARY_FULL : NFE_BOUNDARY_PARTIAL;
}

NFE_EXPORT size_t nfe_boundary_describe(char* text, size_t text_bytes) {
  struct survey survey = {.text = text, .text_bytes = text_bytes};
  take(&survey);
  const unsigned gaps = nfe_gaps();
  if ((gaps & NFE_GAP_UNJUDGED) != 0) print(&survey, "gap a copy that could not be judged\n");
  if ((gaps & NFE_GAP_UNKNOWN_FORM) != 0) print(&survey, "gap an unknown form was looked up\n");
  if ((gaps & NFE_GAP_OTHER_COPY) != 0) print(&survey, "gap another runtime was looked up\n");
  return survey.written + 1;
}
