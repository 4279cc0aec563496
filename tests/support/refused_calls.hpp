// SPDX-License-Identifier: Apache-2.0
// A filter in the kernel that answers some system calls with an error, for this process and all that it starts: as an
// older container runtime does, or a file system without locks. Raw BPF; see seccomp(2).
#pragma once

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace sealift::test {

struct RefusedCall {
  std::uint32_t number;
  std::uint32_t error;
  std::uint32_t first = 0, last = 0xffffffff;  // of its second argument
};

// For a child between fork and exec; exits with 97 when the kernel refuses the filter.
inline void refuse_calls(std::initializer_list<RefusedCall> calls) {
  std::vector<sock_filter> program;
  for (const RefusedCall& call : calls) {
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.number, 0, 4));
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, call.first, 0, 2));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, call.last, 1, 0));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | call.error));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    ::_exit(97);
}

}  // namespace sealift::test
