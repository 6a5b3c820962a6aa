/* fiber-switch-x86_64.S: which registers does a fiber keep on x86-64 (System V ABI)?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#if defined (__x86_64__) && !defined (PTO_FIBER_UCONTEXT)

        .text

/* void pto_fiber_swap (void **save, void *load)
 *
 * The frame it leaves on the stack is the one that pto_fiber_make() forges. It goes on by a jump: a return would
 * always be mispredicted, for the processor's return stack knows nothing of the other fiber. */
        .globl  pto_fiber_swap
        .hidden pto_fiber_swap
        .type   pto_fiber_swap, @function
        .p2align 4
pto_fiber_swap:
        .cfi_startproc
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movl    (%rsp), %eax
        movzwl  4(%rsp), %edx
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        xorl    (%rsp), %eax
        xorw    4(%rsp), %dx
        /* The exception flags of MXCSR are nobody's to keep. */
        andl    $0xffc0, %eax
        orl     %edx, %eax
        jne     2f
1:
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register rip, rcx
        jmp     *%rcx
        /* Loading them takes longer than all the rest, and they are mostly the same. */
2:
        .cfi_def_cfa rsp, 64
        .cfi_offset rbp, -16
        .cfi_offset rbx, -24
        .cfi_offset r12, -32
        .cfi_offset r13, -40
        .cfi_offset r14, -48
        .cfi_offset r15, -56
        .cfi_offset rip, -8
        ldmxcsr (%rsp)
        fldcw   4(%rsp)
        jmp     1b
        .cfi_endproc
        .size   pto_fiber_swap, .-pto_fiber_swap

/* Where a new fiber begins: r12 holds the struct pto_fiber. No return address: a debugger's backtrace ends here. */
        .globl  pto_fiber_start
        .hidden pto_fiber_start
        .hidden pto_fiber_main
        .type   pto_fiber_start, @function
        .p2align 4
pto_fiber_start:
        .cfi_startproc
        .cfi_undefined rip
        movq    %r12, %rdi
        xorl    %ebp, %ebp
        call    pto_fiber_main
        ud2
        .cfi_endproc
        .size   pto_fiber_start, .-pto_fiber_start

#endif

        .section .note.GNU-stack, "", @progbits
