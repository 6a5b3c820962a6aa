/* pto-macros.h: what marks a function as part of the library's interface, and since which version?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#if !defined(PTO_INSIDE) && !defined(PTO_COMPILATION)
#error "Only <pto/pto.h> can be included directly."
#endif

#include <glib.h>

#include "pto-version.h"

#ifndef _PTO_EXTERN
#define _PTO_EXTERN extern
#endif

/**
 * PTO_VERSION_0_1:
 *
 * Version 0.1, for %PTO_VERSION_MIN_REQUIRED and %PTO_VERSION_MAX_ALLOWED.
 *
 * Since: 0.1
 */
#define PTO_VERSION_0_1 (G_ENCODE_VERSION (0, 1))

/* The version of this header. */
#define PTO_VERSION_CUR (G_ENCODE_VERSION (PTO_MAJOR_VERSION, PTO_MINOR_VERSION))

/**
 * PTO_VERSION_MIN_REQUIRED:
 *
 * The oldest version that a program must build against: what was deprecated in that version or
 * before warns.
 *
 * To be defined by the program before it includes the header, as %PTO_VERSION_0_1 or another of
 * that form; the version of the header by default.
 *
 * Since: 0.1
 */
#ifndef PTO_VERSION_MIN_REQUIRED
#define PTO_VERSION_MIN_REQUIRED PTO_VERSION_CUR
#endif

/**
 * PTO_VERSION_MAX_ALLOWED:
 *
 * The newest version that a program uses: what came later warns.
 *
 * To be defined by the program before it includes the header, as %PTO_VERSION_0_1 or another of
 * that form; the version of the header by default.
 *
 * Since: 0.1
 */
#ifndef PTO_VERSION_MAX_ALLOWED
#define PTO_VERSION_MAX_ALLOWED PTO_VERSION_CUR
#endif

#if PTO_VERSION_MAX_ALLOWED < PTO_VERSION_MIN_REQUIRED
#error "PTO_VERSION_MAX_ALLOWED must not be below PTO_VERSION_MIN_REQUIRED."
#endif

/**
 * PTO_AVAILABLE_IN_ALL: (skip)
 *
 * Marks a function that is as old as the type that it belongs to: what is generated.
 *
 * Since: 0.1
 */
#define PTO_AVAILABLE_IN_ALL _PTO_EXTERN

/**
 * PTO_DEPRECATED: (skip)
 *
 * Marks a function that warns where it is used.
 *
 * Since: 0.1
 */
#define PTO_DEPRECATED G_DEPRECATED _PTO_EXTERN

/**
 * PTO_DEPRECATED_FOR: (skip)
 * @f: what to use instead
 *
 * Marks a function that warns where it is used, and says what to use instead.
 *
 * Since: 0.1
 */
#define PTO_DEPRECATED_FOR(f) G_DEPRECATED_FOR (f) _PTO_EXTERN

/**
 * PTO_UNAVAILABLE: (skip)
 * @major: the first number of a version
 * @minor: the second
 *
 * Marks a function that came with a version above %PTO_VERSION_MAX_ALLOWED.
 *
 * Since: 0.1
 */
#define PTO_UNAVAILABLE(major, minor) G_UNAVAILABLE (major, minor) _PTO_EXTERN

/**
 * PTO_AVAILABLE_IN_0_1: (skip)
 *
 * Marks a function that came with version 0.1.
 *
 * Since: 0.1
 */
#if PTO_VERSION_MAX_ALLOWED < PTO_VERSION_0_1
#define PTO_AVAILABLE_IN_0_1 PTO_UNAVAILABLE (0, 1)
#else
#define PTO_AVAILABLE_IN_0_1 _PTO_EXTERN
#endif

/**
 * PTO_DEPRECATED_IN_0_1: (skip)
 *
 * Marks a function that is deprecated since version 0.1.
 *
 * Since: 0.1
 */
/**
 * PTO_DEPRECATED_IN_0_1_FOR: (skip)
 * @f: what to use instead
 *
 * Marks a function that is deprecated since version 0.1, and says what to use instead.
 *
 * Since: 0.1
 */
#if PTO_VERSION_MIN_REQUIRED >= PTO_VERSION_0_1
#define PTO_DEPRECATED_IN_0_1 PTO_DEPRECATED
#define PTO_DEPRECATED_IN_0_1_FOR(f) PTO_DEPRECATED_FOR (f)
#else
#define PTO_DEPRECATED_IN_0_1 PTO_AVAILABLE_IN_0_1
#define PTO_DEPRECATED_IN_0_1_FOR(f) PTO_AVAILABLE_IN_0_1
#endif
