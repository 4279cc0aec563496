// SPDX-License-Identifier: Apache-2.0
// The table itself. To extend it, run `sealift-pack create`, look up each name that it warns about in the sources or
// the documentation of the library that opens it, and add a line that says when it is opened and what happens without
// it.
#include "packager/libraries/dlopen_table.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace sealift::packager {

namespace {

constexpr auto kRequired = DlopenRule::Kind::Required;
constexpr auto kOptional = DlopenRule::Kind::Optional;

constexpr DlopenRule kTable[] = {
    // cuDNN 9 is a thin library that opens its parts as they are used; any of them may be, in the first convolution.
    {"libcudnn.so.9", "libcudnn_graph.so{V}", kRequired, "every cuDNN call goes through it"},
    {"libcudnn.so.9", "libcudnn_ops.so{V}", kRequired, "normalisation, softmax, pooling"},
    {"libcudnn.so.9", "libcudnn_cnn.so{V}", kRequired, "convolutions"},
    {"libcudnn.so.9", "libcudnn_adv.so{V}", kRequired, "RNNs and attention"},
    {"libcudnn_graph.so.9", "libcudnn_engines_precompiled.so{V}", kRequired, "the kernels"},
    {"libcudnn_graph.so.9", "libcudnn_engines_runtime_compiled.so{V}", kRequired, "fused kernels, made with NVRTC"},
    {"libcudnn_graph.so.9", "libcudnn_engines_tensor_ir.so{V}", kOptional, "newer cuDNN 9 only"},
    {"libcudnn_graph.so.9", "libcudnn_heuristic.so{V}", kRequired, "chooses among the kernels"},
    {"libcudnn_graph.so.9", "libnvrtc.so*", kOptional, "only for kernels that are compiled at run time"},
    // cuDNN 8, which torch 2.0 to 2.3 used.
    {"libcudnn.so.8", "libcudnn_ops_infer.so{V}", kRequired, "every cuDNN call"},
    {"libcudnn.so.8", "libcudnn_ops_train.so{V}", kRequired, "backward of normalisation"},
    {"libcudnn.so.8", "libcudnn_cnn_infer.so{V}", kRequired, "convolutions"},
    {"libcudnn.so.8", "libcudnn_cnn_train.so{V}", kRequired, "backward of convolutions"},
    {"libcudnn.so.8", "libcudnn_adv_infer.so{V}", kRequired, "RNNs"},
    {"libcudnn.so.8", "libcudnn_adv_train.so{V}", kRequired, "backward of RNNs"},
    // NVRTC looks for its built-ins under its own full version, 13.0 for libnvrtc.so.13.
    {"libnvrtc.so.*", "libnvrtc-builtins.so{V}*", kRequired, "nothing compiles without it"},
    {"libnvrtc.alt.so.*", "libnvrtc-builtins.alt.so{V}*", kRequired, "the same, in its other build"},
    {"libnvrtc.so.*", "libtgenfe_nvrtc_shared.so", kOptional, "a front end of its own, in no wheel"},
    // Maths libraries compile or link callbacks and fused kernels at run time.
    {"libcublasLt.so.*", "libnvrtc.so{V}", kOptional, "only for fused epilogues that are not precompiled"},
    {"libcufft.so.*", "libnvrtc.so*", kOptional, "only for callbacks"},
    {"libcufft.so.*", "libnvJitLink.so*", kOptional, "only for callbacks"},
    {"libcusolver.so.*", "libcusolverMg.so*", kOptional, "only for several GPUs at once"},
    // torch opens these two by name from libtorch_cuda: the fuser and everything of torch.linalg.
    {"libtorch_cuda.so", "libcaffe2_nvrtc.so", kRequired, "kernels that torch compiles itself"},
    {"libtorch_cuda.so", "libtorch_cuda_linalg.so", kRequired, "torch.linalg on a GPU"},
    // NCCL: networks and tuners come from the site's fabric software, never from a wheel.
    {"libnccl.so.2", "libnccl-*.so*", kOptional, "plugins (net, tuner, profiler, env) of the site's fabric"},
    {"libnccl.so.2", "libibverbs.so*", kOptional, "InfiniBand; without it NCCL uses sockets"},
    {"libnccl.so.2", "libmlx5.so*", kOptional, "InfiniBand; without it NCCL uses sockets"},
    // NVSHMEM: each plugin is of one network or launcher.
    {"libnvshmem_host.so.*", "nvshmem_bootstrap_uid.so{V}", kRequired, "how torch starts it"},
    {"nvshmem_transport_gpunetio.so.*", "libdoca_*.so*", kOptional, "DOCA, which comes with the site's network cards"},
    {"libnvshmem_host.so.*", "libgdrapi.so*", kOptional, "GDRCopy, which needs a kernel module of the site"},
    {"libnvshmem_host.so.*", "nvshmem_transport_*.so*", kOptional, "one for each network"},
    {"libnvshmem_host.so.*", "nvshmem_bootstrap_*.so*", kOptional, "one for each launcher"},
    // GPUDirect Storage.
    {"libcufile.so.0", "libcufile_rdma.so*", kOptional, "only for remote storage"},
    {"libcufile.so.0", "libcufile_ck.so*", kOptional, "only for compressed storage"},
    {"libcufile.so.0", "libmount.so*", kOptional, "tells what is mounted; without it cuFile copies through the CPU"},
    {"libcufile.so.0", "libudev.so*", kOptional, "tells which disks there are; without it it copies through the CPU"},
    {"libcufile.so.0", "libnuma.so*", kOptional, "places buffers near the disk"},
    {"libcufile.so.0", "liburcu-*.so*", kOptional, "only for its counters"},
    // Profiling.
    {"libcupti.so.*", "libnvperf_host.so*", kOptional, "only for hardware counters"},
    {"libcupti.so.*", "libnvperf_target.so*", kOptional, "only for hardware counters"},
    {"libcupti.so.*", "libcheckpoint.so*", kOptional, "only to replay kernels"},
    {"libcupti.so.*", "libpcsamplingutil.so*", kOptional, "only for sampling"},
    {"*", "libnvToolsExt.so*", kOptional, "marks for a profiler; gone since CUDA 12.9"},
    {"libcupti.so.*", "libEGL*.so*", kOptional, "only for profiles of graphics"},
    {"libcupti.so.*", "libGL*.so*", kOptional, "only for profiles of graphics"},
    {"libcupti.so.*", "libX11.so*", kOptional, "only for profiles of graphics"},
    {"libcupti.so.*", "libVulkan_EGL.so*", kOptional, "only for profiles of graphics"},
    {"libcupti.so.*", "libOpenCL.so*", kOptional, "only for profiles of OpenCL"},
    {"*", "libcask_profile_interface.so*", kOptional, "inside NVIDIA only; cuDNN and cuSPARSELt ask for it"},
    {"*", "libittnotify*.so*", kOptional, "marks for VTune"},
    // Triton and torch carry the code for other makers' devices too, and ask whether these are there.
    {"libtriton.so", "libamdhip64.so*", kOptional, "AMD GPUs"},
    {"libtriton.so", "libhipblaslt.so*", kOptional, "AMD GPUs"},
    {"libproton.so", "libhsa-runtime64.so*", kOptional, "AMD GPUs"},
    {"libproton.so", "libroctracer64.so*", kOptional, "AMD GPUs"},
    {"libproton.so", "librocprofiler-*.so*", kOptional, "AMD GPUs"},
    {"libtorch_cpu.so", "libneuralnetworks.so*", kOptional, "Android"},
    // MKL picks one of these by the processor; where it is linked statically, as in torch, it has them inside.
    {"libmkl_rt.so.*", "libmkl_core.so{V}", kRequired, "all of MKL"},
    {"libmkl_rt.so.*", "libmkl_*_thread.so*", kOptional, "one for each runtime of threads"},
    {"libmkl_core.so.*", "libmkl_def.so*", kOptional, "one for each kind of processor"},
    {"libmkl_core.so.*", "libmkl_mc3.so*", kOptional, "one for each kind of processor"},
    {"libmkl_core.so.*", "libmkl_avx*.so*", kOptional, "one for each kind of processor"},
    {"libmkl_core.so.*", "libmkl_vml_*.so*", kOptional, "one for each kind of processor"},
    // Libraries that were built with another runtime open OpenMP's.
    {"*", "libgomp.so*", kOptional, "OpenMP; needed libraries say so in NEEDED"},
    {"*", "libiomp5.so*", kOptional, "OpenMP; needed libraries say so in NEEDED"},
    {"*", "libomp.so*", kOptional, "OpenMP; needed libraries say so in NEEDED"},
    // Arrow reads from Hadoop where a site has it (arrow/io/hdfs_internal.cc).
    {"libarrow.so.*", "libhdfs.so*", kOptional, "Hadoop of the site"},
    {"libarrow.so.*", "libjvm.so*", kOptional, "Java, for Hadoop of the site"},
    // Matplotlib asks whether there is a display (src/_c_internal_utils.cpp).
    {"_c_internal_utils.cpython-*.so", "libwayland-client.so*", kOptional, "a display"},
    {"_c_internal_utils.cpython-*.so", "libX11.so*", kOptional, "a display"},
    // Pillow (src/thirdparty/fribidi-shim/fribidi.c): without it ImageFont has no Raqm layout, and says so.
    {"_imagingft.cpython-*.so", "libfribidi.so*", kOptional, "text from right to left"},
    // What distributions' libraries ask for, and do without.
    {"libncursesw.so.*", "libgpm.so*", kOptional, "a mouse on the console"},
    {"*", "libidn2.so*", kOptional, "host names outside ASCII; glibc has it inside static programs too"},
};

}  // namespace

std::span<const DlopenRule> dlopen_table() {
  return kTable;
}

bool matches(std::string_view pattern, const std::string& name) {
  return ::fnmatch(std::string(pattern).c_str(), name.c_str(), 0) == 0;
}

std::string opened_by(const DlopenRule& rule, const std::string& opener) {
  std::string name(rule.opened);
  const std::size_t at = name.find("{V}");
  if (at == name.npos) return name;
  const std::size_t suffix = opener.find(".so");
  return name.replace(at, 3, suffix == opener.npos ? "" : opener.substr(suffix + 3));
}

bool is_known_to_be_opened(const std::string& name) {
  const std::string stem = name.substr(0, name.find(".so") + 3);
  return std::any_of(std::begin(kTable), std::end(kTable), [&](const DlopenRule& rule) {
    return matches(rule.opened.substr(0, rule.opened.find(".so") + 3), stem);
  });
}

}  // namespace sealift::packager
