/* pto_orchestration_api.h: how an orchestration submits kernels on tensors.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An orchestration depends on this header only and links with nothing: it calls the runtime through
 * the table of functions that PTO2Runtime begins with. It exports two functions with C linkage:
 *
 *   PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count);
 *   int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count);
 *
 * The entry may return void; where it returns int, a value other than 0 fails the run. Valid C17
 * and C++17. Thread safety: everything here is called on the thread that runs the orchestration; a
 * call by another one fails the run, but for log.
 * Source: seed 000 section 11.
 */
#pragma once

#include <inttypes.h>
#include <stdio.h>

#include "tensor.h"

#ifdef __cplusplus
#include <string>
#endif

#ifdef __cplusplus
extern "C"
{
#endif

  /* Where a kernel runs. */
  enum
  {
    PTO2_WORKER_CUBE = 0,  /* AIC: matrix multiplication */
    PTO2_WORKER_VECTOR = 1 /* AIV: vector operations */
  };

  /* Instead of a kernel, where there is to be none. */
#define PTO2_KERNEL_NONE (-1)
  /* The chip's own: writes args[1], the bits of a value, into each element of args[0]. */
#define PTO2_KERNEL_FILL (-2)
  /* The chip's own, too: combine what tasks reduce (make_reduction_param()), element by element. Of
   * integers, which wrap around, of float64, float32, float16 and bfloat16. */
#define PTO2_KERNEL_SUM (-3)
#define PTO2_KERNEL_PROD (-4)
#define PTO2_KERNEL_MIN (-5)
#define PTO2_KERNEL_MAX (-6)

  /* A task of this run, for those that name it. */
  typedef uint64_t PTO2TaskId;
  /* No task: the run has failed. */
#define PTO2_TASK_NONE UINT64_MAX

  typedef struct PTO2OrchestrationConfig
  {
    int expected_arg_count;
  } PTO2OrchestrationConfig;

  /* The runtime's record of a buffer that it allocates itself. Opaque here. */
  typedef struct PTO2Buffer PTO2Buffer;
  typedef struct PTO2Runtime PTO2Runtime;

  /* Why a Tensor can not be used; the submit that meets it fails the run with this reason. */
  enum
  {
    PTO2_TENSOR_OK = 0,
    /* no dimensions, more than 5, a zero extent, an unknown type, or an overflow */
    PTO2_TENSOR_BAD_SHAPE = 1,
    PTO2_TENSOR_OUT_OF_BOUNDS = 2, /* view(): reaches beyond its tensor */
    PTO2_TENSOR_BAD_RESHAPE = 3,   /* reshape(): other number of elements, or not contiguous */
    PTO2_TENSOR_BAD_TRANSPOSE = 4, /* transpose(): no such dimension */
    PTO2_TENSOR_NO_POOL = 5,       /* make_tensor() outside of an orchestration */
    PTO2_TENSOR_NO_ARGUMENT = 6,   /* pto2_rt_arg_tensor(): there is no such tensor */
    PTO2_TENSOR_NO_INITIAL = 7     /* make_reduction_param(): nothing that copies begin with */
  };

  /* A handle on a tensor or on a view of one. Copied by value; every copy of a make_tensor() handle
   * sees the address that the runtime gives the buffer at the submit that outputs it. The first
   * fields are those of TensorData. */
  typedef struct Tensor
  {
    PTOBufferHandle buffer;
    uint64_t start_offset;
    uint32_t ndims;
    DataType dtype;
    uint64_t shapes[PTO2_TENSOR_MAX_DIMS];
    uint64_t strides[PTO2_TENSOR_MAX_DIMS];
    PTO2Buffer *storage; /* the runtime's record; NULL for memory the caller owns */
    uint32_t generation; /* of the record, so that a handle that outlives its scope is refused */
    uint32_t status;     /* PTO2_TENSOR_* */

#ifdef __cplusplus
    /* The part of this tensor with the given extents that begins at the given element. */
    inline Tensor view (const uint64_t view_shapes[], const uint64_t view_offsets[]) const;
    /* The same elements in row-major order under another shape; needs a contiguous tensor. */
    inline Tensor reshape (const uint64_t new_shapes[], uint32_t new_ndims) const;
    /* The same elements with two dimensions exchanged. */
    inline Tensor transpose (uint32_t x, uint32_t y) const;
    inline uint64_t numel () const;
    inline bool is_contiguous () const;
    /* In bytes. */
    inline uint64_t get_element_size () const;
    /* What it is, in one line for people. */
    inline std::string dump () const;
#endif
  } Tensor;

  typedef enum PTOParamType
  {
    PTO_PARAM_INPUT = 0, /* read by the task */
    /* written by the task; allocated at submit when it has no address yet */
    PTO_PARAM_OUTPUT = 1,
    PTO_PARAM_INOUT = 2,           /* read, then written */
    PTO_PARAM_OUTPUT_EXISTING = 3, /* written by the task, memory that exists already */
    PTO_PARAM_NO_DEP = 4,          /* passed on, takes no part in dependencies */
    PTO_PARAM_SCALAR = 5,
    /* updated by the task, and by others that say so of exactly this part of memory: one at a time,
     * in any order; all that read or write it otherwise come before them or after them. Not in
     * manual scopes. */
    PTO_PARAM_COMMUTATIVE = 6,
    /* memory for this task alone, of which its blocks have one piece together, with whatever it
     * held; it is nobody's when the task is done */
    PTO_PARAM_SCRATCH = 7,
    /* reduced into by the task, and by others that say so of exactly this tensor in the same way:
     * each updates a copy (see make_reduction_param()) */
    PTO_PARAM_REDUCTION = 8
  } PTOParamType;

  typedef struct PTOParam
  {
    PTOParamType type;
    int32_t combine; /* of a reduction: the kernel that combines; otherwise not read */
    uint64_t scalar; /* of a reduction: the bits of what each element of a copy begins with */
    Tensor tensor;   /* not initialized for a scalar */
  } PTOParam;

  /* A submit that says more than its kernel and its tensors; what is zero is not asked for. */
  typedef struct PTO2Submit
  {
    size_t size; /* of this struct, as the orchestration knows it */
    int32_t kernel_id;
    int32_t worker_type; /* without a kernel not read */
    PTOParam *params;
    int32_t n_params;
    int32_t n_after; /* tasks that it comes after, whatever their tensors are */
    const PTO2TaskId *after;
    /* Of it one element is looked at when the task is ready, as an INPUT of it: the one at
     * condition_index. Where that is 0 the kernel does not run. */
    const Tensor *condition;
    const uint64_t *condition_index; /* one for each dimension */
    /* Blocks: so many times the kernel, with the same arguments. Each knows which one it is
     * (pto_block.h); they run at the same time as far as there are cores. */
    int32_t block_dim;
    int32_t sync_start; /* not 0: all of them begin at once */
    /* Instead of kernel_id, which is PTO2_KERNEL_NONE, three: for the cube core and the two vector
     * cores of one cluster, which begin at once; PTO2_KERNEL_NONE for none. Of each block. */
    const int32_t *mixed;
    int32_t in_cluster; /* not 0: it runs in cluster_id, which is allocated */
    int32_t cluster_id; /* without in_cluster 0 or less */
    /* 0 to PTO_MAX_PRIORITY: of the tasks that are ready for one kind of cores, those with the
     * highest go first, and among equals who has been ready for longest. For a task with a kernel.
     */
    int32_t priority;
    /* not 0: nothing is looked up for it, and it does not run before it is published
     * (pto_build_graph.h) */
    int32_t unpublished;
    /* Instead of kernel_id and block_dim, so many: a group. They begin at once, each on a core of
     * its own of the type that it is for, wherever on the chip; each is one block. */
    int32_t n_group;
    const int32_t *group;
    /* Of a group: how many parameters each member has, those of the first one first; NULL: each has
     * all of them. */
    const int32_t *group_params;
    /* Of a group: the core that each runs on, by its number among those of its type, as in
     * pto2_rt_cluster_cores(); -1: any. NULL: any for all. */
    const int32_t *group_cores;
  } PTO2Submit;

  enum
  {
    PTO2_LOG_ERROR = 0,
    PTO2_LOG_WARN = 1,
    PTO2_LOG_INFO = 2,
    PTO2_LOG_DEBUG = 3
  };

  /* The calls into the runtime. New entries are appended; size tells an orchestration how many
   * there are. */
  typedef struct PTO2RuntimeOps
  {
    size_t size;
    PTO2TaskId (*submit_task) (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type,
                               PTOParam *params, int32_t n_params);
    void (*scope_begin) (PTO2Runtime *rt, const char *file, int32_t line);
    void (*scope_end) (PTO2Runtime *rt);
    void (*orchestration_done) (PTO2Runtime *rt);
    void (*init_tensor_pool) (PTO2Runtime *rt);
    /* A record for a buffer of that many bytes in the current scope; NULL once the run has failed.
     */
    PTO2Buffer *(*new_buffer) (PTO2Runtime *rt, uint64_t bytes, uint32_t *generation);
    void (*log) (PTO2Runtime *rt, int32_t level, const char *format, ...)
#if defined(__GNUC__)
        __attribute__ ((format (printf, 3, 4)))
#endif
        ;
    PTO2TaskId (*submit) (PTO2Runtime *rt, const PTO2Submit *submit);
    void (*manual_scope_begin) (PTO2Runtime *rt, const char *file, int32_t line);
    /* Waits until the orchestration itself may read one element, or write it. Where it is; NULL:
     * the run has failed. */
    void *(*touch) (PTO2Runtime *rt, const Tensor *tensor, const uint64_t index[], bool write);
    /* A tensor that the run was given: args[index] of the entry. NULL where a function of the
     * program submits, which has its tensors. */
    void (*arg_tensor) (PTO2Runtime *rt, int32_t index, Tensor *tensor);
    /* As the functions of these names say. */
    int32_t (*allocate_cluster) (PTO2Runtime *rt);
    void (*free_cluster) (PTO2Runtime *rt, int32_t cluster_id);
    int32_t (*cluster_cores) (PTO2Runtime *rt, int32_t cluster_id, int32_t worker_type,
                              int32_t cores[], int32_t n);
    /* As the functions of pto_build_graph.h. */
    bool (*add_successor) (PTO2Runtime *rt, PTO2TaskId predecessor, PTO2TaskId successor);
    void (*publish_task) (PTO2Runtime *rt, PTO2TaskId task);
    void *(*device_malloc) (PTO2Runtime *rt, uint64_t bytes);
    int32_t (*cluster_count) (PTO2Runtime *rt);
  } PTO2RuntimeOps;

  struct PTO2Runtime
  {
    const PTO2RuntimeOps *ops;
    int32_t line; /* of the last submit, for messages; 0: there was none */
    /* What that is a line of; NULL: not known. A string that stays. */
    const char *file;
  };

/* make_tensor() has no runtime parameter: the runtime of the orchestration that runs on this
 * thread. libpto itself has no such variable: each of its object files would take room for one. */
#ifdef PTO2_NO_CURRENT_RUNTIME
  extern _Thread_local PTO2Runtime *pto2_current_runtime;
#else
#if defined(__GNUC__)
__attribute__ ((weak, visibility ("default")))
#endif
#ifdef __cplusplus
thread_local PTO2Runtime *pto2_current_runtime
    = nullptr;
#else
_Thread_local PTO2Runtime *pto2_current_runtime = NULL;
#endif
#endif

  /* Gives the task's name, for who wants to name it; PTO2_TASK_NONE once the run has failed. */
  static inline PTO2TaskId
  pto2_rt_submit_task (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type, PTOParam *params,
                       int32_t n_params)
  {
    return rt->ops->submit_task (rt, kernel_id, worker_type, params, n_params);
  }

  /* A submit that asks for nothing else yet: fill in what it is to say, and give it to
   * pto2_rt_submit(). */
  static inline PTO2Submit
  pto2_make_submit (int32_t kernel_id, int32_t worker_type, PTOParam *params, int32_t n_params)
  {
    PTO2Submit submit;

    memset (&submit, 0, sizeof submit);
    submit.size = sizeof submit;
    submit.kernel_id = kernel_id;
    submit.worker_type = worker_type;
    submit.params = params;
    submit.n_params = n_params;
    return submit;
  }

  static inline PTO2TaskId
  pto2_rt_submit (PTO2Runtime *rt, const PTO2Submit *submit)
  {
    return rt->ops->submit (rt, submit);
  }

  /* The same as pto2_rt_submit_task(), and the task comes after those, too. Tasks that are done are
   * no trouble. */
  static inline PTO2TaskId
  pto2_rt_submit_task_after (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type,
                             PTOParam *params, int32_t n_params, const PTO2TaskId after[],
                             int32_t n_after)
  {
    PTO2Submit submit = pto2_make_submit (kernel_id, worker_type, params, n_params);

    submit.after = after;
    submit.n_after = n_after;
    return rt->ops->submit (rt, &submit);
  }

  /* The same as pto2_rt_submit_task(), but it goes before ready tasks of a lower priority: 0 is
   * what tasks have that are given none, PTO_MAX_PRIORITY is the highest. */
  static inline PTO2TaskId
  pto2_rt_submit_task_with_priority (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type,
                                     PTOParam *params, int32_t n_params, int32_t priority)
  {
    PTO2Submit submit = pto2_make_submit (kernel_id, worker_type, params, n_params);

    submit.priority = priority;
    return rt->ops->submit (rt, &submit);
  }

  /* A task that runs nothing, and takes no core. It comes after what its tensors and what it names
   * say, memory that it outputs is made, and other tasks come after it. */
  static inline PTO2TaskId
  pto2_rt_submit_order (PTO2Runtime *rt, PTOParam *params, int32_t n_params,
                        const PTO2TaskId after[], int32_t n_after)
  {
    return pto2_rt_submit_task_after (rt, PTO2_KERNEL_NONE, 0, params, n_params, after, n_after);
  }

  /* The same as pto2_rt_submit_task(), but the kernel runs only where that element is not 0 by
   * then: a task submitted before may write it. Where it is 0 the memory of the task's outputs is
   * there all the same, with whatever it held. Tasks that depend on this one wait no longer than
   * until that is known. */
  static inline PTO2TaskId
  pto2_rt_submit_task_if (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type, PTOParam *params,
                          int32_t n_params, const Tensor *condition, const uint64_t index[])
  {
    PTO2Submit submit = pto2_make_submit (kernel_id, worker_type, params, n_params);

    submit.condition = condition;
    submit.condition_index = index;
    return rt->ops->submit (rt, &submit);
  }

  /* One task of block_dim blocks: the kernel runs so often, with the same arguments, and each knows
   * which block it is (get_block_idx()). They run on as many cores as are idle; there may be more
   * blocks than cores. What comes after the task comes after all of them. */
  static inline PTO2TaskId
  pto2_rt_submit_block_task (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type,
                             PTOParam *params, int32_t n_params, int32_t block_dim)
  {
    PTO2Submit submit = pto2_make_submit (kernel_id, worker_type, params, n_params);

    submit.block_dim = block_dim > 0 ? block_dim : -1;
    return rt->ops->submit (rt, &submit);
  }

  /* The same, and all blocks begin at once: they may wait for each other (pto_sync_all()). Where
   * there are more blocks than cores the run fails. */
  static inline PTO2TaskId
  pto2_rt_submit_sync_task (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type,
                            PTOParam *params, int32_t n_params, int32_t block_dim)
  {
    PTO2Submit submit = pto2_make_submit (kernel_id, worker_type, params, n_params);

    submit.block_dim = block_dim > 0 ? block_dim : -1;
    submit.sync_start = 1;
    return rt->ops->submit (rt, &submit);
  }

  /* One task of block_dim blocks, each of which is up to three kernels that begin at once on the
   * cube core and the vector cores of one cluster, with the same arguments (get_sub_block_id()
   * tells the vector cores' kernels apart). PTO2_KERNEL_NONE: none there. */
  static inline PTO2TaskId
  pto2_rt_submit_mixed_task (PTO2Runtime *rt, int32_t aic_kernel, int32_t aiv0_kernel,
                             int32_t aiv1_kernel, PTOParam *params, int32_t n_params,
                             int32_t block_dim)
  {
    int32_t mixed[3] = { aic_kernel, aiv0_kernel, aiv1_kernel };
    PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, params, n_params);

    submit.mixed = mixed;
    submit.block_dim = block_dim > 0 ? block_dim : -1;
    return rt->ops->submit (rt, &submit);
  }

  /* A group: one task of as many kernels as are named, the same or others, for cube or vector
   * cores. They begin at once, on different cores wherever on the chip, with the same arguments;
   * each is a block of the task (get_block_idx() is its index here), and they may meet in
   * pto_sync_all(). Where there are more than cores the run fails. */
  static inline PTO2TaskId
  pto2_rt_submit_group_task (PTO2Runtime *rt, const int32_t kernels[], int32_t n_kernels,
                             PTOParam *params, int32_t n_params)
  {
    PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, params, n_params);

    submit.group = kernels;
    submit.n_group = n_kernels > 0 ? n_kernels : -1;
    return rt->ops->submit (rt, &submit);
  }

  /* The same, but each member has parameters of its own: of params the first n_params[0] are those
   * of the first one, and so on. The task comes after what any of them makes it wait for. cores:
   * NULL, or for each member the number of the core of its type that it runs on, or -1 for any. */
  static inline PTO2TaskId
  pto2_rt_submit_group_members (PTO2Runtime *rt, const int32_t kernels[], int32_t n_kernels,
                                PTOParam *params, const int32_t n_params[], const int32_t cores[])
  {
    PTO2Submit submit = pto2_make_submit (PTO2_KERNEL_NONE, 0, params, 0);

    for (int32_t i = 0; i < n_kernels; i++)
      submit.n_params += n_params[i];
    submit.group = kernels;
    submit.n_group = n_kernels > 0 ? n_kernels : -1;
    submit.group_params = n_params;
    submit.group_cores = cores;
    return rt->ops->submit (rt, &submit);
  }

  /* A cluster of its own for those that are submitted for it: nobody else allocates it until it is
   * free again. Waits while all are taken and some of them become free without the orchestration;
   * where none ever would, the run fails and -1 is given. It is free when pto2_rt_free_cluster()
   * has been called, or the scope has ended, and the tasks that were submitted for it are done.
   * Tasks that are for no cluster run on its idle cores all the same. */
  static inline int32_t
  pto2_rt_allocate_cluster (PTO2Runtime *rt)
  {
    return rt->ops->allocate_cluster (rt);
  }

  /* Does not wait. */
  static inline void
  pto2_rt_free_cluster (PTO2Runtime *rt, int32_t cluster_id)
  {
    rt->ops->free_cluster (rt, cluster_id);
  }

  /* How many clusters the chip has in this run, numbered from 0. */
  static inline int32_t
  pto2_rt_cluster_count (PTO2Runtime *rt)
  {
    return rt->ops->cluster_count (rt);
  }

  /* The numbers of a cluster's cores of a type, as messages and pictures have them: AIC3, AIV7.
   * Gives how many there are, also where that is more than n; -1: there is no such cluster. */
  static inline int32_t
  pto2_rt_cluster_cores (PTO2Runtime *rt, int32_t cluster_id, int32_t worker_type, int32_t cores[],
                         int32_t n)
  {
    return rt->ops->cluster_cores (rt, cluster_id, worker_type, cores, n);
  }

  /* The same as pto2_rt_submit_task(), in an allocated cluster; -1: anywhere. */
  static inline PTO2TaskId
  pto2_rt_submit_task_clustered (PTO2Runtime *rt, int32_t kernel_id, int32_t worker_type,
                                 PTOParam *params, int32_t n_params, int32_t cluster_id)
  {
    PTO2Submit submit = pto2_make_submit (kernel_id, worker_type, params, n_params);

    submit.in_cluster = cluster_id != -1;
    submit.cluster_id = cluster_id;
    return rt->ops->submit (rt, &submit);
  }

  static inline PTO2Runtime *
  pto2_rt_at (PTO2Runtime *rt, const char *file, int32_t line)
  {
    rt->file = file;
    rt->line = line;
    return rt;
  }

/* The caller's place. */
#define PTO2_HERE_(rt) pto2_rt_at ((rt), __FILE__, __LINE__)

/* Notes its place. The name without parentheses behind it is the function above. */
#define pto2_rt_submit_task(rt, ...) (pto2_rt_submit_task) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit_task_after(rt, ...) \
  (pto2_rt_submit_task_after) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit_task_with_priority(rt, ...) \
  (pto2_rt_submit_task_with_priority) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit_order(rt, ...) (pto2_rt_submit_order) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit_task_if(rt, ...) (pto2_rt_submit_task_if) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit(rt, ...) (pto2_rt_submit) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit_block_task(rt, ...) \
  (pto2_rt_submit_block_task) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit_sync_task(rt, ...) (pto2_rt_submit_sync_task) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit_mixed_task(rt, ...) \
  (pto2_rt_submit_mixed_task) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit_group_task(rt, ...) \
  (pto2_rt_submit_group_task) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit_group_members(rt, ...) \
  (pto2_rt_submit_group_members) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_submit_task_clustered(rt, ...) \
  (pto2_rt_submit_task_clustered) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_allocate_cluster(rt) (pto2_rt_allocate_cluster) (PTO2_HERE_ (rt))
#define pto2_rt_free_cluster(rt, ...) (pto2_rt_free_cluster) (PTO2_HERE_ (rt), __VA_ARGS__)

  /* Opens a scope; the place is for messages and must be a string that stays (file may be NULL). */
  static inline void
  pto2_rt_scope_begin_at (PTO2Runtime *rt, const char *file, int32_t line)
  {
    rt->ops->scope_begin (rt, file, line);
  }

  static inline void
  pto2_rt_scope_begin (PTO2Runtime *rt)
  {
    pto2_rt_scope_begin_at (rt, NULL, 0);
  }

  /* Opens a scope whose tasks come after those that they name, and after no others: nothing is
   * looked up for them and nothing is recorded, not for tasks behind the scope either. What tasks
   * have reduced before it is combined first, and its tasks come after that. Memory that the
   * runtime makes for them stays as long as anywhere else. Scopes inside are to be manual, too. */
  static inline void
  pto2_rt_manual_scope_begin_at (PTO2Runtime *rt, const char *file, int32_t line)
  {
    rt->ops->manual_scope_begin (rt, file, line);
  }

  static inline void
  pto2_rt_manual_scope_begin (PTO2Runtime *rt)
  {
    pto2_rt_manual_scope_begin_at (rt, NULL, 0);
  }

  static inline void
  pto2_rt_scope_end (PTO2Runtime *rt)
  {
    rt->ops->scope_end (rt);
  }

  static inline void
  pto2_rt_orchestration_done (PTO2Runtime *rt)
  {
    rt->ops->orchestration_done (rt);
  }

  static inline void
  pto2_rt_init_tensor_pool (PTO2Runtime *rt)
  {
    pto2_current_runtime = rt;
    rt->ops->init_tensor_pool (rt);
  }

#define PTO2_LOG_(rt, level, ...) ((rt)->ops->log ((rt), (level), __VA_ARGS__))
#define LOG_ERROR(rt, ...) PTO2_LOG_ (rt, PTO2_LOG_ERROR, __VA_ARGS__)
#define LOG_WARN(rt, ...) PTO2_LOG_ (rt, PTO2_LOG_WARN, __VA_ARGS__)
#define LOG_INFO(rt, ...) PTO2_LOG_ (rt, PTO2_LOG_INFO, __VA_ARGS__)
#define LOG_DEBUG(rt, ...) PTO2_LOG_ (rt, PTO2_LOG_DEBUG, __VA_ARGS__)

  /* Marks a handle as unusable; the first reason stays. */
  static inline void
  pto2_tensor_refuse (Tensor *tensor, uint32_t reason)
  {
    if (tensor->status == PTO2_TENSOR_OK)
      tensor->status = reason;
  }

  /* Fills shape and row-major strides; gives the number of elements, 0 when the shape is refused.
   */
  static inline uint64_t
  pto2_tensor_set_shape (Tensor *tensor, const uint64_t shapes[], uint32_t ndims, DataType dtype)
  {
    uint64_t numel = 1;
    const uint64_t limit = UINT64_MAX / 8;

    tensor->ndims = ndims;
    tensor->dtype = dtype;
    tensor->status = PTO2_TENSOR_OK;
    if (ndims < 1 || ndims > PTO2_TENSOR_MAX_DIMS || pto_dtype_size (dtype) == 0)
      {
        tensor->ndims = 0;
        tensor->status = PTO2_TENSOR_BAD_SHAPE;
        return 0;
      }
    for (uint32_t i = ndims; i-- > 0;)
      {
        tensor->shapes[i] = shapes[i];
        tensor->strides[i] = numel;
        /* Two factors below 2^30 are no division's worth. */
        if (shapes[i] == 0 || ((numel | shapes[i]) >> 30 != 0 && numel > limit / shapes[i]))
          {
            tensor->status = PTO2_TENSOR_BAD_SHAPE;
            return 0;
          }
        numel *= shapes[i];
      }
    return numel;
  }

  static inline uint64_t
  pto2_tensor_numel (const Tensor *tensor)
  {
    uint64_t numel = tensor->ndims > 0 ? 1 : 0;

    for (uint32_t i = 0; i < tensor->ndims; i++)
      numel *= tensor->shapes[i];
    return numel;
  }

  static inline bool
  pto2_tensor_is_contiguous (const Tensor *tensor)
  {
    uint64_t expected = 1;

    for (uint32_t i = tensor->ndims; i-- > 0;)
      {
        if (tensor->shapes[i] != 1 && tensor->strides[i] != expected)
          return false;
        expected *= tensor->shapes[i];
      }
    return true;
  }

  /* Of one element, in bytes. */
  static inline uint64_t
  pto2_tensor_element_size (const Tensor *tensor)
  {
    return pto_dtype_size (tensor->dtype);
  }

  /* Adds to a text of that length what fits, as snprintf() does; gives the length of the whole. */
  static inline size_t
  pto2_dump_list_ (char text[], size_t size, size_t length, const char *name, uint32_t n,
                   const uint64_t values[])
  {
    for (uint32_t i = 0; i <= n; i++)
      {
        char *rest = length < size ? text + length : NULL;
        size_t left = length < size ? size - length : 0;
        int more = i < n ? snprintf (rest, left, "%s%s%" PRIu64, i == 0 ? name : "",
                                     i == 0 ? "[" : ", ", values[i])
                         : snprintf (rest, left, "%s%s", n == 0 ? name : "", n == 0 ? "[]" : "]");

        length += PTO2_NUMBER_ (size_t, more);
      }
    return length;
  }

  /* What it is, in one line for people: type, shape, strides in elements, memory. Writes as much as
   * fits, and gives the length of the whole, as snprintf() does. */
  static inline size_t
  pto2_tensor_dump (const Tensor *tensor, char text[], size_t size)
  {
    uint32_t n = tensor->ndims <= PTO2_TENSOR_MAX_DIMS ? tensor->ndims : 0;
    int more = snprintf (text, size, "%s", pto_dtype_name (tensor->dtype));
    size_t length = PTO2_NUMBER_ (size_t, more);

    length = pto2_dump_list_ (text, size, length, " ", n, tensor->shapes);
    length = pto2_dump_list_ (text, size, length, " strides ", n, tensor->strides);
    more = snprintf (length < size ? text + length : NULL, length < size ? size - length : 0,
                     " offset %" PRIu64 " in %" PRIu64 " bytes at 0x%" PRIx64 "%s",
                     tensor->start_offset, tensor->buffer.size, tensor->buffer.addr,
                     tensor->status != PTO2_TENSOR_OK ? ", can not be used" : "");
    length += PTO2_NUMBER_ (size_t, more);
    return length;
  }

  /* A tensor over device memory that the caller owns. */
  static inline Tensor
  make_tensor_external (void *ptr, const uint64_t shapes[], uint32_t ndims, DataType dtype)
  {
    Tensor tensor;
    uint64_t numel;

    /* Field by field: of memset() compilers make a loop in microcode, which costs more than the
     * whole rest. */
    tensor.start_offset = 0;
    for (uint32_t i = 0; i < PTO2_TENSOR_MAX_DIMS; i++)
      {
        tensor.shapes[i] = 0;
        tensor.strides[i] = 0;
      }
    tensor.storage = NULL;
    tensor.generation = 0;
    numel = pto2_tensor_set_shape (&tensor, shapes, ndims, dtype);
    tensor.buffer.addr = PTO2_POINTER_ (uintptr_t, ptr);
    tensor.buffer.size = numel * pto_dtype_size (dtype);
    return tensor;
  }

  static inline Tensor
  pto2_rt_make_tensor (PTO2Runtime *rt, const uint64_t shapes[], uint32_t ndims, DataType dtype)
  {
    Tensor tensor = make_tensor_external (NULL, shapes, ndims, dtype);

    if (tensor.status != PTO2_TENSOR_OK)
      return tensor;
    if (rt == NULL)
      {
        tensor.status = PTO2_TENSOR_NO_POOL;
        return tensor;
      }
    tensor.storage = rt->ops->new_buffer (rt, tensor.buffer.size, &tensor.generation);
    return tensor;
  }

  /* A tensor whose memory the runtime allocates at the submit that outputs it, also in a scope
   * inside. It lives until the scope it was made in has ended and its last consumer is done.
   */
  static inline Tensor
  make_tensor (const uint64_t shapes[], uint32_t ndims, DataType dtype)
  {
    return pto2_rt_make_tensor (pto2_current_runtime, shapes, ndims, dtype);
  }

  /* The tensor behind args[index] of the entry, as the program has given it: shapes, strides,
   * element type, and ready to be submitted. A number, or an index that there is not, fails the run
   * and gives a handle without dimensions. */
  static inline Tensor
  pto2_rt_arg_tensor (PTO2Runtime *rt, int32_t index)
  {
    Tensor tensor;

    rt->ops->arg_tensor (rt, index, &tensor);
    return tensor;
  }

  static inline Tensor
  pto2_tensor_view (const Tensor *tensor, const uint64_t shapes[], const uint64_t offsets[])
  {
    Tensor view = *tensor;

    for (uint32_t i = 0; i < tensor->ndims; i++)
      {
        if (shapes[i] == 0 || offsets[i] > tensor->shapes[i]
            || shapes[i] > tensor->shapes[i] - offsets[i])
          pto2_tensor_refuse (&view, PTO2_TENSOR_OUT_OF_BOUNDS);
        view.shapes[i] = shapes[i];
        view.start_offset += offsets[i] * tensor->strides[i];
      }
    return view;
  }

  static inline Tensor
  pto2_tensor_reshape (const Tensor *tensor, const uint64_t shapes[], uint32_t ndims)
  {
    Tensor view = *tensor;
    uint64_t numel;

    if (tensor->status != PTO2_TENSOR_OK)
      return view;
    numel = pto2_tensor_set_shape (&view, shapes, ndims, tensor->dtype);
    if (numel != pto2_tensor_numel (tensor) || !pto2_tensor_is_contiguous (tensor))
      view.status = PTO2_TENSOR_BAD_RESHAPE;
    return view;
  }

  static inline Tensor
  pto2_tensor_transpose (const Tensor *tensor, uint32_t x, uint32_t y)
  {
    Tensor view = *tensor;

    if (x >= tensor->ndims || y >= tensor->ndims)
      {
        pto2_tensor_refuse (&view, PTO2_TENSOR_BAD_TRANSPOSE);
        return view;
      }
    view.shapes[x] = tensor->shapes[y];
    view.shapes[y] = tensor->shapes[x];
    view.strides[x] = tensor->strides[y];
    view.strides[y] = tensor->strides[x];
    return view;
  }

  static inline PTOParam
  pto2_make_param (PTOParamType type, const Tensor *tensor)
  {
    PTOParam param;

    param.type = type;
    param.scalar = 0;
    param.tensor = *tensor;
    return param;
  }

  /* What stands for the pipes of a cluster among the tensors: pushing kernels have it as
   * make_pipe_out_param(), popping ones as make_pipe_in_param(), and come after each other as by
   * any tensor (seed 000 section 16.4). Kernels of one mixed task need none. */
  static inline Tensor
  pto2_rt_make_pipe (PTO2Runtime *rt)
  {
    const uint64_t shape[1] = { 1 };

    return pto2_rt_make_tensor (rt, shape, 1, PTO2_NUMBER_ (DataType, PTO_DTYPE_UINT8));
  }

  /* The bits of what changes nothing where one of the chip's operators combines elements of a type;
   * 0 where it has no such operator. */
  static inline uint64_t
  pto2_reduction_neutral (int32_t combine, DataType dtype)
  {
    static const uint64_t ones[PTO_DTYPE_COUNT]
        = { 0x3f800000, 0x3c00, 0x3f80, 1, 1, 1, 1, 1, 1, 1, 1, 0, UINT64_C (0x3ff) << 52 };
    static const uint64_t most[PTO_DTYPE_COUNT] = { 0x7f800000,
                                                    0x7c00,
                                                    0x7f80,
                                                    INT8_MAX,
                                                    INT16_MAX,
                                                    INT32_MAX,
                                                    INT64_MAX,
                                                    UINT8_MAX,
                                                    UINT16_MAX,
                                                    UINT32_MAX,
                                                    UINT64_MAX,
                                                    0,
                                                    UINT64_C (0x7ff) << 52 };
    static const uint64_t least[PTO_DTYPE_COUNT]
        = { 0xff800000, 0xfc00, 0xff80, 0x80, 0x8000, UINT64_C (1) << 31,    UINT64_C (1) << 63,
            0,          0,      0,      0,    0,      UINT64_C (0xfff) << 52 };

    if (pto_dtype_number (dtype) >= PTO_DTYPE_COUNT)
      return 0;
    return combine == PTO2_KERNEL_PROD  ? ones[pto_dtype_number (dtype)]
           : combine == PTO2_KERNEL_MIN ? most[pto_dtype_number (dtype)]
           : combine == PTO2_KERNEL_MAX ? least[pto_dtype_number (dtype)]
                                        : 0;
  }

  /* For a task that takes part in a reduction of the tensor: it updates a copy of it, which begins
   * with the value of its element type at initial (0 for a sum) in each element, so that all tasks
   * that reduce into this tensor in this way run at the same time. The kernel combine takes two
   * tensors of that shape: it takes the second (INPUT) into the first (INOUT), so that it does not
   * matter in which order and in which pairs. It may be one of the chip's: PTO2_KERNEL_SUM,
   * PTO2_KERNEL_PROD, PTO2_KERNEL_MIN or PTO2_KERNEL_MAX, and initial then NULL, for what changes
   * nothing. When a task accesses the tensor, or a part of it, in
   * another way, and when the scope in which the first of them was submitted ends, tasks of that
   * kernel combine the copies, and what has come of it with what the tensor held before: others
   * wait for them, and the tasks that reduce wait for nobody who accesses the tensor.
   *
   * There are as many copies as cores at most, fewer where the ring's heap or window is small;
   * tasks take them in turn, and one that comes to a copy waits until it is nobody else's just now.
   * So the same values are combined each time, but floating point numbers may be in another order.
   * Not in manual scopes. */
  static inline PTOParam
  pto2_make_reduction_param (const Tensor *tensor, int32_t combine, const void *initial)
  {
    PTOParam param = pto2_make_param (PTO_PARAM_REDUCTION, tensor);

    param.combine = combine;
    if (initial != NULL)
      memcpy (&param.scalar, initial, pto_dtype_size (tensor->dtype));
    else if (combine < 0)
      param.scalar = pto2_reduction_neutral (combine, tensor->dtype);
    else
      pto2_tensor_refuse (&param.tensor, PTO2_TENSOR_NO_INITIAL);
    return param;
  }

  /* Memory that only this task sees, from its ring, with whatever it held. No other task depends on
   * it, and there is no handle: each submit of the parameter gives the task its own. */
  static inline PTOParam
  make_scratch_param (const uint64_t shapes[], uint32_t ndims, DataType dtype)
  {
    Tensor tensor = make_tensor_external (NULL, shapes, ndims, dtype);

    return pto2_make_param (PTO_PARAM_SCRATCH, &tensor);
  }

  /* A tensor whose memory is there at once, with whatever it held; it lives as long as one of
   * make_tensor(). Its address is buffer.addr; 0 once the run has failed. The orchestration may
   * write there until it submits the first task that uses it. */
  static inline Tensor
  pto2_rt_alloc (PTO2Runtime *rt, const uint64_t shapes[], uint32_t ndims, DataType dtype)
  {
    Tensor tensor = pto2_rt_make_tensor (rt, shapes, ndims, dtype);
    PTOParam param = pto2_make_param (PTO_PARAM_OUTPUT, &tensor);

    if (rt == NULL)
      return tensor;
    (pto2_rt_submit_order) (rt, &param, 1, NULL, 0);
    tensor.buffer = param.tensor.buffer;
    return tensor;
  }

  /* A task that gives each element of a tensor that value, which is of its element type: an output
   * begins with it where this comes before an INOUT. It comes after those, too. Runs on a vector
   * core. */
  static inline PTO2TaskId
  pto2_rt_fill_after (PTO2Runtime *rt, const Tensor *tensor, const void *value,
                      const PTO2TaskId after[], int32_t n_after)
  {
    PTOParam params[2];

    params[0] = pto2_make_param (PTO_PARAM_OUTPUT, tensor);
    params[1].type = PTO_PARAM_SCALAR;
    params[1].scalar = 0;
    memcpy (&params[1].scalar, value, pto_dtype_size (tensor->dtype));
    return (pto2_rt_submit_task_after) (rt, PTO2_KERNEL_FILL, 0, params, 2, after, n_after);
  }

  /* The same, and nothing is named. */
  static inline PTO2TaskId
  pto2_rt_fill (PTO2Runtime *rt, const Tensor *tensor, const void *value)
  {
    return pto2_rt_fill_after (rt, tensor, value, NULL, 0);
  }

  /* Reads one element into value, which is of the tensor's element type: waits for the tasks that
   * write it, by a task that only orders; in a manual scope, and behind one, for all tasks. false:
   * the run has failed, and value is as it was. */
  static inline bool
  pto2_rt_get_element (PTO2Runtime *rt, const Tensor *tensor, const uint64_t index[], void *value)
  {
    const void *element = rt->ops->touch (rt, tensor, index, false);

    if (element != NULL)
      memcpy (value, element, pto_dtype_size (tensor->dtype));
    return element != NULL;
  }

  /* Writes one element: waits for the tasks that write it and for those that read it. */
  static inline bool
  pto2_rt_set_element (PTO2Runtime *rt, const Tensor *tensor, const uint64_t index[],
                       const void *value)
  {
    void *element = rt->ops->touch (rt, tensor, index, true);

    if (element != NULL)
      memcpy (element, value, pto_dtype_size (tensor->dtype));
    return element != NULL;
  }

#define pto2_rt_alloc(rt, ...) (pto2_rt_alloc) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_fill(rt, ...) (pto2_rt_fill) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_fill_after(rt, ...) (pto2_rt_fill_after) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_get_element(rt, ...) (pto2_rt_get_element) (PTO2_HERE_ (rt), __VA_ARGS__)
#define pto2_rt_set_element(rt, ...) (pto2_rt_set_element) (PTO2_HERE_ (rt), __VA_ARGS__)

#define make_pipe_out_param(pipe) make_output_param (pipe)
#define make_pipe_in_param(pipe) make_input_param (pipe)

  /* An unsigned integer, or the bits of something else. A number with a fraction loses it here:
   * make_float_param(). */
  static inline PTOParam
  make_scalar_param (uint64_t value)
  {
    PTOParam param;

    param.type = PTO_PARAM_SCALAR;
    param.scalar = value;
    return param;
  }

  /* Of numbers that are no unsigned integers: what a kernel reads of each is said in tensor.h. */
  static inline PTOParam
  make_signed_param (int64_t value)
  {
    return make_scalar_param (PTO2_NUMBER_ (uint64_t, value));
  }

  static inline PTOParam
  make_float_param (float value)
  {
    uint32_t bits;

    memcpy (&bits, &value, sizeof bits);
    return make_scalar_param (bits);
  }

  static inline PTOParam
  make_double_param (double value)
  {
    uint64_t bits;

    memcpy (&bits, &value, sizeof bits);
    return make_scalar_param (bits);
  }

  /* The C form of the scope: leaves the scope however its block is left. */
  typedef struct PTO2ScopeGuard
  {
    PTO2Runtime *rt;
  } PTO2ScopeGuard;

  static inline PTO2ScopeGuard
  pto2_scope_guard_begin (PTO2Runtime *rt, const char *file, int32_t line)
  {
    PTO2ScopeGuard guard = { rt };

    pto2_rt_scope_begin_at (rt, file, line);
    return guard;
  }

  static inline PTO2ScopeGuard
  pto2_manual_scope_guard_begin (PTO2Runtime *rt, const char *file, int32_t line)
  {
    PTO2ScopeGuard guard = { rt };

    pto2_rt_manual_scope_begin_at (rt, file, line);
    return guard;
  }

  static inline void
  pto2_scope_guard_end (PTO2ScopeGuard *guard)
  {
    if (guard->rt != NULL)
      pto2_rt_scope_end (guard->rt);
    guard->rt = NULL;
  }

#ifdef __cplusplus
} /* extern "C" */

inline Tensor
Tensor::view (const uint64_t view_shapes[], const uint64_t view_offsets[]) const
{
  return pto2_tensor_view (this, view_shapes, view_offsets);
}

inline Tensor
Tensor::reshape (const uint64_t new_shapes[], uint32_t new_ndims) const
{
  return pto2_tensor_reshape (this, new_shapes, new_ndims);
}

inline Tensor
Tensor::transpose (uint32_t x, uint32_t y) const
{
  return pto2_tensor_transpose (this, x, y);
}

inline uint64_t
Tensor::numel () const
{
  return pto2_tensor_numel (this);
}

inline bool
Tensor::is_contiguous () const
{
  return pto2_tensor_is_contiguous (this);
}

inline uint64_t
Tensor::get_element_size () const
{
  return pto2_tensor_element_size (this);
}

inline std::string
Tensor::dump () const
{
  char text[512];

  pto2_tensor_dump (this, text, sizeof text);
  return text;
}

class PTO2Scope
{
public:
  explicit PTO2Scope (PTO2Runtime *rt, const char *file = nullptr, int32_t line = 0) : rt_ (rt)
  {
    pto2_rt_scope_begin_at (rt_, file, line);
  }
  ~PTO2Scope () { pto2_rt_scope_end (rt_); }
  PTO2Scope (const PTO2Scope &) = delete;
  PTO2Scope &operator= (const PTO2Scope &) = delete;
  explicit operator bool () const { return true; }

private:
  PTO2Runtime *rt_;
};

class PTO2ManualScope
{
public:
  explicit PTO2ManualScope (PTO2Runtime *rt, const char *file = nullptr, int32_t line = 0)
      : rt_ (rt)
  {
    pto2_rt_manual_scope_begin_at (rt_, file, line);
  }
  ~PTO2ManualScope () { pto2_rt_scope_end (rt_); }
  PTO2ManualScope (const PTO2ManualScope &) = delete;
  PTO2ManualScope &operator= (const PTO2ManualScope &) = delete;

private:
  PTO2Runtime *rt_;
};

/* PTO2_SCOPE (rt) { ... }, and PTO2_MANUAL_SCOPE (rt) { ... }: break and continue in it are those
 * of the loop around it. That is so in C++ only: see the C form below.
 *
 * A name of its own for every scope, so that nested ones do not shadow each other. */
#define PTO2_JOIN_(a, b) a##b
#define PTO2_SCOPE_AT_(scope, rt, guard) if (scope guard{ (rt), __FILE__, __LINE__ }; true)
#define PTO2_SCOPE_NAMED_(scope, rt, number) \
  PTO2_SCOPE_AT_ (scope, rt, PTO2_JOIN_ (pto2_scope_, number))
#define PTO2_SCOPE(rt) PTO2_SCOPE_NAMED_ (PTO2Scope, rt, __COUNTER__)
#define PTO2_MANUAL_SCOPE(rt) PTO2_SCOPE_NAMED_ (PTO2ManualScope, rt, __COUNTER__)

#else /* C */

/* PTO2_SCOPE (rt) { ... } ends its scope however the block is left.
 *
 * ATTENTION: in C the block is the body of a loop that goes round once. break and continue in it
 * leave THE SCOPE, NOT THE LOOP AROUND IT: what follows the scope is done next. To leave the loop
 * around it, set a variable and ask it behind the scope, or use goto or return. */
#define PTO2_JOIN_(a, b) a##b
#define PTO2_SCOPE_AT_(begin, rt, guard)                                     \
  for (PTO2ScopeGuard guard __attribute__ ((cleanup (pto2_scope_guard_end))) \
       = begin ((rt), __FILE__, __LINE__);                                   \
       guard.rt != NULL; pto2_scope_guard_end (&guard))
#define PTO2_SCOPE_NAMED_(begin, rt, number) \
  PTO2_SCOPE_AT_ (begin, rt, PTO2_JOIN_ (pto2_scope_, number))
#define PTO2_SCOPE(rt) PTO2_SCOPE_NAMED_ (pto2_scope_guard_begin, rt, __COUNTER__)
#define PTO2_MANUAL_SCOPE(rt) PTO2_SCOPE_NAMED_ (pto2_manual_scope_guard_begin, rt, __COUNTER__)

#endif

/* A tensor that a function is given. */
#ifdef __cplusplus
#define PTO2_TENSOR_ const Tensor &
#else
#define PTO2_TENSOR_ Tensor
#endif

static inline PTOParam
make_input_param (PTO2_TENSOR_ tensor)
{
  return pto2_make_param (PTO_PARAM_INPUT, &tensor);
}

static inline PTOParam
make_output_param (PTO2_TENSOR_ tensor)
{
  return pto2_make_param (PTO_PARAM_OUTPUT, &tensor);
}

static inline PTOParam
make_inout_param (PTO2_TENSOR_ tensor)
{
  return pto2_make_param (PTO_PARAM_INOUT, &tensor);
}

static inline PTOParam
make_output_existing_param (PTO2_TENSOR_ tensor)
{
  return pto2_make_param (PTO_PARAM_OUTPUT_EXISTING, &tensor);
}

static inline PTOParam
make_no_dep_param (PTO2_TENSOR_ tensor)
{
  return pto2_make_param (PTO_PARAM_NO_DEP, &tensor);
}

static inline PTOParam
make_commutative_param (PTO2_TENSOR_ tensor)
{
  return pto2_make_param (PTO_PARAM_COMMUTATIVE, &tensor);
}

static inline PTOParam
make_reduction_param (PTO2_TENSOR_ tensor, int32_t combine, const void *initial)
{
  return pto2_make_reduction_param (&tensor, combine, initial);
}

/* Note their places, as submits do; behind all that calls the functions above on somebody's behalf.
 */
#define pto2_rt_scope_begin(rt) pto2_rt_scope_begin_at ((rt), __FILE__, __LINE__)
#define pto2_rt_manual_scope_begin(rt) pto2_rt_manual_scope_begin_at ((rt), __FILE__, __LINE__)
#define pto2_rt_scope_end(rt) (pto2_rt_scope_end) (PTO2_HERE_ (rt))
#define pto2_rt_arg_tensor(rt, ...) (pto2_rt_arg_tensor) (PTO2_HERE_ (rt), __VA_ARGS__)
