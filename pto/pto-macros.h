/* pto-macros.h: what marks a function as part of the library's interface?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#if !defined(PTO_INSIDE) && !defined(PTO_COMPILATION)
#error "Only <pto/pto.h> can be included directly."
#endif

#ifndef _PTO_EXTERN
#define _PTO_EXTERN extern
#endif

/**
 * PTO_AVAILABLE_IN_ALL: (skip)
 *
 * Marks a function that every version of the library has.
 */
#define PTO_AVAILABLE_IN_ALL _PTO_EXTERN

/**
 * PTO_EXPORT: (skip)
 *
 * Marks a function as part of the interface: %PTO_AVAILABLE_IN_ALL under a shorter name.
 */
#define PTO_EXPORT PTO_AVAILABLE_IN_ALL
