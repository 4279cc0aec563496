// SPDX-License-Identifier: Apache-2.0
// The findings about the machine. glibc is compared with the target that the signer promised, not with what the files
// need: the promise is what was tested, and files that need less on one machine may need more on the next.
#include <algorithm>
#include <chrono>
#include <optional>

#include "bundle/manifest/compiler_place.hpp"
#include "installer/preflight/preflight.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/native/gpu_code.hpp"
#include "sealift/bundle/native/gpu_models.hpp"

namespace sealift::installer {

using bundle::Version;
using Verdict = Finding::Verdict;

namespace {

constexpr std::string_view kOldestKernel = "3.2";                // what glibc itself needs since 2.26
constexpr std::string_view kSmoothKernel = "5.5";                // accelerate warns below it: processes may hang
constexpr std::uint64_t kSharedMemory = std::uint64_t{1} << 30;  // data loaders and NCCL; containers give 64 MiB

Finding ok(std::string check, std::string expected, std::string got) {
  return {.check = std::move(check), .facts = {.what = {}, .expected = std::move(expected), .got = std::move(got)}};
}

Finding found(Verdict verdict, std::string check, bundle::Facts facts) {
  return {.check = std::move(check), .verdict = verdict, .facts = std::move(facts)};
}

std::string or_none(const std::string& text) {
  return text.empty() ? "none" : text;
}

Finding architecture(const bundle::Manifest& manifest, const Machine& machine) {
  const std::string &wanted = manifest.target.arch, &arch = machine.target.arch;
  if (arch == wanted) return ok("architecture", wanted, arch);
  return found(Verdict::Fail, "architecture",
               {.what = "the bundle is for another architecture",
                .where = manifest.stem(),
                .expected = wanted,
                .got = arch + " (this machine)",
                .next = "ask for a bundle made for " + arch});
}

Finding glibc(const bundle::Manifest& manifest, const Machine& machine) {
  const bundle::GlibcVersion wanted = manifest.target.glibc, there = machine.target.glibc;
  if (const auto& runtime = manifest.environment.runtime)
    return ok("glibc", "any: glibc " + runtime->glibc.text() + " is carried",
              there == bundle::GlibcVersion{} ? "none" : "glibc " + there.text());
  const std::string needed = "glibc " + wanted.text() + " or newer";
  if (there == bundle::GlibcVersion{})
    return found(Verdict::Fail, "glibc",
                 {.what = "this machine has no GNU C library that can be found",
                  .where = manifest.stem(),
                  .expected = needed,
                  .got = "no libc.so.6 in the usual folders",
                  .next = "the bundle's programs cannot start here; use another machine"});
  if (there < wanted)
    return found(Verdict::Fail, "glibc",
                 {.what = "this machine's C library is older than the bundle's target",
                  .where = machine.libc.string(),
                  .expected = needed,
                  .got = "glibc " + there.text(),
                  .next = "ask for a bundle made for this machine: send the output of `sealift-install probe`"});
  return ok("glibc", needed, "glibc " + there.text());
}

Finding libstdcxx(const bundle::Manifest& manifest, const Machine& machine) {
  const bundle::Target &wanted = manifest.target, &there = machine.target;
  if (manifest.environment.runtime) return ok("libstdc++", "any: it is carried", or_none(there.glibcxx));
  std::string needed;
  if (!wanted.glibcxx.empty()) needed = "GLIBCXX_" + wanted.glibcxx;
  if (!wanted.cxxabi.empty()) needed += (needed.empty() ? "CXXABI_" : ", CXXABI_") + wanted.cxxabi;
  const std::string got = there.glibcxx.empty() ? "no libstdc++.so.6 in the usual folders"
                                                : "GLIBCXX_" + there.glibcxx + ", CXXABI_" + there.cxxabi;
  if (there.glibcxx.empty())
    return found(needed.empty() ? Verdict::Warn : Verdict::Fail, "libstdc++",
                 {.what = "this machine has no C++ library that can be found",
                  .expected = needed.empty() ? "libstdc++.so.6, for wheels that take the host's" : needed,
                  .got = got,
                  .next = "install the distribution's libstdc++ (libstdc++6)"});
  if (Version::leading(there.glibcxx) < Version::leading(wanted.glibcxx) ||
      Version::leading(there.cxxabi) < Version::leading(wanted.cxxabi))
    return found(Verdict::Fail, "libstdc++",
                 {.what = "this machine's C++ library is older than what the bundle needs",
                  .expected = needed,
                  .got = got,
                  .next = "ask for a bundle made for this machine: send the output of `sealift-install probe`"});
  return ok("libstdc++", needed, got);
}

Finding kernel(const bundle::Manifest& manifest, const Machine& machine) {
  const std::string& kernel = machine.target.kernel;
  const auto& runtime = manifest.environment.runtime;
  const std::string oldest = runtime ? runtime->kernel : std::string(kOldestKernel);
  if (!kernel.empty() && Version::leading(kernel) < Version::leading(oldest))
    return found(Verdict::Fail, "kernel",
                 {.what = runtime ? "this machine's kernel is older than the carried glibc asks for"
                                  : "this machine's kernel is older than any glibc of today can use",
                  .expected = oldest + " or newer",
                  .got = kernel,
                  .next = "use a machine with a newer system"});
  if (kernel.empty() || Version::leading(kernel) < Version::leading(kSmoothKernel))
    return found(Verdict::Warn, "kernel",
                 {.what = "training processes are known to hang now and then on kernels of this age",
                  .expected = std::string(kSmoothKernel) + " or newer",
                  .got = or_none(kernel),
                  .next = "it can be installed; if a job hangs, update the kernel first"});
  return ok("kernel", std::string(kSmoothKernel) + " or newer", kernel);
}

Finding processor(const bundle::Manifest& manifest, const Machine& machine) {
  const std::string &wanted = manifest.target.cpu, &cpu = machine.target.cpu;
  if (manifest.target.arch != "x86_64") return ok("processor", "", or_none(cpu));
  if (!wanted.empty() && !cpu.empty() && cpu < wanted)  // one digit at the end decides
    return found(Verdict::Fail, "processor",
                 {.what = "this machine's processor lacks instructions that the bundle uses",
                  .expected = wanted,
                  .got = cpu,
                  .next = "use another machine, or ask for a bundle made for this one: `sealift-install probe`"});
  if (cpu.empty() || cpu < "x86-64-v3")
    return found(Verdict::Warn, "processor",
                 {.what = "this machine's processor has no AVX2, as far as can be seen",
                  .expected = wanted.empty() ? "x86-64-v3" : wanted,
                  .got = cpu.empty() ? "not known" : cpu,
                  .next = "some wheels stop with 'illegal instruction' here; the self-test tells"});
  return ok("processor", wanted.empty() ? "x86-64-v3" : wanted, cpu);
}

bool is_overruled(const bundle::Manifest& manifest, const std::string& check) {
  return std::binary_search(manifest.overruled.begin(), manifest.overruled.end(), check);
}

Finding driver(const bundle::Manifest& manifest, const Machine& machine) {
  const std::string &floor = manifest.driver_floor, &there = machine.target.driver;
  const std::string needed = floor.empty() ? "" : "driver " + floor + " or newer";
  if (floor.empty()) return ok("driver", needed, or_none(there));
  if (there.empty())
    return found(Verdict::Warn, "driver",
                 {.what = "NVIDIA's driver is not loaded on this machine",
                  .expected = needed,
                  .got = "none",
                  .next = "a node without GPUs needs none; on others install it, or nothing runs on the GPUs"});
  if (Version::leading(there) < Version::leading(floor))
    return found(is_overruled(manifest, "driver") ? Verdict::Warn : Verdict::Fail, "driver",
                 {.what = "NVIDIA's driver is older than what the bundle's CUDA needs",
                  .expected = needed,
                  .got = "driver " + there,
                  .next = "update the driver, or ask for a bundle whose torch is built for an older CUDA"});
  return ok("driver", needed, "driver " + there);
}

Finding gpus(const bundle::Manifest& manifest, const Machine& machine) {
  std::string list;
  for (const std::string& gpu : machine.target.gpus) list += (list.empty() ? "" : ", ") + gpu;
  if (!list.empty() || manifest.driver_floor.empty()) return ok("GPUs", "", or_none(list));
  return found(Verdict::Warn, "GPUs",
               {.what = "no GPU of NVIDIA's is in this machine",
                .expected = "one or more, since the bundle brings CUDA",
                .got = "none",
                .next = "a login or build node is fine; in a machine with GPUs look for them with lspci"});
}

// "torch-2.11.0 (for sm_75 sm_80)", of the components that have code for GPUs, but none for this one.
std::string without_code_for(const bundle::Manifest& manifest, unsigned capability) {
  std::string list;
  for (const auto& [component, text] : manifest.gpu_code)
    if (const auto images = bundle::parse_gpu_images(text); images && !bundle::runs_on(*images, capability))
      list += (list.empty() ? "" : ", ") + component + " (for " + text + ")";
  return list;
}

// Whether the GPUs that are here have something to run; nothing where no code or no GPU is.
std::optional<Finding> gpu_code(const bundle::Manifest& manifest, const Machine& machine) {
  if (manifest.gpu_code.empty() || machine.target.gpus.empty()) return std::nullopt;
  std::string known;
  for (const std::string& gpu : machine.target.gpus) {
    const std::optional<unsigned> capability = bundle::gpu_capability(gpu);
    if (!capability)
      return found(Verdict::Warn, "GPU code",
                   {.what = "a GPU of this machine is in no table here, so nobody checked its code",
                    .expected = "a GPU whose architecture is known",
                    .got = gpu,
                    .next = "run a small training step before you rely on it"});
    const std::string needed = "code for sm_" + std::to_string(*capability);
    known += (known.empty() ? "" : ", ") + needed;
    if (const std::string without = without_code_for(manifest, *capability); !without.empty())
      return found(is_overruled(manifest, "gpu") ? Verdict::Warn : Verdict::Fail, "GPU code",
                   {.what = "components of the bundle have no code that " + gpu + " can run",
                    .expected = needed,
                    .got = without,
                    .next = "ask for a bundle made for this machine: send the output of `sealift-install probe`"});
  }
  return ok("GPU code", known, "there, or compiled by the driver at the first use");
}

Finding shared_memory(const Machine& machine) {
  const std::string needed = bundle::human_size(kSharedMemory) + " or more";
  if (machine.shared_memory && *machine.shared_memory >= kSharedMemory)
    return ok("/dev/shm", needed, bundle::human_size(*machine.shared_memory));
  return found(Verdict::Warn, "/dev/shm",
               {.what = "there is too little shared memory for data loaders and NCCL",
                .expected = needed,
                .got = machine.shared_memory ? bundle::human_size(*machine.shared_memory) : "no /dev/shm",
                .next = "in a container --shm-size=8g or a larger emptyDir of medium Memory; on a host: "
                        "mount -o remount,size=50% /dev/shm"});
}

Finding locale(const Machine& machine) {
  std::string folded;
  for (const char c : machine.locale)
    if (c != '-') folded += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  // Python takes C and POSIX for UTF-8 by itself (PEP 538, PEP 540).
  if (folded.empty() || folded == "c" || folded == "posix" || folded.find(".utf8") != folded.npos)
    return ok("locale", "UTF-8, C or POSIX", machine.locale.empty() ? "not set" : machine.locale);
  return found(
      Verdict::Warn, "locale",
      {.what = "texts are read in another encoding than UTF-8 here",
       .expected = "UTF-8, C or POSIX",
       .got = machine.locale,
       .next = "set LANG=C.UTF-8 (or PYTHONUTF8=1) in the jobs, or tokenizers and JSON files fail to be read"});
}

Finding clock_of(const bundle::Manifest& manifest, bundle::Time now) {
  const std::optional<bundle::Time> created = bundle::parse_time(manifest.created);
  const std::string needed = "after " + manifest.created + ", when the bundle was made";
  if (!created || now + std::chrono::hours(24) >= *created) return ok("time", needed, bundle::write_time(now));
  return found(Verdict::Warn, "time",
               {.what = "this machine's clock is behind the bundle's",
                .expected = needed,
                .got = bundle::write_time(now),
                .next = "set the clock: certificates, logs and receipts will be dated wrongly"});
}

Finding authorities(const Machine& machine) {
  const std::string needed = "the system's certificate authorities";
  if (!machine.authorities.empty()) return ok("certificates", needed, machine.authorities);
  return found(Verdict::Warn, "certificates",
               {.what = "this machine has no certificate authorities, and a bundle carries none for its own servers",
                .expected = needed,
                .got = "none where Debian, EL or SUSE have them",
                .next = "https to servers of this site fails without them: install ca-certificates, or set "
                        "SSL_CERT_FILE in the jobs"});
}

// Python reads the system's table, else that of the wheel tzdata.
Finding time_zones(const bundle::Manifest& manifest, const Machine& machine) {
  const std::string needed = "/usr/share/zoneinfo, or the wheel tzdata";
  const bool carried = std::any_of(manifest.entries.begin(), manifest.entries.end(), [](const bundle::Entry& entry) {
    const std::string& path = entry.path.text();
    return entry.kind == bundle::EntryKind::Wheel && path.substr(path.rfind('/') + 1).starts_with("tzdata-");
  });
  if (machine.time_zones || carried) return ok("time zones", needed, carried ? "carried" : "/usr/share/zoneinfo");
  return found(Verdict::Warn, "time zones",
               {.what = "there is no table of time zones",
                .expected = needed,
                .got = "neither",
                .next = "programs that ask for a zone by name fail: install tzdata, or add it to the job's "
                        "requirements"});
}

// Triton writes C at run time and asks for a compiler, which the bundle may carry.
std::optional<Finding> compiler(const bundle::Manifest& manifest, const Machine& machine) {
  const bool triton = std::any_of(manifest.entries.begin(), manifest.entries.end(), [](const bundle::Entry& entry) {
    const std::string& path = entry.path.text();
    return entry.kind == bundle::EntryKind::Wheel && path.substr(path.rfind('/') + 1).starts_with("triton-");
  });
  if (!triton) return std::nullopt;
  const std::string needed = "cc, gcc or clang, for triton";
  const bool carried = std::any_of(manifest.entries.begin(), manifest.entries.end(), [](const bundle::Entry& entry) {
    return entry.path.text() == bundle::kCompilerEntry;
  });
  if (carried) return ok("compiler", needed, "carried: CC names it");
  if (!machine.compiler.empty()) return ok("compiler", needed, machine.compiler);
  return found(Verdict::Warn, "compiler",
               {.what = "there is no C compiler, which triton asks for while a program runs",
                .expected = needed,
                .got = "none in /usr/bin or /usr/local/bin",
                .next = "torch.compile fails without one; all else works. Install gcc, or set CC"});
}

// Never a warning: what `apply` unpacks needs none of it.
Finding mounting(const Machine& machine) {
  return ok("mount", "FUSE, for `sealift-install mount` alone", machine.fuse.empty() ? "there" : machine.fuse);
}

}  // namespace

std::vector<Finding> machine_findings(const bundle::Manifest& manifest, const Machine& machine, bundle::Time now) {
  std::vector<Finding> findings = {architecture(manifest, machine),
                                   glibc(manifest, machine),
                                   libstdcxx(manifest, machine),
                                   kernel(manifest, machine),
                                   processor(manifest, machine),
                                   driver(manifest, machine),
                                   gpus(manifest, machine),
                                   shared_memory(machine),
                                   locale(machine),
                                   clock_of(manifest, now),
                                   authorities(machine),
                                   time_zones(manifest, machine),
                                   mounting(machine)};
  if (std::optional<Finding> finding = gpu_code(manifest, machine)) findings.push_back(std::move(*finding));
  if (std::optional<Finding> finding = compiler(manifest, machine)) findings.push_back(std::move(*finding));
  return findings;
}

}  // namespace sealift::installer
