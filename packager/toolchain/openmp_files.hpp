// SPDX-License-Identifier: Apache-2.0
// What clang needs for OpenMP and ziglang does not bring: a header, and a bridge from clang's runtime to torch's
// (libgomp), so that one process has one team of threads. Both travel as text and are compiled inside, with each
// library that is compiled with -fopenmp. Sources: LLVM's openmp/runtime/src/kmp.h and GCC's libgomp/libgomp_g.h, the
// signatures; OpenMP 5.2, the shares of `schedule(static)`. Seen with torch 2.11, whose Inductor asks for: parallel,
// num_threads, for, single, barrier, simd.
#pragma once

namespace sealift::packager {

inline constexpr const char* kOpenMpHeader = R"text(// SPDX-License-Identifier: Apache-2.0
// What of OpenMP's functions the carried compiler offers; they are those of torch's libgomp.
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
int omp_get_dynamic(void);
int omp_get_level(void);
int omp_get_max_active_levels(void);
int omp_get_max_threads(void);
int omp_get_num_procs(void);
int omp_get_num_threads(void);
int omp_get_thread_num(void);
int omp_in_parallel(void);
double omp_get_wtime(void);
void omp_set_dynamic(int);
void omp_set_max_active_levels(int);
void omp_set_num_threads(int);
#ifdef __cplusplus
}
#endif
)text";

inline constexpr const char* kOpenMpBridge = R"text(// SPDX-License-Identifier: Apache-2.0
// clang compiles OpenMP into calls of __kmpc_*; here each becomes one of libgomp, which torch brings. Hidden, so that
// each library has its own. What is not here (tasks, sections, other schedules than static) is an undefined symbol, and
// the library does not load.
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include <omp.h>

extern "C" {
void GOMP_parallel(void (*)(void*), void*, unsigned, unsigned);
void GOMP_barrier();
bool GOMP_single_start();
void GOMP_critical_start();
void GOMP_critical_end();
}

#pragma GCC visibility push(hidden)

namespace {

using Word = void*;  // clang passes references, and values as wide as one
using Task = void (*)(std::int32_t*, std::int32_t*, ...);

constexpr int kMostWords = 256;
thread_local unsigned wanted_threads = 0;

struct Call {
  Task task;
  int count;
  Word words[kMostWords];
};

#define WORDS_4(n) w[n], w[n + 1], w[n + 2], w[n + 3]
#define WORDS_16(n) WORDS_4(n), WORDS_4(n + 4), WORDS_4(n + 8), WORDS_4(n + 12)
#define WORDS_64(n) WORDS_16(n), WORDS_16(n + 16), WORDS_16(n + 32), WORDS_16(n + 48)

// A task that takes fewer words does not look at the others: that is so in the C calling conventions of both targets.
void run(void* data) {
  const Call& call = *static_cast<Call*>(data);
  const Word* const w = call.words;
  std::int32_t thread = omp_get_thread_num(), zero = 0;
  if (call.count <= 16)
    call.task(&thread, &zero, WORDS_16(0));
  else if (call.count <= 64)
    call.task(&thread, &zero, WORDS_64(0));
  else
    call.task(&thread, &zero, WORDS_64(0), WORDS_64(64), WORDS_64(128), WORDS_64(192));
}

// This thread's part of the rounds from `lower` to `upper`, both included. `kind` is 33 for schedule(static, chunk).
template <class Bound, class Signed>
void share(std::int32_t kind, std::int32_t* last, Bound* lower, Bound* upper, Signed* stride, Signed step,
           Signed chunk) {
  using Unsigned = std::make_unsigned_t<Signed>;
  const Unsigned threads = static_cast<Unsigned>(omp_get_num_threads());
  const Unsigned me = static_cast<Unsigned>(omp_get_thread_num());
  const bool up = step > 0;
  if (up ? *upper < *lower : *lower < *upper) {  // no round at all
    *last = 0;
    *stride = step;
    return;
  }
  const Unsigned from = static_cast<Unsigned>(*lower), to = static_cast<Unsigned>(*upper);
  const Unsigned width = static_cast<Unsigned>(step);
  const Unsigned rounds = (up ? to - from : from - to) / (up ? width : Unsigned{0} - width) + 1;
  Unsigned first, count;
  if (kind == 33) {
    const Unsigned size = chunk > 0 ? static_cast<Unsigned>(chunk) : 1;
    first = me * size;
    count = size;
    *stride = static_cast<Signed>(size * width * threads);
    *last = me == (rounds - 1) / size % threads;
  } else {
    const Unsigned size = rounds / threads, more = rounds % threads;
    first = me * size + (me < more ? me : more);
    count = size + (me < more ? 1 : 0);
    *stride = static_cast<Signed>(rounds * width);
    *last = count > 0 && first + count == rounds;
  }
  *lower = static_cast<Bound>(from + first * width);
  *upper = static_cast<Bound>(from + (first + count - 1) * width);
}

}  // namespace

extern "C" {

std::int32_t __kmpc_global_thread_num(void*) { return omp_get_thread_num(); }
void __kmpc_push_num_threads(void*, std::int32_t, std::int32_t threads) {
  wanted_threads = threads > 0 ? static_cast<unsigned>(threads) : 0;
}
void __kmpc_fork_call(void*, std::int32_t count, Task task, ...) {
  if (count > kMostWords) {
    std::fprintf(stderr, "OpenMP: a parallel region uses %d variables of the function around it; %d can be passed\n", count,
                 kMostWords);
    std::abort();
  }
  Call call{task, count, {}};
  va_list words;
  va_start(words, task);
  for (int i = 0; i < count; ++i) call.words[i] = va_arg(words, Word);
  va_end(words);
  const unsigned threads = wanted_threads;
  wanted_threads = 0;
  GOMP_parallel(run, &call, threads, 0);
}
void __kmpc_barrier(void*, std::int32_t) { GOMP_barrier(); }
std::int32_t __kmpc_single(void*, std::int32_t) { return GOMP_single_start() ? 1 : 0; }
void __kmpc_end_single(void*, std::int32_t) {}
std::int32_t __kmpc_master(void*, std::int32_t) { return omp_get_thread_num() == 0 ? 1 : 0; }
void __kmpc_end_master(void*, std::int32_t) {}
std::int32_t __kmpc_masked(void*, std::int32_t, std::int32_t filter) { return omp_get_thread_num() == filter ? 1 : 0; }
void __kmpc_end_masked(void*, std::int32_t) {}
void __kmpc_critical(void*, std::int32_t, void*) { GOMP_critical_start(); }
void __kmpc_end_critical(void*, std::int32_t, void*) { GOMP_critical_end(); }
// 1: each thread adds its own part, alone until it ends.
std::int32_t __kmpc_reduce(void*, std::int32_t, std::int32_t, std::size_t, void*, void (*)(void*, void*), void*) {
  GOMP_critical_start();
  return 1;
}
void __kmpc_end_reduce(void*, std::int32_t, void*) {
  GOMP_critical_end();
  GOMP_barrier();
}
std::int32_t __kmpc_reduce_nowait(void*, std::int32_t, std::int32_t, std::size_t, void*, void (*)(void*, void*), void*) {
  GOMP_critical_start();
  return 1;
}
void __kmpc_end_reduce_nowait(void*, std::int32_t, void*) { GOMP_critical_end(); }
#define SHARES(name, bound, number)                                                                               \
  void name(void*, std::int32_t, std::int32_t kind, std::int32_t* last, bound* lower, bound* upper, number* stride, \
            number step, number chunk) {                                                                            \
    share(kind, last, lower, upper, stride, step, chunk);                                                           \
  }
SHARES(__kmpc_for_static_init_4, std::int32_t, std::int32_t)
SHARES(__kmpc_for_static_init_4u, std::uint32_t, std::int32_t)
SHARES(__kmpc_for_static_init_8, std::int64_t, std::int64_t)
SHARES(__kmpc_for_static_init_8u, std::uint64_t, std::int64_t)
void __kmpc_for_static_fini(void*, std::int32_t) {}

}  // extern "C"

#pragma GCC visibility pop
)text";

}  // namespace sealift::packager
