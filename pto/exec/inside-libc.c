/* inside-libc.c: is the thread that was interrupted inside the allocator, the loader or fork()?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each holds locks only while one of its functions is called. So the frames are walked by their
 * unwind tables: other words on the stack may be of calls that are over. fork() is among the
 * functions, for its handlers hold locks. The functions are the ones that the process uses, also
 * where another allocator was preloaded.
 */
#include "inside-libc.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <unwind.h>

/* An allocation is near the top of the stack: no more frames are looked at. */
#define FRAMES_MAX 80u
#define RANGES_MAX 8u
#define ENTRIES_MAX 64u
#define LIBC "libc.so.6"

#if defined(__clang__) || defined(__GNUC__)
#define NOT_SANITIZED \
  __attribute__ ((no_sanitize ("address"), no_sanitize ("thread"), no_sanitize ("undefined")))
#endif

struct range
{
  uintptr_t begin;
  uintptr_t end;
};

/* W: pto_inside_init(), before there is a handler. R: handlers. */
static struct range ranges[RANGES_MAX]; /* the loader's code */
static size_t n_ranges;
static uintptr_t entries[ENTRIES_MAX]; /* where the functions begin */
static size_t n_entries;

static const char *const functions[] = {
  "malloc",        "free",
  "calloc",        "realloc",
  "reallocarray",  "memalign",
  "aligned_alloc", "posix_memalign",
  "valloc",        "pvalloc",
  "malloc_trim",   "malloc_info",
  "malloc_stats",  "malloc_usable_size",
  "mallinfo",      "mallinfo2",
  "mallopt",       "dlopen",
  "dlmopen",       "dlclose",
  "dlsym",         "dlvsym",
  "dladdr",        "dladdr1",
  "dlinfo",        "dl_iterate_phdr",
  "fork",
};

/* The code of the object that begins there: all of the loader's may hold its lock. */
static int
add_code (struct dl_phdr_info *info, size_t size, void *base)
{
  uintptr_t first = UINTPTR_MAX;

  (void) size;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_vaddr < first)
      first = info->dlpi_phdr[i].p_vaddr;
  if (info->dlpi_addr + first != (uintptr_t) base)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0
        && n_ranges < RANGES_MAX)
      {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        ranges[n_ranges++] = (struct range){ begin, begin + info->dlpi_phdr[i].p_memsz };
      }
  return 1;
}

/* What the object calls that name. */
static void
add_function (void *object, const char *name)
{
  void *at = dlsym (object, name);

  if (at != NULL && n_entries < ENTRIES_MAX)
    entries[n_entries++] = (uintptr_t) at;
}

void
pto_inside_init (void)
{
  void *loader = dlsym (RTLD_DEFAULT, "__tls_get_addr");
  void *libc;
  uintptr_t *slot;
  Dl_info info;

  if (n_entries > 0)
    return;
  libc = dlopen (LIBC, RTLD_LAZY | RTLD_NOLOAD);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    {
      /* A preloaded allocator, say. In a program at a fixed address the name may stand for a jump
       * to the function: then libc is asked. */
      add_function (RTLD_DEFAULT, functions[i]);
      if (libc != NULL)
        add_function (libc, functions[i]);
    }
  if (libc != NULL)
    dlclose (libc);
  if (loader != NULL && dladdr (loader, &info) != 0)
    dl_iterate_phdr (add_code, info.dli_fbase);
  /* What the walk itself makes when it is called first is there before a handler calls it. */
  pto_inside_allocator (UINTPTR_MAX, &slot);
}

struct walk
{
  uintptr_t limit;
  uintptr_t *slot;
  uint32_t n;
  bool begun; /* the frames are those of the interrupted code, no longer the handler's */
  bool found;
  bool within; /* the frame before, which this one has called */
  /* Where the code of each frame goes; NULL: nowhere. */
  uintptr_t *callers;
  uint32_t *n_callers;
  uint32_t max_callers;
};

/* start: where the function begins that has the code at ip. */
static NOT_SANITIZED bool
is_listed (uintptr_t ip, uintptr_t start)
{
  for (size_t i = 0; i < n_entries; i++)
    if (entries[i] == start)
      return true;
  for (size_t i = 0; i < n_ranges; i++)
    if (ip - ranges[i].begin < ranges[i].end - ranges[i].begin)
      return true;
  return false;
}

static NOT_SANITIZED _Unwind_Reason_Code
look_at (struct _Unwind_Context *context, void *data)
{
  struct walk *walk = data;
  int is_next = 0;
  uintptr_t ip = (uintptr_t) _Unwind_GetIPInfo (context, &is_next);
  uintptr_t sp = (uintptr_t) _Unwind_GetCFA (context);
  bool was_within = walk->within;

  /* The handler's may be on another stack. */
  walk->begun = walk->begun || is_next != 0;
  if (!walk->begun)
    return _URC_NO_REASON;
  /* A call that does not return may be the last instruction of its function. */
  walk->within = is_listed (ip - (is_next == 0), _Unwind_GetRegionStart (context));
  walk->found = walk->found || walk->within;
  if (walk->callers != NULL && *walk->n_callers < walk->max_callers)
    walk->callers[(*walk->n_callers)++] = ip - (is_next == 0);
  if (was_within && !walk->within)
    {
      walk->slot = NULL;
#ifdef __x86_64__
      /* Right below where the stack is when the function has returned. */
      if (((uintptr_t *) sp)[-1] == ip)
        walk->slot = (uintptr_t *) sp - 1;
#endif
    }
  return sp >= walk->limit || ++walk->n == FRAMES_MAX ? _URC_END_OF_STACK : _URC_NO_REASON;
}

NOT_SANITIZED bool
pto_inside_allocator (uintptr_t limit, uintptr_t **slot)
{
  struct walk walk = { .limit = limit };

  _Unwind_Backtrace (look_at, &walk);
  *slot = walk.slot;
  return walk.found;
}

NOT_SANITIZED bool
pto_inside_callers (uintptr_t *callers, uint32_t *n, uint32_t max)
{
  struct walk walk
      = { .limit = UINTPTR_MAX, .callers = callers, .n_callers = n, .max_callers = max };

  _Unwind_Backtrace (look_at, &walk);
  return walk.found;
}
