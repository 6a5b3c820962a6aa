/* arena.h: where does memory come from that children see although it was made after them?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One region for each process that has children, reserved (not committed) and shared before the
 * first fork, so every child has it at the same address; pieces of it are given out and taken back
 * by the process that made it alone. No descriptor travels, no child is told. The region is a
 * memory file: nothing in the file system, gone with its last process.
 *
 * It also knows which addresses children can see at all: a tensor anywhere else is refused at
 * submit, since a child would write into a copy. Thread safety: any thread of the owner.
 */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes the region if this process has none of its own; counted. size: a knob ("arena"), rounded up
 * to pages; that of the first acquire counts. */
enum pto_status pto_arena_acquire (uint64_t size, struct pto_report *report);
/* The last release gives the region up, or the last free if there are pieces out still. */
void pto_arena_release (void);
/* Zeroed, page-aligned; 0: no region, or it is full. bytes >= 1 */
uint64_t pto_arena_alloc (uint64_t bytes);
/* Gives back what alloc gave, and its pages to the system; bytes as asked for. A piece of an
 * ancestor's region is left alone: a copy of its owner died, not the owner. */
void pto_arena_free (uint64_t address, uint64_t bytes);
/* Descriptor of the memory file that the address lies in, and where in it; also of an ancestor's
 * region. -1: in none, or there is no file behind it. */
int pto_arena_fd (uint64_t address, uint64_t *offset);
/* Of the region of this process; false: it has none. */
bool pto_arena_range (uint64_t *address, uint64_t *size);

/* The parts of the address space that a range lies in, taken together. */
struct pto_mapping
{
  uint64_t begin, end;
  bool writable; /* all of it */
  int trouble;   /* errno: that can not be known; 0: it is known */
};
/* false: a part of the range can not be read. */
bool pto_mapping_around (uint64_t address, uint64_t bytes, struct pto_mapping *mapping);

enum pto_visibility
{
  PTO_VISIBLE, /* in the region, a heap ring, or shared when the children began, and now */
  PTO_VISIBLE_READ_ONLY, /* so, too, but children can not write there */
  PTO_VISIBLE_PRIVATE,   /* private: a child would see a copy, or what was there before */
  PTO_VISIBLE_TOO_LATE,  /* shared, but mapped after the children began, or kept from them */
  PTO_VISIBLE_UNMAPPED
};

/* What this process shares with children, as it is now: taken just before the first fork of a
 * worker. NULL: it can not be known, and the report says why. One thread at a time. */
struct pto_shared_map *pto_shared_map_new (struct pto_report *report);
void pto_shared_map_free (struct pto_shared_map *map);
/* Of all of the bytes; with none of them, of the first. What has been unmapped since, or mapped
 * over, is noticed: the first question about a range asks the system, the others believe that
 * until pto_shared_map_look_again(). */
enum pto_visibility pto_shared_map_check (struct pto_shared_map *map, uint64_t address,
                                          uint64_t bytes, bool write);
/* Since the last look again: is there other shared memory now where something was mentioned that
 * had been found to be as it was? Children do not see it. What is private now is taken for what the
 * program maps once it is done with the other. */
bool pto_shared_map_has_changed (struct pto_shared_map *map, uint64_t *address);
/* At the begin of a run. */
void pto_shared_map_look_again (struct pto_shared_map *map);
