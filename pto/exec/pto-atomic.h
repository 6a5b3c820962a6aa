/* pto-atomic.h: the atomic operations of the engine, and where an explorer may switch between them.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Built with PTO_EXPLORE, every operation first lets the explorer choose who goes next; otherwise
 * each is the plain C11 operation and nothing else.
 */
#pragma once

#include <stdatomic.h>

#ifdef PTO_EXPLORE
void pto_explore_point (void);
#else
#define pto_explore_point() ((void) 0)
#endif

#define pto_load_relaxed(p) (pto_explore_point (), atomic_load_explicit ((p), memory_order_relaxed))
#define pto_load_acquire(p) (pto_explore_point (), atomic_load_explicit ((p), memory_order_acquire))
#define pto_load_seq_cst(p) (pto_explore_point (), atomic_load_explicit ((p), memory_order_seq_cst))
#define pto_store_relaxed(p, v) \
  (pto_explore_point (), atomic_store_explicit ((p), (v), memory_order_relaxed))
#define pto_store_release(p, v) \
  (pto_explore_point (), atomic_store_explicit ((p), (v), memory_order_release))
#define pto_store_seq_cst(p, v) \
  (pto_explore_point (), atomic_store_explicit ((p), (v), memory_order_seq_cst))
#define pto_fetch_add_acq_rel(p, v) \
  (pto_explore_point (), atomic_fetch_add_explicit ((p), (v), memory_order_acq_rel))
#define pto_fetch_sub_acq_rel(p, v) \
  (pto_explore_point (), atomic_fetch_sub_explicit ((p), (v), memory_order_acq_rel))
#define pto_fetch_add_relaxed(p, v) \
  (pto_explore_point (), atomic_fetch_add_explicit ((p), (v), memory_order_relaxed))
#define pto_fetch_sub_relaxed(p, v) \
  (pto_explore_point (), atomic_fetch_sub_explicit ((p), (v), memory_order_relaxed))
#define pto_fetch_add_seq_cst(p, v) \
  (pto_explore_point (), atomic_fetch_add_explicit ((p), (v), memory_order_seq_cst))
#define pto_fetch_or_seq_cst(p, v) \
  (pto_explore_point (), atomic_fetch_or_explicit ((p), (v), memory_order_seq_cst))
#define pto_fetch_and_seq_cst(p, v) \
  (pto_explore_point (), atomic_fetch_and_explicit ((p), (v), memory_order_seq_cst))
#define pto_fetch_and_relaxed(p, v) \
  (pto_explore_point (), atomic_fetch_and_explicit ((p), (v), memory_order_relaxed))
#define pto_fetch_or_release(p, v) \
  (pto_explore_point (), atomic_fetch_or_explicit ((p), (v), memory_order_release))
#define pto_exchange_acquire(p, v) \
  (pto_explore_point (), atomic_exchange_explicit ((p), (v), memory_order_acquire))
#define pto_exchange_acq_rel(p, v) \
  (pto_explore_point (), atomic_exchange_explicit ((p), (v), memory_order_acq_rel))
#define pto_exchange_seq_cst(p, v) \
  (pto_explore_point (), atomic_exchange_explicit ((p), (v), memory_order_seq_cst))
#define pto_cas_acq_rel(p, expected, v)                            \
  (pto_explore_point (), atomic_compare_exchange_strong_explicit ( \
                             (p), (expected), (v), memory_order_acq_rel, memory_order_acquire))
/* Failing, these give a hint. */
#define pto_cas_seq_cst(p, expected, v)                            \
  (pto_explore_point (), atomic_compare_exchange_strong_explicit ( \
                             (p), (expected), (v), memory_order_seq_cst, memory_order_relaxed))
#define pto_cas_acquire(p, expected, v)                            \
  (pto_explore_point (), atomic_compare_exchange_strong_explicit ( \
                             (p), (expected), (v), memory_order_acquire, memory_order_relaxed))
#define pto_cas_relaxed(p, expected, v)                            \
  (pto_explore_point (), atomic_compare_exchange_strong_explicit ( \
                             (p), (expected), (v), memory_order_relaxed, memory_order_relaxed))
#define pto_fence_seq_cst() (pto_explore_point (), atomic_thread_fence (memory_order_seq_cst))
