/* call-config.h: how do the choices of a run lie in memory?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "pto-call-config.h"

G_BEGIN_DECLS

struct pto_call_config; /* ../process/call-format.h */

struct _PtoCallConfig
{
  int block_dim;
  int aicpu_thread_num;
  int enable_l2_swimlane;
  int enable_dump_tensor;
  int enable_pmu;
  int enable_dep_gen;
  int enable_scope_stats;
  int enable_access_check;
  char *output_prefix;
  char *dump_filter;
};

/* Refuses values out of range. */
gboolean pto_call_config_check (const PtoCallConfig *config, GError **error);

/* The first field that only a chip can do something about, by name; NULL: there is none. */
const char *pto_call_config_find_choice (const PtoCallConfig *config);
/* The first switch that records something, by name, and its value; NULL: there is none. */
const char *pto_call_config_find_switch (const PtoCallConfig *config, int *value);
/* How much a run with it records at least: enum pto_trace_level; 0: nothing. config may be NULL. */
guint pto_call_config_get_record_level (const PtoCallConfig *config);
/* Puts more behind a prefix, if there is one, so that the files of several tasks or workers have
 * names of their own. */
void pto_call_config_extend_prefix (PtoCallConfig *config, const char *what, guint number);

/* As it travels to another worker, one that was checked; NULL: the default of everything,
 * which is 0. */
void pto_call_config_to_wire (const PtoCallConfig *config, struct pto_call_config *wire);
PtoCallConfig *pto_call_config_new_from_wire (const struct pto_call_config *wire);

G_END_DECLS
