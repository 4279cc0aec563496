// SPDX-License-Identifier: Apache-2.0
#include "tests/train/made_device/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <new>
#include <stdexcept>

namespace sealift::test::made {

namespace {

constexpr std::size_t kArena = std::size_t{8} << 30, kAlign = 512;

struct Arena {
  char *shown = nullptr, *alias = nullptr;
  std::size_t used = 0;
  std::mutex mutex;

  Arena() {
    const int file = memfd_create("made_device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, kArena) != 0) throw std::bad_alloc();
    const auto map = [&](int rights) {
      void* at = mmap(nullptr, kArena, rights, MAP_SHARED | MAP_NORESERVE, file, 0);
      if (at == MAP_FAILED) throw std::bad_alloc();
      return static_cast<char*>(at);
    };
    shown = map(PROT_NONE);
    alias = map(PROT_READ | PROT_WRITE);
    close(file);
  }

  static Arena& instance() {
    static Arena arena;
    return arena;
  }
};

}  // namespace

void* new_memory(std::size_t bytes) {
  auto& arena = Arena::instance();
  const std::lock_guard lock(arena.mutex);
  const auto size = (bytes + kAlign - 1) / kAlign * kAlign;
  if (size > kArena - arena.used) throw std::bad_alloc();
  arena.used += size;
  return arena.shown + (arena.used - size);
}

bool is_device_memory(const void* address) {
  const auto& arena = Arena::instance();
  const auto* at = static_cast<const char*>(address);
  return at >= arena.shown && at < arena.shown + kArena;
}

void* for_kernels(const void* address) {
  if (!address) return nullptr;
  if (!is_device_memory(address)) throw std::logic_error("a tensor of a made device is in other memory");
  const auto& arena = Arena::instance();
  return arena.alias + (static_cast<const char*>(address) - arena.shown);
}

}  // namespace sealift::test::made
