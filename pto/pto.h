/* pto.h: what does a program that uses the library include?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#define PTO_INSIDE

#include "pto-answer.h"
#include "pto-buffer.h"
#include "pto-call-config.h"
#include "pto-callable-handle.h"
#include "pto-callable.h"
#include "pto-chip-orchestration.h"
#include "pto-cluster-file.h"
#include "pto-compile.h"
#include "pto-costs.h"
#include "pto-device-code.h"
#include "pto-enums.h"
#include "pto-error.h"
#include "pto-exception.h"
#include "pto-function.h"
#include "pto-graph.h"
#include "pto-kernel.h"
#include "pto-library.h"
#include "pto-macros.h"
#include "pto-orchestrator.h"
#include "pto-platform.h"
#include "pto-remote.h"
#include "pto-run-statistics.h"
#include "pto-task-args.h"
#include "pto-tensor.h"
#include "pto-trace-items.h"
#include "pto-trace-simulate.h"
#include "pto-trace-topics.h"
#include "pto-trace.h"
#include "pto-translation.h"
#include "pto-types.h"
#include "pto-version.h"
#include "pto-worker.h"

#undef PTO_INSIDE
