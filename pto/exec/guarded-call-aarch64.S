/* guarded-call-aarch64.S: how does a guarded call remember where to continue, on aarch64?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * registers: 0..11 x19..x30, 12 sp, 13..20 d8..d15, 21 fpcr, 22 an exception.
 */
#if defined (__aarch64__)

        .text

/* int pto_guard_registers_call (void **registers, void (*fn) (int64_t *), int64_t *args)
 *
 * 0 when fn returned, 1 when pto_guard_registers_continue() came instead, 2 for an exception and 3 for the end of a
 * thread that unwound to here: the exception is in registers[22]. The control word that fn has changed is put back. */
        .globl  pto_guard_registers_call
        .hidden pto_guard_registers_call
        .hidden pto_guard_personality
        .type   pto_guard_registers_call, %function
        .p2align 4
pto_guard_registers_call:
        .cfi_startproc
        .cfi_personality 0x1b, pto_guard_personality
        stp     x19, x20, [x0, #0]
        stp     x21, x22, [x0, #16]
        stp     x23, x24, [x0, #32]
        stp     x25, x26, [x0, #48]
        stp     x27, x28, [x0, #64]
        stp     x29, x30, [x0, #80]
        mov     x9, sp
        str     x9, [x0, #96]
        stp     d8, d9, [x0, #104]
        stp     d10, d11, [x0, #120]
        stp     d12, d13, [x0, #136]
        stp     d14, d15, [x0, #152]
        mrs     x9, fpcr
        str     x9, [x0, #168]
        stp     x29, x30, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        str     x0, [sp, #16]
        mov     x29, sp
        mov     x9, x1
        mov     x0, x2
        blr     x9
        ldr     x0, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_adjust_cfa_offset -32
        .cfi_restore x29
        .cfi_restore x30
        /* Writing it takes longer, and it is mostly as it was. */
        ldr     x9, [x0, #168]
        mrs     x10, fpcr
        cmp     x9, x10
        b.eq    1f
        msr     fpcr, x9
1:
        mov     w0, #0
        ret
        .cfi_endproc
        .size   pto_guard_registers_call, .-pto_guard_registers_call

/* void pto_guard_registers_continue (void **registers) */
        .globl  pto_guard_registers_continue
        .hidden pto_guard_registers_continue
        .type   pto_guard_registers_continue, %function
        .p2align 4
pto_guard_registers_continue:
        .cfi_startproc
        .cfi_undefined x30
        mov     w1, #1
2:
        ldr     x9, [x0, #168]
        msr     fpcr, x9
        ldp     d8, d9, [x0, #104]
        ldp     d10, d11, [x0, #120]
        ldp     d12, d13, [x0, #136]
        ldp     d14, d15, [x0, #152]
        ldp     x19, x20, [x0, #0]
        ldp     x21, x22, [x0, #16]
        ldp     x23, x24, [x0, #32]
        ldp     x25, x26, [x0, #48]
        ldp     x27, x28, [x0, #64]
        ldp     x29, x30, [x0, #80]
        ldr     x9, [x0, #96]
        mov     sp, x9
        mov     w0, w1
        ret
        .cfi_endproc
        .size   pto_guard_registers_continue, .-pto_guard_registers_continue

/* Where pto_guard_personality() ends an unwinding: in the frame of pto_guard_registers_call(), x0 the exception, x1
 * what to return. */
        .globl  pto_guard_registers_landing
        .hidden pto_guard_registers_landing
        .type   pto_guard_registers_landing, %function
        .p2align 4
pto_guard_registers_landing:
        .cfi_startproc
        .cfi_undefined x30
        mov     x9, x0
        ldr     x0, [sp, #16]
        str     x9, [x0, #176]
        b       2b
        .cfi_endproc
        .size   pto_guard_registers_landing, .-pto_guard_registers_landing

/* In the place of functions that a runtime of C++ has (guarded-call-unwind.c): pto_guard_ask() with the entry's number
 * says where to go on. They take at most the address of their result, in x8. */
        .globl  pto_guard_askers
        .hidden pto_guard_askers
        .hidden pto_guard_ask
        .type   pto_guard_askers, %function
        .p2align 4
pto_guard_askers:
        .cfi_startproc
        .set    entry, 0
        .rept   20
        .p2align 4
        mov     w16, #entry
        b       5f
        .set    entry, entry + 1
        .endr
5:
        stp     x29, x30, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        str     x8, [sp, #16]
        mov     x29, sp
        mov     w0, w16
        bl      pto_guard_ask
        mov     x16, x0
        ldr     x8, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_adjust_cfa_offset -32
        .cfi_restore x29
        .cfi_restore x30
        br      x16
        .cfi_endproc
        .size   pto_guard_askers, .-pto_guard_askers

#endif

        .section .note.GNU-stack, "", %progbits
