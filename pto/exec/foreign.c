/* foreign.c: what do the functions of libc do that must not do their work within a guarded call?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A shared object that holds foreign code is adopted after it was loaded: where it calls one of the
 * functions below, it calls ours. Outside of guarded calls they are the same. What the object calls
 * through another library is not touched, nor are system calls of its own.
 */
#include "foreign.h"

#include "exec-private.h"
#include "guard-private.h"
#include "text.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- ends --- */

static void
leave_with_status (const char *function, int status)
{
  char what[48];

  snprintf (what, sizeof what, "%s(%d)", function, status);
  pto_guard_leave (what);
}

static _Noreturn void
foreign_exit (int status)
{
  leave_with_status ("exit", status);
  exit (status);
}

static _Noreturn void
foreign_exit_now (int status)
{
  leave_with_status ("_exit", status);
  _exit (status);
}

static _Noreturn void
foreign_quick_exit (int status)
{
  leave_with_status ("quick_exit", status);
  quick_exit (status);
}

static _Noreturn void
foreign_pthread_exit (void *result)
{
  pto_guard_leave ("pthread_exit()");
  pthread_exit (result);
}

/* A cancel of oneself waits for the next call that can be cancelled, which would be somebody
 * else's. */
static int
foreign_pthread_cancel (pthread_t thread)
{
  if (pthread_equal (thread, pthread_self ()))
    pto_guard_leave (_ ("pthread_cancel() for its own thread"));
  return pthread_cancel (thread);
}

static long
foreign_syscall (long number, ...)
{
  long a[6];
  va_list args;

  va_start (args, number);
  for (int i = 0; i < 6; i++)
    a[i] = va_arg (args, long);
  va_end (args);
  if (number == SYS_exit)
    pto_guard_leave (_ ("exit(2) for its thread"));
  if (number == SYS_exit_group)
    leave_with_status ("exit_group", (int) a[0]);
  return syscall (number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* --- copies --- */

/* An interrupt must not cut it off: the handlers of forks hold locks by then, of this library, too.
 * Nor is the copy to go on where the call was made, in an engine of which it has one thread. */
static pid_t
foreign_fork (void)
{
  struct pto_guard *guard = pto_guard_pause ();
  pid_t pid = fork ();

  if (pid == 0 && guard != NULL)
    pto_guard_end_with_call (guard);
  else
    pto_guard_resume (guard);
  return pid;
}

/* --- signals --- */

static const sigset_t *
without_ours (int how, const sigset_t *set, sigset_t *copy)
{
  if (set == NULL || how == SIG_UNBLOCK || !pto_guard_is_inside ())
    return set;
  *copy = *set;
  pto_guard_unblock (copy);
  return copy;
}

static int
foreign_pthread_sigmask (int how, const sigset_t *set, sigset_t *old)
{
  sigset_t copy;

  return pthread_sigmask (how, without_ours (how, set, &copy), old);
}

static int
foreign_sigprocmask (int how, const sigset_t *set, sigset_t *old)
{
  sigset_t copy;

  return sigprocmask (how, without_ours (how, set, &copy), old);
}

static int
foreign_sigaltstack (const stack_t *stack, stack_t *old)
{
  if (stack == NULL || !pto_guard_is_inside ())
    return sigaltstack (stack, old);
  errno = EPERM;
  return -1;
}

/* Guards the dispositions and the sealed pages of modules; innermost. A fork waits for it: a child
 * of the program's own runs foreign code, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The dispositions that foreign code has changed since the last run ended, as they were before.
 * Under the mutex; changed is also read without it, by the thread that made the run, as a hint. */
static _Atomic uint32_t changed;
static struct
{
  bool is_changed;
  struct sigaction before;
} dispositions[_NSIG];

static int
foreign_sigaction (int signo, const struct sigaction *action, struct sigaction *old)
{
  struct sigaction before;
  sigset_t ours;
  struct pto_guard *guard;
  int result;

  if (action == NULL || signo < 1 || signo >= _NSIG || !pto_guard_is_inside ())
    return sigaction (signo, action, old);
  pto_guard_signals (&ours);
  if (sigismember (&ours, signo))
    {
      /* Guarded calls rest on these: said to be done, and left out. */
      if (old != NULL)
        {
          memset (old, 0, sizeof *old);
          old->sa_handler = SIG_DFL;
        }
      return 0;
    }
  guard = pto_guard_pause ();
  pthread_mutex_lock (&lock);
  result = sigaction (signo, action, &before);
  if (result == 0 && !dispositions[signo].is_changed)
    {
      dispositions[signo].is_changed = true;
      dispositions[signo].before = before;
      atomic_store_explicit (&changed, 1, memory_order_relaxed);
    }
  pthread_mutex_unlock (&lock);
  if (result == 0 && old != NULL)
    *old = before;
  pto_guard_resume (guard);
  return result;
}

static void (*foreign_signal (int signo, void (*handler) (int))) (int)
{
  struct sigaction action, old;

  memset (&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  return foreign_sigaction (signo, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

void
pto_foreign_put_back (void)
{
  if (atomic_load_explicit (&changed, memory_order_relaxed) == 0)
    return;
  pthread_mutex_lock (&lock);
  for (int signo = 1; signo < _NSIG; signo++)
    if (dispositions[signo].is_changed)
      {
        sigaction (signo, &dispositions[signo].before, NULL);
        dispositions[signo].is_changed = false;
      }
  atomic_store_explicit (&changed, 0, memory_order_relaxed);
  pthread_mutex_unlock (&lock);
}

/* --- adoption --- */

static const struct
{
  const char *name;
  void (*function) (void);
} replacements[] = {
#define REPLACE(name, function)      \
  {                                  \
    name, (void (*) (void)) function \
  }
  REPLACE ("exit", foreign_exit),
  REPLACE ("_exit", foreign_exit_now),
  REPLACE ("_Exit", foreign_exit_now),
  REPLACE ("quick_exit", foreign_quick_exit),
  REPLACE ("pthread_exit", foreign_pthread_exit),
  REPLACE ("pthread_cancel", foreign_pthread_cancel),
  REPLACE ("syscall", foreign_syscall),
  REPLACE ("fork", foreign_fork),
  REPLACE ("pthread_sigmask", foreign_pthread_sigmask),
  REPLACE ("sigprocmask", foreign_sigprocmask),
  REPLACE ("sigaltstack", foreign_sigaltstack),
  REPLACE ("sigaction", foreign_sigaction),
  REPLACE ("signal", foreign_signal),
#undef REPLACE
};

/* What the loader keeps of an object. */
struct object
{
  uintptr_t base;
  const ElfW (Sym) * symbols;
  const char *strings;
  /* made read-only by the loader when it had relocated the object; empty: nothing */
  uintptr_t sealed, sealed_end;
};

static bool
is_pointer (uint64_t type)
{
#if defined(__x86_64__)
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
#elif defined(__aarch64__)
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
#else
  return false;
#endif
}

/* With the lock: the page is open for a moment, and others of the module's places are in it. */
static void
patch (const struct object *object, uintptr_t place, uintptr_t value)
{
  uintptr_t page = (uintptr_t) sysconf (_SC_PAGESIZE);
  void *start = (void *) (place & ~(page - 1));
  bool is_sealed = place >= object->sealed && place < object->sealed_end;

  if (*(const uintptr_t *) place == value)
    return;
  if (is_sealed && mprotect (start, page, PROT_READ | PROT_WRITE) != 0)
    return;
  *(uintptr_t *) place = value;
  if (is_sealed)
    mprotect (start, page, PROT_READ);
}

static void
patch_all (const struct object *object, const ElfW (Rela) * relocations, size_t bytes)
{
  for (; bytes >= sizeof *relocations; relocations++, bytes -= sizeof *relocations)
    {
      uint64_t index = ELF64_R_SYM (relocations->r_info);
      const ElfW (Sym) *symbol = &object->symbols[index];
      const char *name = object->strings + symbol->st_name;

      if (index == 0 || relocations->r_addend != 0 || symbol->st_shndx != SHN_UNDEF
          || !is_pointer (ELF64_R_TYPE (relocations->r_info)))
        continue;
      for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++)
        if (strcmp (name, replacements[i].name) == 0)
          patch (object, object->base + relocations->r_offset,
                 (uintptr_t) replacements[i].function);
    }
}

static int
find_sealed (struct dl_phdr_info *info, size_t size, void *data)
{
  struct object *object = data;
  uintptr_t page = (uintptr_t) sysconf (_SC_PAGESIZE);

  (void) size;
  if (info->dlpi_addr != object->base)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
      {
        object->sealed = (object->base + info->dlpi_phdr[i].p_vaddr) & ~(page - 1);
        object->sealed_end
            = (object->base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz)
              & ~(page - 1);
      }
  return 1;
}

/* Loaders differ in whether they have made addresses of what the file says. */
static const void *
address_of (const struct object *object, uintptr_t pointer)
{
  return (const void *) (pointer < object->base ? object->base + pointer : pointer);
}

static void
before_fork (void)
{
  pthread_mutex_lock (&lock);
}

static void
after_fork (void)
{
  pthread_mutex_unlock (&lock);
}

static void
watch_forks (void)
{
  pthread_atfork (before_fork, after_fork, after_fork);
}

void
pto_foreign_adopt (void *module)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct object object = { 0 };
  const ElfW (Rela) *relocations = NULL, *jumps = NULL;
  size_t bytes = 0, jump_bytes = 0;
  struct link_map *map;

  pthread_once (&once, watch_forks);
  if (dlinfo (module, RTLD_DI_LINKMAP, &map) != 0)
    return;
  object.base = map->l_addr;
  for (const ElfW (Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
    switch (entry->d_tag)
      {
      case DT_SYMTAB:
        object.symbols = address_of (&object, entry->d_un.d_ptr);
        break;
      case DT_STRTAB:
        object.strings = address_of (&object, entry->d_un.d_ptr);
        break;
      case DT_RELA:
        relocations = address_of (&object, entry->d_un.d_ptr);
        break;
      case DT_RELASZ:
        bytes = entry->d_un.d_val;
        break;
      case DT_JMPREL:
        jumps = address_of (&object, entry->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        jump_bytes = entry->d_un.d_val;
        break;
      default:
        break;
      }
  if (object.symbols == NULL || object.strings == NULL)
    return;
  dl_iterate_phdr (find_sealed, &object);
  pthread_mutex_lock (&lock);
  if (relocations != NULL)
    patch_all (&object, relocations, bytes);
  if (jumps != NULL)
    patch_all (&object, jumps, jump_bytes);
  pthread_mutex_unlock (&lock);
}

/* --- calls outside of runs --- */

struct call
{
  void (*fn) (void *data);
  void *data;
};

static void
call_it (int64_t *args)
{
  struct call *call = (struct call *) args;

  call->fn (call->data);
}

bool
pto_foreign_call (void (*fn) (void *data), void *data, char *why, size_t size)
{
  struct call call = { fn, data };
  struct pto_guard guard;
  struct pto_fault fault;
  sigset_t mask;

  if (pto_guard_init () != 0)
    {
      snprintf (why, size, _ ("can not be called: %s"), strerror (errno));
      return false;
    }
  pto_guard_refresh ();
  memset (&guard, 0, sizeof guard);
  pthread_sigmask (SIG_SETMASK, NULL, &mask);
  pto_guard_call (&guard, call_it, (int64_t *) &call, &fault);
  pthread_sigmask (SIG_SETMASK, &mask, NULL);
  pto_foreign_put_back ();
  pto_guard_shutdown ();
  if (fault.kind == PTO_FAULT_NONE)
    return true;
  pto_guard_explain (&guard, &fault, why, size);
  return false;
}
