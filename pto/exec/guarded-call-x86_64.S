/* guarded-call-x86_64.S: how does a guarded call remember where to continue, on x86-64?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * registers: 0 rbx, 1 rbp, 2 r12, 3 r13, 4 r14, 5 r15, 6 rsp (at the return address), 7 the return address,
 * 8 mxcsr and x87 control word, 0 when they are to be saved; 22 an exception.
 */
#if defined (__x86_64__)

        .text

/* int pto_guard_registers_call (void **registers, void (*fn) (int64_t *), int64_t *args)
 *
 * 0 when fn returned, 1 when pto_guard_registers_continue() came instead, 2 for an exception and 3 for the end of a
 * thread that unwound to here: the exception is in registers[22]. The flags and control words that fn has changed are
 * put back. */
        .globl  pto_guard_registers_call
        .hidden pto_guard_registers_call
        .hidden pto_guard_personality
        .type   pto_guard_registers_call, @function
        .p2align 4
pto_guard_registers_call:
        .cfi_startproc
        .cfi_personality 0x1b, pto_guard_personality
        movq    %rbx, 0(%rdi)
        movq    %rbp, 8(%rdi)
        movq    %r12, 16(%rdi)
        movq    %r13, 24(%rdi)
        movq    %r14, 32(%rdi)
        movq    %r15, 40(%rdi)
        movq    %rsp, 48(%rdi)
        movq    (%rsp), %rax
        movq    %rax, 56(%rdi)
        /* Reading mxcsr takes as long as all the rest of this call. */
        cmpl    $0, 64(%rdi)
        je      3f
4:
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        movq    %rsi, %rax
        movq    %rdx, %rdi
        call    *%rax
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        /* Direction, single step and alignment check are off in the engine; loading the control words takes longer
         * than all the rest, and they are mostly as they were. The flags of MXCSR are nobody's to keep. */
        pushfq
        .cfi_adjust_cfa_offset 8
        popq    %rax
        .cfi_adjust_cfa_offset -8
        stmxcsr -8(%rsp)
        fnstcw  -4(%rsp)
        andl    $0x40500, %eax
        movl    -8(%rsp), %edx
        xorl    64(%rcx), %edx
        andl    $0xffc0, %edx
        orl     %edx, %eax
        movzwl  -4(%rsp), %edx
        xorw    68(%rcx), %dx
        orl     %edx, %eax
        jne     1f
        ret
1:
        pushfq
        .cfi_adjust_cfa_offset 8
        andl    $~0x40500, (%rsp)
        popfq
        .cfi_adjust_cfa_offset -8
        fldcw   68(%rcx)
        ldmxcsr 64(%rcx)
        xorl    %eax, %eax
        ret
3:
        stmxcsr 64(%rdi)
        fnstcw  68(%rdi)
        jmp     4b
        .cfi_endproc
        .size   pto_guard_registers_call, .-pto_guard_registers_call

/* Not called: a function that was interrupted returns to here instead of to its caller. */
        .globl  pto_guard_returned
        .hidden pto_guard_returned
        .hidden pto_guard_end_returned
        .type   pto_guard_returned, @function
        .p2align 4
pto_guard_returned:
        .cfi_startproc
        .cfi_undefined %rip
        andq    $-16, %rsp
        call    pto_guard_end_returned
        ud2
        .cfi_endproc
        .size   pto_guard_returned, .-pto_guard_returned

/* void pto_guard_registers_continue (void **registers)
 *
 * Entered by the end of a signal handler or a plain call; the x87 stack may be full and exceptions pending. */
        .globl  pto_guard_registers_continue
        .hidden pto_guard_registers_continue
        .type   pto_guard_registers_continue, @function
        .p2align 4
pto_guard_registers_continue:
        .cfi_startproc
        .cfi_undefined rip
        movl    $1, %eax
2:
        cld
        fninit
        fldcw   68(%rdi)
        ldmxcsr 64(%rdi)
        movq    0(%rdi), %rbx
        movq    8(%rdi), %rbp
        movq    16(%rdi), %r12
        movq    24(%rdi), %r13
        movq    32(%rdi), %r14
        movq    40(%rdi), %r15
        movq    48(%rdi), %rsp
        addq    $8, %rsp
        jmp     *56(%rdi)
        .cfi_endproc
        .size   pto_guard_registers_continue, .-pto_guard_registers_continue

/* Where pto_guard_personality() ends an unwinding: in the frame of pto_guard_registers_call(), rax the exception, rdx
 * what to return. */
        .globl  pto_guard_registers_landing
        .hidden pto_guard_registers_landing
        .type   pto_guard_registers_landing, @function
        .p2align 4
pto_guard_registers_landing:
        .cfi_startproc
        .cfi_undefined rip
        movq    (%rsp), %rdi
        movq    %rax, 176(%rdi)
        movl    %edx, %eax
        jmp     2b
        .cfi_endproc
        .size   pto_guard_registers_landing, .-pto_guard_registers_landing

/* In the place of functions that a runtime of C++ has (guarded-call-unwind.c): pto_guard_ask() with the entry's number
 * says where to go on. They take at most the address of their result. */
        .globl  pto_guard_askers
        .hidden pto_guard_askers
        .hidden pto_guard_ask
        .type   pto_guard_askers, @function
        .p2align 4
pto_guard_askers:
        .cfi_startproc
        .set    entry, 0
        .rept   20
        .p2align 4
        movl    $entry, %eax
        jmp     5f
        .set    entry, entry + 1
        .endr
5:
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        movl    %eax, %edi
        call    pto_guard_ask
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *%rax
        .cfi_endproc
        .size   pto_guard_askers, .-pto_guard_askers

/* rt_sigreturn(2), for handlers installed without libc. */
        .globl  pto_guard_restorer
        .hidden pto_guard_restorer
        .type   pto_guard_restorer, @function
        .p2align 4
pto_guard_restorer:
        movq    $15, %rax
        syscall
        .size   pto_guard_restorer, .-pto_guard_restorer

#endif

        .section .note.GNU-stack, "", @progbits
