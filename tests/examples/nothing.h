/* nothing.h: does an example notice that its kernels do nothing?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Included before each kernel by -include: its own entry gets another name.
 */
#ifdef __cplusplus
extern "C"
#endif
    void
    kernel_entry (long *args)
{
}
#define kernel_entry kernel_entry_that_is_not_called
