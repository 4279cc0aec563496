// SPDX-License-Identifier: Apache-2.0
// Classic BPF, as seccomp(2) takes it; see no_keys_filter.hpp. Numbers of calls differ by the way that a program makes
// them, so the architecture is asked first; one that is not known here gets no call at all.
#include "packager/host/no_keys_filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sealift::packager {

namespace {

struct Way {
  std::uint32_t architecture;
  std::array<std::uint32_t, 3> calls;  // add_key, request_key, keyctl
};

// Linux, arch/x86/entry/syscalls, include/uapi/asm-generic/unistd.h, arch/arm/tools/syscall.tbl.
constexpr Way kWays[] = {{AUDIT_ARCH_X86_64, {248, 249, 250}},
                         {AUDIT_ARCH_I386, {286, 287, 288}},
                         {AUDIT_ARCH_AARCH64, {217, 218, 219}},
                         {AUDIT_ARCH_ARM, {309, 310, 311}}};
constexpr std::uint32_t kX32 = 0x40000000;  // a bit of the number, where x86-64 is called with small pointers

std::vector<sock_filter> program() {
  constexpr std::uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS;
  std::vector<sock_filter> code;
  const auto add = [&](std::uint16_t what, std::uint32_t value, std::uint8_t yes = 0, std::uint8_t no = 0) {
    code.push_back({what, yes, no, value});
  };
  for (const Way& way : kWays) {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, way.architecture, 0, 7);  // else to the next way
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    add(BPF_ALU | BPF_AND | BPF_K, way.architecture == AUDIT_ARCH_X86_64 ? ~kX32 : ~0U);
    add(BPF_JMP | BPF_JEQ | BPF_K, way.calls[0], 3, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, way.calls[1], 2, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, way.calls[2], 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    add(BPF_RET | BPF_K, kUnknown);
  }
  add(BPF_RET | BPF_K, kUnknown);
  return code;
}

}  // namespace

bundle::Descriptor no_keys_filter() {
  bundle::Descriptor file(::memfd_create("no keys", MFD_CLOEXEC));
  const std::vector<sock_filter> code = program();
  const std::size_t size = code.size() * sizeof(sock_filter);
  if (!file || ::pwrite(file.get(), code.data(), size, 0) != static_cast<ssize_t>(size))
    bundle::throw_errno("the sandbox's filter cannot be made", "memfd");
  return file;
}

}  // namespace sealift::packager
