// SPDX-License-Identifier: Apache-2.0
// The table; see run_time_caches.hpp. Each row has its source; triton's place is in offline_breakers.cpp, as it also
// needs a compiler.
#include "packager/python/run_time_caches.hpp"

#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

struct Row {
  const char* package;
  const char* variable;
  const char* folder;  // below ${CACHE}
  bool by_version;     // the cache's own key lacks the package's version and Python's
};

constexpr Row kRows[] = {
    // torch 2.11.0: _inductor/runtime/cache_dir_utils.py, /tmp/torchinductor_USER; keyed by contents and GPU.
    // Precompiled
    // headers of C++ stay there, whatever is set (_inductor/codecache.py, _HEADER_DIR).
    {"torch", "TORCHINDUCTOR_CACHE_DIR", "torchinductor", false},
    // The same, utils/cpp_extension.py: keyed by the extension's name alone once the variable is set.
    {"torch", "TORCH_EXTENSIONS_DIR", "torch_extensions", true},
    // matplotlib: fontlist-vN.json; without a folder that can be written, a temporary one and a warning at every start.
    {"matplotlib", "MPLCONFIGDIR", "matplotlib", false},
    // numba/core/caching.py: __pycache__ beside the source, which lies in the prefix; keyed by path, mtime and
    // processor.
    {"numba", "NUMBA_CACHE_DIR", "numba", false},
    // wheel cupy-cuda13x 14.2.0: cuda/_compiler_cache.py, ~/.cupy/kernel_cache; cuda/compiler.py: keyed by source,
    // options,
    // the GPU's architecture, NVRTC's version and its own.
    {"cupy-cuda12x", "CUPY_CACHE_DIR", "cupy", false},
    {"cupy-cuda13x", "CUPY_CACHE_DIR", "cupy", false},
    // tilelang/env.py: ~/.tilelang/cache; keyed by script, target and library.
    {"tilelang", "TILELANG_CACHE_DIR", "tilelang", false},
    // DeepGEMM's csrc/jit/compiler.hpp: ~/.deep_gemm; keyed by kernel, compiler and flags.
    {"deep-gemm", "DG_JIT_CACHE_DIR", "deep_gemm", false},
    // unsloth_zoo/compiler.py: unsloth_compiled_cache in the folder where the job is started.
    {"unsloth", "UNSLOTH_COMPILE_LOCATION", "unsloth", true},
};

}  // namespace

bundle::Variables cache_variables(const std::vector<LockedWheel>& wheels, const std::string& python) {
  bundle::Variables variables;
  for (const LockedWheel& wheel : wheels)
    for (const Row& row : kRows)
      if (bundle::normalized_project_name(wheel.name) == row.package)
        variables.emplace(row.variable, std::string(bundle::kCacheWord) + "/" + row.folder +
                                            (row.by_version ? "/" + wheel.version + "-py" + python : ""));
  return variables;
}

}  // namespace sealift::packager
