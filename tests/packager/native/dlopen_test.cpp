// SPDX-License-Identifier: Apache-2.0
// Libraries that are opened by name: what the table says, and what is seen of them in a file's bytes.
#include <doctest/doctest.h>

#include <set>

#include "packager/libraries/dlopen_table.hpp"
#include "packager/libraries/renamed_libraries.hpp"
#include "packager/native/driver_floor.hpp"
#include "packager/native/name_scan.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

using namespace sealift;
using namespace sealift::packager;

namespace {

std::set<std::string> names_in(const std::string& bytes, std::size_t piece) {
  NameScan scan;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    scan.feed(bundle::as_bytes(bytes).subspan(at, std::min(piece, bytes.size() - at)));
  return scan.finish();
}

}  // namespace

TEST_CASE("every line of the table says who opens what, and why") {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const DlopenRule& rule : dlopen_table()) {
    INFO(std::string(rule.opener), " ", std::string(rule.opened));
    CHECK((rule.opener == "*" || rule.opener.find(".so") != rule.opener.npos));
    CHECK(rule.opened.find(".so") != rule.opened.npos);
    CHECK_FALSE(rule.why.empty());
    CHECK_FALSE(bundle::belongs_to_target(rule.opened));
    CHECK((rule.opener != "*" || rule.kind == DlopenRule::Kind::Optional));
    CHECK(seen.emplace(rule.opener, rule.opened).second);
  }
}

TEST_CASE("what is opened has the version of who opens it") {
  const DlopenRule rule{"libnvrtc.so.*", "libnvrtc-builtins.so{V}*", DlopenRule::Kind::Required, "test"};
  CHECK(matches(rule.opener, "libnvrtc.so.13"));
  CHECK_FALSE(matches(rule.opener, "libnvrtc-builtins.so.13.0"));
  CHECK(opened_by(rule, "libnvrtc.so.13") == "libnvrtc-builtins.so.13*");
  CHECK(matches(opened_by(rule, "libnvrtc.so.13"), "libnvrtc-builtins.so.13.0"));
  CHECK_FALSE(matches(opened_by(rule, "libnvrtc.so.13"), "libnvrtc-builtins.so.12.8"));
}

TEST_CASE("names are known however a program spells their version") {
  for (const char* name :
       {"libnvrtc.so", "libnvrtc.so.%d", "libnvrtc.so.13", "libnccl-net.so", "libcudnn_ops.so", "libidn2.so.0"})
    CHECK(is_known_to_be_opened(name));
  CHECK_FALSE(is_known_to_be_opened("libsurprise.so.1"));
  CHECK(bundle::is_optional_plugin("nvshmem_transport_ucx.so.3"));
  CHECK(bundle::is_optional_plugin("libtorchcodec_core7.so"));
  CHECK(bundle::is_optional_plugin("libbitsandbytes_rocm64.so"));
  CHECK_FALSE(bundle::is_optional_plugin("libbitsandbytes.so"));
  CHECK(bundle::is_optional_plugin("tbbpool.cpython-311-x86_64-linux-gnu.so"));
  CHECK(bundle::is_optional_plugin("_tensor_bridge.cpython-311-x86_64-linux-gnu.so"));
  CHECK_FALSE(bundle::is_optional_plugin("libnvshmem_host.so.3"));
}

TEST_CASE("a library's names before auditwheel are those without its digests") {
  using Names = std::vector<std::string>;
  CHECK(names_before("libjpeg-6dc8d115.so.62.4.0") == Names{"libjpeg.so"});
  CHECK(names_before("libgfortran-040039e1-0352e75f.so.5") == Names{"libgfortran-040039e1.so", "libgfortran.so"});
  CHECK(names_before("libscipy_openblas64_-32a4b2a6.so") == Names{"libscipy_openblas64_.so"});
  for (const char* name : {"libjpeg.so.62", "libnccl-net.so", "libx-6dc8d11.so", "libx-6dc8d11G.so", "libx6dc8d115.so",
                           "-6dc8d115.so", "libjpeg-6dc8d115", ""})
    CHECK(names_before(name).empty());
}

TEST_CASE("the driver's and glibc's libraries are the target's") {
  for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1", "libc.so.6", "ld-linux-x86-64.so.2"})
    CHECK(bundle::belongs_to_target(name));
  for (const char* name : {"libcudart.so.13", "libnvrtc.so.13", "libstdc++.so.6", "libcufile.so.0"})
    CHECK_FALSE(bundle::belongs_to_target(name));
}

TEST_CASE("names of libraries are whole strings, or the end of a path") {
  constexpr char kText[] =
      "\0libone.so\0/usr/lib/libtwo.so.3\0libthree.so.%d\0cannot open libfour.so\0libfive.so?\0"
      "libsix.software\0xlibseven.so\0lib.so\0libeight-9.1.so.2.3";
  const std::string bytes(kText, sizeof kText);  // with its last NUL
  const std::set<std::string> expected = {"libone.so", "libtwo.so.3", "libthree.so.%d", "libeight-9.1.so.2.3"};
  for (const std::size_t piece : {1, 7, 1000}) CHECK(names_in(bytes, piece) == expected);
}

TEST_CASE("a name is found wherever the file is cut") {
  const std::string name = "libfound_it.so.12";
  std::string bytes(3000, 'x');
  bytes += std::string(1, '\0') + name + std::string(1, '\0') + std::string(3000, '.');
  for (std::size_t piece = 2990; piece < 3030; ++piece) CHECK(names_in(bytes, piece) == std::set<std::string>{name});
  CHECK(names_in(std::string(100000, '.') + ".so", 512).empty());
}

TEST_CASE("the driver floor follows the CUDA that is carried") {
  CHECK(cuda_of_wheels({"torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl",
                        "nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.whl"}) == 13u);
  CHECK(cuda_of_wheels({"nvidia_cuda_runtime_cu12-12.8.90-py3-none-manylinux2014_x86_64.whl"}) == 12u);
  CHECK_FALSE(cuda_of_wheels({"numpy-2.0-cp311-cp311-manylinux_2_28_x86_64.whl", "nonsense"}));
  CHECK(driver_text(13) == "CUDA 13 needs NVIDIA driver 580 or newer");
  CHECK(driver_text(12) == "CUDA 12 needs NVIDIA driver 525.60.13 or newer");
  CHECK(driver_text(99).find("release notes") != std::string::npos);
  CHECK(driver_text({}).empty());
}
