// SPDX-License-Identifier: Apache-2.0
// Rows and scripts; see toolchain.hpp.
#include "packager/toolchain/toolchain.hpp"

#include <algorithm>

#include "bundle/manifest/compiler_place.hpp"
#include "packager/toolchain/openmp_files.hpp"
#include "sealift/bundle/wheel/installed_path.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

constexpr const char* kWheel = "ziglang";
// The newest glibc that every version of the wheel since 0.13 has; what is compiled for it runs with a newer one, too.
constexpr bundle::GlibcVersion kNewestGlibc{2, 38};

constexpr const char* kCxxPlace = "libexec/sealift/c++";

std::string glibc_of(const bundle::Target& target) {
  return std::min(target.glibc, kNewestGlibc).text();
}

std::string head_of(const std::string& what, const std::string& variable, const std::string& name,
                    const bundle::Target& target) {
  return "#!/bin/sh\n# The " + what + " of this environment, as " + variable + " names it: zig " + name + ", for " +
         target.arch + " with glibc " + glibc_of(target) +
         " or newer.\n"
         "root=${0%/*}/../..\n"
         "if [ -z \"$ZIG_GLOBAL_CACHE_DIR\" ] && [ -z \"$XDG_CACHE_HOME\" ] && [ -z \"$HOME\" ]; then\n"
         "  echo \"" +
         name +
         ": no place for what is compiled; set HOME or ZIG_GLOBAL_CACHE_DIR\" >&2\n"
         "  exit 1\n"
         "fi\n";
}

std::string start_of(const std::string& name, const std::string& packages, const bundle::Target& target) {
  return "exec \"$root/" + packages + "/ziglang/zig\" " + name + " -target " + target.arch + "-linux-gnu." +
         glibc_of(target) + " -fno-sanitize=undefined \"$@\"\n";
}

// An extension of torch exchanges strings and containers with libraries that were built with libstdc++.
constexpr const char* kNoExtensions =
    R"sh(# With clang's libc++, linked in: for what exchanges plain C with others, as Inductor's kernels do.
case " $*" in *TORCH_EXTENSION_NAME=*)
  if command -v g++ > /dev/null; then exec g++ "$@"; fi
  echo "c++: an extension of torch needs libstdc++: install g++ on this host, or carry it ([apt] packages)" >&2
  exit 1 ;;
esac
)sh";

// clang calls another OpenMP runtime than torch brings: a header and a bridge stand beside this script. Each word is
// taken from the front and put back at the end.
constexpr const char* kOpenMpArguments = R"sh(openmp='' link=yes
for word; do
  shift
  case $word in
    -lgomp) continue ;;
    -fopenmp) openmp=yes ;;
    -c | -E | -S | -M | -MM | -fsyntax-only | c-header | c++-header) link='' ;;
  esac
  set -- "$@" "$word"
done
if [ "$openmp" ]; then
  set -- "$@" -isystem "${0%/*}/include"
  if [ "$link" ]; then
    runtime=''
    for file in "$packages"/torch/lib/libgomp*.so*; do [ ! -e "$file" ] || runtime=$file; done
    if [ -z "$runtime" ]; then
      echo "c++: -fopenmp needs the runtime that torch brings, and there is none in $packages/torch/lib" >&2
      exit 1
    fi
    set -- "$@" "${0%/*}/openmp.cpp" "$runtime"
  fi
fi
)sh";

// Inductor asks `openssl` for a digest of a header before it compiles for a CPU. The host's own counts before this.
constexpr const char* kOpenSsl = R"sh(#!/bin/sh
# For hosts without openssl, since torch.compile runs `openssl sha512 FILE`. Where there is one, that is what runs.
rest=${SEALIFT_OPENSSL_PATH-$PATH:}  # of another environment: where it had not looked yet
while [ "$rest" ]; do
  folder=${rest%%:*} rest=${rest#*:}
  if [ -x "$folder/openssl" ] && ! [ "$folder/openssl" -ef "$0" ]; then
    export SEALIFT_OPENSSL_PATH="$rest"
    exec "$folder/openssl" "$@"
  fi
done
if [ "$#" = 2 ] && [ "$1" = sha512 ] && [ -f "$2" ]; then
  sum=$(sha512sum < "$2") || exit 1
  echo "SHA2-512($2)= ${sum%% *}"
  exit 0
fi
echo "openssl: this host has none, and the environment answers \`openssl sha512 FILE\` only" >&2
exit 1
)sh";

bool names_wheel(const std::string& requirement) {
  const std::size_t end =
      requirement.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
  return bundle::normalized_project_name(requirement.substr(0, end)) == kWheel;
}

}  // namespace

Toolchain read_toolchain(TomlTable& document) {
  Toolchain toolchain;
  if (!document.has("toolchain")) return toolchain;
  TomlTable table = document.table("toolchain");
  table.attempt([&] { toolchain.cxx = table.boolean_or("cxx", false); });
  table.attempt([&] { toolchain.c = table.boolean_or("c", toolchain.cxx); });
  table.done();
  if (toolchain.cxx && !toolchain.c)
    table.refuse("cxx", "a C++ compiler does without its C compiler", "c = true, or no c beside cxx", "c = false");
  return toolchain;
}

std::string write_toolchain(const Toolchain& toolchain) {
  if (!toolchain.c) return "";
  return std::string("\n[toolchain]\nc = true\n") + (toolchain.cxx ? "cxx = true\n" : "");
}

std::vector<std::string> toolchain_requirements(const Toolchain& toolchain,
                                                const std::vector<std::string>& requirements) {
  if (!toolchain.c || std::any_of(requirements.begin(), requirements.end(), names_wheel)) return {};
  return {kWheel};
}

bundle::Variables toolchain_variables(const Toolchain& toolchain) {
  if (!toolchain.c) return {};
  const std::string cache = std::string(bundle::kCacheWord) + "/zig";
  const std::string prefix = std::string(bundle::kPrefixWord) + "/";
  bundle::Variables variables = {{"CC", prefix + std::string(bundle::kCompilerPlace)},
                                 {"ZIG_GLOBAL_CACHE_DIR", cache},
                                 {"ZIG_LOCAL_CACHE_DIR", cache}};
  if (toolchain.cxx) variables.emplace("CXX", prefix + kCxxPlace);
  return variables;
}

// Without a -target zig asks the host which libc it has, and for its compiler. Unlike cc, it makes programs trap on
// what C leaves undefined unless they are optimized.
std::vector<ToolchainFile> toolchain_files(const Toolchain& toolchain, const bundle::Target& target,
                                           const std::string& python) {
  std::vector<ToolchainFile> files;
  if (!toolchain.c) return files;
  const std::string packages = bundle::site_packages_of(python);
  files.push_back({.place = std::string(bundle::kCompilerPlace),
                   .text = head_of("C compiler", "CC", "cc", target) + start_of("cc", packages, target)});
  if (!toolchain.cxx) return files;
  files.push_back({.place = kCxxPlace,
                   .text = head_of("C++ compiler", "CXX", "c++", target) + kNoExtensions + "packages=$root/" +
                           packages + "\n" + kOpenMpArguments + start_of("c++", packages, target)});
  files.push_back({.place = "libexec/sealift/include/omp.h", .text = kOpenMpHeader, .executable = false});
  files.push_back({.place = "libexec/sealift/openmp.cpp", .text = kOpenMpBridge, .executable = false});
  files.push_back({.place = "bin/openssl", .text = kOpenSsl});
  return files;
}

}  // namespace sealift::packager
