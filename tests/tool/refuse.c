/* refuse.c: which system calls does a program make, and what does it do where one is refused?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * LD_PRELOAD loads this before a program. When the loader is done and before main(), it puts a
 * filter on the program and on all that the program starts. PTO_TEST_REFUSE is the number of a
 * socket, which gets the descriptor at which each call waits for an answer. With a comma and the
 * number of a system call behind it, only this call and execve() wait.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* There are no filters here. */
static void
give_up (void)
{
  perror ("refuse");
  _exit (98);
}

static void
send_descriptor (int to, int descriptor)
{
  char byte = 0;
  struct iovec bytes = { &byte, 1 };
  union
  {
    struct cmsghdr head;
    char room[CMSG_SPACE (sizeof (int))];
  } control;
  struct msghdr message = {
    .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
  };

  memset (&control, 0, sizeof control);
  control.head.cmsg_level = SOL_SOCKET;
  control.head.cmsg_type = SCM_RIGHTS;
  control.head.cmsg_len = CMSG_LEN (sizeof descriptor);
  memcpy (CMSG_DATA (&control.head), &descriptor, sizeof descriptor);
  if (sendmsg (to, &message, 0) != 1)
    give_up ();
}

__attribute__ ((constructor)) static void
begin (void)
{
  const char *what = getenv ("PTO_TEST_REFUSE");
  unsigned int fd, number;
  int n = what != NULL ? sscanf (what, "%u,%u", &fd, &number) : 0;
  int is_all = n == 1;
  struct sock_filter code[]
      = { BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
          /* The message below passes: its receiver is needed for an answer. */
          BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 0, 3),
          BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, args)),
          BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, fd, 4, 0),
          BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
          BPF_JUMP (BPF_JMP | BPF_JGE | BPF_K, is_all ? 0 : UINT32_MAX, 3, 0),
          BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 2, 0),
          BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, number, 1, 0),
          BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
          BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF) };
  struct sock_fprog program = { sizeof code / sizeof code[0], code };
  int listener;

  /* A program that another one starts has the filter already. */
  if (n < 1 || prctl (PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER)
    return;
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    give_up ();
  listener = (int) syscall (SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                            &program);
  if (listener < 0)
    give_up ();
  send_descriptor ((int) fd, listener);
  close (listener);
  close ((int) fd);
}
