/* guarded-call-unwind.c: what if an exception, or the end of a thread, unwinds out of foreign code?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The frame of pto_guard_registers_call() catches all of them, so that destructors run and nothing
 * above it is left. What a C++ exception says is asked of the library that threw it: nothing here
 * links with one. The layouts are those of the Itanium C++ ABI.
 */
#include "exec-private.h"
#include "guarded-call.h"
#include "libc-hooks.h"
#include "translate.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(__aarch64__)
#include <unwind.h>

void pto_guard_registers_landing (void);

_Unwind_Reason_Code
pto_guard_personality (int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                       struct _Unwind_Exception *exception, struct _Unwind_Context *context)
    __attribute__ ((visibility ("hidden")));

_Unwind_Reason_Code
pto_guard_personality (int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                       struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
  bool forced = (actions & _UA_FORCE_UNWIND) != 0;

  if (version != 1)
    return _URC_FATAL_PHASE1_ERROR;
  if ((actions & _UA_SEARCH_PHASE) != 0)
    return _URC_HANDLER_FOUND;
  if (!forced && (actions & _UA_HANDLER_FRAME) == 0)
    return _URC_CONTINUE_UNWIND;
  _Unwind_SetGR (context, __builtin_eh_return_data_regno (0), (uintptr_t) exception);
  _Unwind_SetGR (context, __builtin_eh_return_data_regno (1),
                 forced ? PTO_UNWOUND_BY_FORCE : PTO_UNWOUND_BY_EXCEPTION);
  _Unwind_SetIP (context, (uintptr_t) pto_guard_registers_landing);
  return _URC_INSTALL_CONTEXT;
}

/* The upper seven bytes of a class of exceptions. */
#define CLASS(a, b, c, d, e, f, g)                                                           \
  ((uint64_t) (a) << 56 | (uint64_t) (b) << 48 | (uint64_t) (c) << 40 | (uint64_t) (d) << 32 \
   | (uint64_t) (e) << 24 | (uint64_t) (f) << 16 | (uint64_t) (g) << 8)

/* "GNUCC++" and "CLNGC++", with whose libraries throw them. */
static const struct
{
  uint64_t class;
  const char *library;
} runtimes[] = {
  { CLASS ('G', 'N', 'U', 'C', 'C', '+', '+'), "libstdc++.so.6" },
  { CLASS ('C', 'L', 'N', 'G', 'C', '+', '+'), "libc++abi.so.1" },
};

/* --- runtimes of C++ --- */

/* What code calls to ask for the exceptions of its thread before it may have thrown one. */
static const char *const askers[PTO_CXX_ASKERS] = {
  "_ZSt17current_exceptionv",        "_ZSt18uncaught_exceptionv",
  "_ZSt19uncaught_exceptionsv",      "__cxa_current_exception_type",
  "__cxa_current_primary_exception", "__cxa_get_globals",
  "__cxa_get_globals_fast",          "__cxa_rethrow",
  "__cxa_uncaught_exception",        "__cxa_uncaught_exceptions",
};
#define RUNTIMES 2

/* In the assembly: one entry for each of these functions of each runtime. */
extern const char pto_guard_askers[];
#define ENTRY_BYTES 16

/* The runtimes that objects use, of GCC and of LLVM. W: under the mutex of libc-hooks.c, before
 * an object refers to the place; R: its code. */
static struct pto_cxx cxx_runtimes[RUNTIMES];

void *pto_guard_ask (unsigned int entry) __attribute__ ((visibility ("hidden")));

/* Called by the entries, which go on in what it returns. */
void *
pto_guard_ask (unsigned int entry)
{
  const struct pto_cxx *runtime = &cxx_runtimes[entry / PTO_CXX_ASKERS];

  pto_guard_keep_exceptions (runtime->get_exceptions, false);
  return runtime->askers[entry % PTO_CXX_ASKERS];
}

/* The unwinder asks each frame with a handler or a destructor, before one of them runs. */
static _Unwind_Reason_Code
ask_frame (const struct pto_cxx *runtime, int version, _Unwind_Action actions,
           _Unwind_Exception_Class class, struct _Unwind_Exception *exception,
           struct _Unwind_Context *context)
{
  bool is_counted = false;

  for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
    if ((class & ~(_Unwind_Exception_Class) 0xff) == runtimes[i].class)
      is_counted = (actions & _UA_FORCE_UNWIND) == 0;
  pto_guard_keep_exceptions (runtime->get_exceptions, is_counted);
  return ((_Unwind_Personality_Fn) runtime->personality) (version, actions, class, exception,
                                                          context);
}

static _Unwind_Reason_Code
ask_first (int version, _Unwind_Action actions, _Unwind_Exception_Class class,
           struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
  return ask_frame (&cxx_runtimes[0], version, actions, class, exception, context);
}

static _Unwind_Reason_Code
ask_second (int version, _Unwind_Action actions, _Unwind_Exception_Class class,
            struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
  return ask_frame (&cxx_runtimes[1], version, actions, class, exception, context);
}

bool
pto_guard_find_cxx (void *module, struct pto_cxx *cxx)
{
  *(void **) &cxx->personality = dlsym (module, "__gxx_personality_v0");
  *(void **) &cxx->get_exceptions = dlsym (module, "__cxa_get_globals");
  for (size_t i = 0; i < PTO_CXX_ASKERS; i++)
    cxx->askers[i] = dlsym (module, askers[i]);
  return cxx->personality != NULL && cxx->get_exceptions != NULL;
}

void *
pto_guard_watch_cxx (const struct pto_cxx *cxx, void *function)
{
  static const _Unwind_Personality_Fn watchers[RUNTIMES] = { ask_first, ask_second };
  bool is_for_frames = function == *(void *const *) &cxx->personality;
  size_t n = 0, asker = 0;

  while (asker < PTO_CXX_ASKERS && function != cxx->askers[asker])
    asker++;
  if (function == NULL || (asker == PTO_CXX_ASKERS && !is_for_frames))
    return NULL;
  while (n < RUNTIMES && cxx_runtimes[n].personality != NULL
         && cxx_runtimes[n].personality != cxx->personality)
    n++;
  if (n == RUNTIMES)
    return NULL;
  if (cxx_runtimes[n].personality == NULL)
    cxx_runtimes[n] = *cxx;
  if (is_for_frames)
    return *(void *const *) &watchers[n];
  if (function != cxx_runtimes[n].askers[asker])
    return NULL;
  return (void *) (uintptr_t) &pto_guard_askers[(n * PTO_CXX_ASKERS + asker) * ENTRY_BYTES];
}

/* --- what an exception says --- */

/* Can a handler of this type catch what was thrown? Adjusts the object to it. Place 4 in the table
 * of a std::type_info in both libraries. */
typedef bool (*Catches) (const void *self, const void *thrown, void **object, unsigned int outer);
typedef const char *(*What) (const void *exception);

/* Foreign code throughout: what() and the exception's destructor are the thrower's. */
static void
describe (int64_t *args)
{
  struct pto_unwound *unwound = (struct pto_unwound *) args;
  struct _Unwind_Exception *exception = unwound->exception;
  const void *type;
  void *object = exception + 1;
  const char *what = NULL;
  const char *name;
  char *clear = NULL;
  int n;

  unwound->begin_catch (exception);
  type = unwound->current_type ();
  if (type != NULL)
    {
      name = ((const char *const *) type)[1];
      if (name[0] == '*')
        name++;
      if (unwound->demangle != NULL)
        clear = unwound->demangle (name, NULL, NULL, NULL);
      /* The name before what() is asked, and what that gives only when its end has been found:
       * there may be nothing at its address, and the text is whole all the same. */
      n = snprintf (unwound->text, unwound->size, "%s", clear != NULL ? clear : name);
      free (clear);
      /* One that is thrown again from another thread does not lie behind its header. */
      if (unwound->base != NULL && (exception->exception_class & 0xff) == 0)
        {
          void *const *table = *(void *const *const *) unwound->base;
          Catches catches = (Catches) table[4];

          if (catches (unwound->base, type, &object, 1))
            {
              table = *(void *const *const *) object;
              what = ((What) table[2]) (object);
            }
        }
      if (what != NULL && n >= 0 && (size_t) n < unwound->size)
        snprintf (unwound->text + n, unwound->size - (size_t) n, ": %.*s",
                  (int) strnlen (what, unwound->size), what);
    }
  unwound->end_catch ();
}

pto_guard_describer
pto_guard_describe (void *data, struct pto_unwound *unwound, char *text, size_t size)
{
  struct _Unwind_Exception *exception = data;
  void *library = NULL;

  snprintf (text, size, _ ("an exception of another language"));
  for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes && library == NULL; i++)
    if ((exception->exception_class & ~(uint64_t) 0xff) == runtimes[i].class)
      {
        snprintf (text, size, "a C++ exception");
        library = dlopen (runtimes[i].library, RTLD_LAZY | RTLD_NOLOAD);
      }
  if (library == NULL)
    return NULL;
  *unwound = (struct pto_unwound){ .exception = exception, .text = text, .size = size };
  *(void **) &unwound->begin_catch = dlsym (library, "__cxa_begin_catch");
  *(void **) &unwound->end_catch = dlsym (library, "__cxa_end_catch");
  *(void **) &unwound->current_type = dlsym (library, "__cxa_current_exception_type");
  *(void **) &unwound->demangle = dlsym (library, "__cxa_demangle");
  unwound->base = dlsym (library, "_ZTISt9exception");
  /* Whoever threw has it loaded as well. */
  dlclose (library);
  return unwound->begin_catch != NULL && unwound->end_catch != NULL && unwound->current_type != NULL
             ? describe
             : NULL;
}

struct caught
{
  void (*fn) (void *data);
  void *data;
};

static void
call_caught (int64_t *args)
{
  struct caught *call = (struct caught *) args;

  call->fn (call->data);
}

bool
pto_foreign_catch (void (*fn) (void *data), void *data, char *why, size_t size)
{
  struct caught call = { fn, data };
  struct pto_unwound unwound;
  /* As of a guard that is not used otherwise. */
  void *registers[sizeof ((struct pto_guard *) NULL)->registers / sizeof (void *)];
  pto_guard_describer ask;
  char what[192];
  int end;

#ifdef PTO_GUARD_WORDS
  registers[PTO_GUARD_WORDS] = NULL;
#endif
  end = pto_guard_registers_call (registers, call_caught, (int64_t *) &call);
  if (end == 0)
    return true;
  if (end == PTO_UNWOUND_BY_FORCE)
    {
      snprintf (why, size, _ ("ended its thread (pthread_exit)"));
      return false;
    }
  ask = pto_guard_describe (registers[PTO_GUARD_EXCEPTION], &unwound, what, sizeof what);
  if (ask != NULL)
    pto_guard_registers_call (registers, ask, (int64_t *) &unwound);
  snprintf (why, size, _ ("threw %s"), what);
  return false;
}

#else

bool
pto_guard_find_cxx (void *module, struct pto_cxx *cxx)
{
  return false;
}

void *
pto_guard_watch_cxx (const struct pto_cxx *cxx, void *function)
{
  return NULL;
}

bool
pto_foreign_catch (void (*fn) (void *data), void *data, char *why, size_t size)
{
  fn (data);
  return true;
}

pto_guard_describer
pto_guard_describe (void *exception, struct pto_unwound *unwound, char *text, size_t size)
{
  return NULL;
}

#endif
