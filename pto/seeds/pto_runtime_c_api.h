/* pto_runtime_c_api.h: how does a C program that was written after seed 003 hold a chip?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Layer 2 of seed 003 by its names, in libpto-seeds-1.so, so that dlsym() finds them, too. Each is
 * something of pto/pto.h under another name: a context is a PtoWorker of level 2, with the
 * callables that it has by numbers. A program that has no names yet is better written for
 * pto/pto.h.
 *
 * Functions give 0, or -1 and a line that says why: simpler_last_error() has it, and standard error
 * if simpler_log_init() says so. Contexts may be used from any thread; runs of one are one after
 * the other.
 *
 * Since: 0.1
 */
#pragma once

#include "task_args.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C"
{
#endif

  typedef struct _PtoCallConfig PtoCallConfig;
  typedef struct _PtoCallable PtoCallable;
  typedef struct _PtoWorker PtoWorker;
  typedef struct SimplerDeviceContext *DeviceContextHandle;

  /* What is told on standard error: 0 and 1 all, 2 and 3 (the beginning) errors, 4 nothing. Of what
   * is told beside errors log_info_v chooses: 0 that contexts begin and end, 1 callables, too, 2
   * and more each run, too. */
  int simpler_log_init (int log_level, int log_info_v);

  DeviceContextHandle create_device_context (void);

  /* Starts the chip. What stands for the programs of a simulated chip are names: aicpu_binary is
   * that of the runtime (tensormap_and_ringbuffer, host_build_graph or aicpu_build_graph; the first
   * when there is none), aicore_binary that of the platform, or the path of its file (a2a3sim when
   * there is none). What follows the first line is not of interest here. Devices are 0 to
   * 15. The thread's pto2_run_runtime() is for this context from now on. */
  int simpler_init (DeviceContextHandle ctx, int device_id, const void *aicpu_binary,
                    size_t aicpu_size, const void *aicore_binary, size_t aicore_size);

  /* What a caller keeps for a run, and which a run fills in; all of the graph is the library's. */
  typedef struct SimplerRuntime
  {
    uint64_t tasks;     /* that were submitted */
    uint64_t completed; /* of these */
    uint64_t edges;     /* between them */
    uint64_t run_ns;    /* how long it took, as PtoRunStatistics:run-ns */
  } SimplerRuntime;

  size_t get_runtime_size (void);

  /* A callable, as pto_chip_orchestration_new() makes one, by a number of the caller's that is
   * free. It is built and loaded here. */
  int register_callable (DeviceContextHandle ctx, int32_t cid, PtoCallable *callable);
  int unregister_callable (DeviceContextHandle ctx, int32_t cid);

  /* Runs a callable and waits. runtime: get_runtime_size() bytes, or NULL; args, config: may be
   * NULL. */
  int simpler_run (DeviceContextHandle ctx, void *runtime, int32_t cid,
                   const ChipStorageTaskArgs *args, const CallConfig *config);

  /* Seed 001, section 5: the same on the context that this thread has initialized last. */
  int pto2_run_runtime (int32_t local_slot, const ChipStorageTaskArgs *args,
                        const CallConfig *config);

  /* Memory of the device; device_malloc() gives NULL when there is none left. */
  void *device_malloc (DeviceContextHandle ctx, size_t size);
  int device_free (DeviceContextHandle ctx, void *device);
  int copy_to_device (DeviceContextHandle ctx, void *device, const void *host, size_t size);
  int copy_from_device (DeviceContextHandle ctx, void *host, const void *device, size_t size);

  /* Gives back the chip and all that was registered; simpler_init() may begin anew. Without a chip
   * it does nothing. */
  int finalize_device (DeviceContextHandle ctx);
  void destroy_device_context (DeviceContextHandle ctx);

  /* Seed 004's layer 2. It is in host binaries (host_binary.cpp, which is compiled with what a
   * program has of InitRuntimeImpl() and FinalizeRuntimeImpl()), and is about the one DeviceRunner
   * of the process. A runtime is GetRuntimeSize() bytes of the caller's, from InitRuntime() to
   * FinalizeRuntime(). num_cores is a multiple of 3; pto_isa_root may be NULL. */
  size_t GetRuntimeSize (void);
  int InitRuntime (void *runtime_handle);
  int FinalizeRuntime (void *runtime_handle);
  int DeviceRunner_Init (int device_id, int num_cores, const void *aicpu_binary, size_t aicpu_size,
                         const void *aicore_binary, size_t aicore_size, const char *pto_isa_root);
  int DeviceRunner_Run (void *runtime_handle, int launch_aicpu_num);
  int DeviceRunner_Finalize (void);
  int launch_runtime (void *runtime_handle, int aicpu_thread_num, int block_dim, int device_id,
                      const void *aicpu_binary, size_t aicpu_size, const void *aicore_binary,
                      size_t aicore_size);

  /* Beyond the seeds: why did the last call of this thread that gave -1 or NULL do so (valid until
   * its next call that fails)? Which worker is a context's (the context's own; NULL before
   * simpler_init())? */
  const char *simpler_last_error (void);
  PtoWorker *simpler_get_worker (DeviceContextHandle ctx);

  /* For what is built upon this: notes and tells a failure, and gives -1; a configuration as libpto
   * has it, to be freed by pto_call_config_free(), or NULL. */
  int simpler_fail (const char *where, const char *why);
  PtoCallConfig *simpler_read_config (const CallConfig *config);

#ifdef __cplusplus
}
#endif
