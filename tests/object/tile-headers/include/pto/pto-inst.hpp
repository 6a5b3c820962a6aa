// pto-inst.hpp: stands for a vendor's tile headers: what do they ask of a compiler, and what do kernels find?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#ifndef __CPU_SIM
#error "made for the device's compiler or for __CPU_SIM"
#endif
#if !defined(__DAV_VEC__) && !defined(__DAV_CUBE__)
#error "neither a vector core nor a cube core"
#endif
#if PTO_CPU_MAX_THREADS != 1
#error "a kernel has one thread"
#endif

#include <pto/common/tile.hpp>

// A warning that is not the user's to put right.
static inline int pto_unused_here () { int unused; return 0; }
