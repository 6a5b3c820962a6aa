/* fiber-switch-aarch64.S: which registers does a fiber keep on aarch64 (AAPCS64)?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#if defined (__aarch64__) && !defined (PTO_FIBER_UCONTEXT)

        .text

/* void pto_fiber_swap (void **save, void *load)
 *
 * The frame it leaves on the stack is the one that pto_fiber_make() forges: x19..x30, d8..d15, fpcr. */
        .globl  pto_fiber_swap
        .hidden pto_fiber_swap
        .type   pto_fiber_swap, %function
        .p2align 4
pto_fiber_swap:
        .cfi_startproc
        sub     sp, sp, #192
        .cfi_adjust_cfa_offset 192
        stp     x19, x20, [sp, #0]
        .cfi_rel_offset x19, 0
        .cfi_rel_offset x20, 8
        stp     x21, x22, [sp, #16]
        .cfi_rel_offset x21, 16
        .cfi_rel_offset x22, 24
        stp     x23, x24, [sp, #32]
        .cfi_rel_offset x23, 32
        .cfi_rel_offset x24, 40
        stp     x25, x26, [sp, #48]
        .cfi_rel_offset x25, 48
        .cfi_rel_offset x26, 56
        stp     x27, x28, [sp, #64]
        .cfi_rel_offset x27, 64
        .cfi_rel_offset x28, 72
        stp     x29, x30, [sp, #80]
        .cfi_rel_offset x29, 80
        .cfi_rel_offset x30, 88
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mrs     x9, fpcr
        str     x9, [sp, #160]
        mov     x10, sp
        str     x10, [x0]
        mov     sp, x1
        ldr     x10, [sp, #160]
        /* Writing fpcr drains the pipeline, and it is nearly always the same. */
        cmp     x9, x10
        b.eq    1f
        msr     fpcr, x10
1:
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x19, x20, [sp, #0]
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        add     sp, sp, #192
        .cfi_adjust_cfa_offset -192
        .cfi_restore x19
        .cfi_restore x20
        .cfi_restore x21
        .cfi_restore x22
        .cfi_restore x23
        .cfi_restore x24
        .cfi_restore x25
        .cfi_restore x26
        .cfi_restore x27
        .cfi_restore x28
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   pto_fiber_swap, .-pto_fiber_swap

/* Where a new fiber begins: x19 holds the struct pto_fiber. No return address: a debugger's backtrace ends here. */
        .globl  pto_fiber_start
        .hidden pto_fiber_start
        .hidden pto_fiber_main
        .type   pto_fiber_start, %function
        .p2align 4
pto_fiber_start:
        .cfi_startproc
        .cfi_undefined x30
        mov     x0, x19
        mov     x29, #0
        mov     x30, #0
        bl      pto_fiber_main
        brk     #1
        .cfi_endproc
        .size   pto_fiber_start, .-pto_fiber_start

#endif

        .section .note.GNU-stack, "", %progbits
