// SPDX-License-Identifier: Apache-2.0
// One finding for each component and machine part; see profile_check.hpp. A component is refused for a GPU only when
// none of its files has code for it: wheels such as bitsandbytes bring a library for each CUDA, and use one of them.
#include "packager/native/profile_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "packager/native/driver_floor.hpp"
#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/native/gpu_models.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Version;
using Kind = NativeFinding::Kind;

namespace {

void raise(MachineNeeds::Need& need, const std::string& value, const std::string& who) {
  if (!value.empty() && Version::leading(need.value) < Version::leading(value)) need = {.value = value, .who = who};
}

class ProfileCheck {
 public:
  ProfileCheck(const MachineNeeds& needs, const bundle::Target& profile, const std::vector<std::string>& overruled)
      : needs_(needs), profile_(profile), overruled_(overruled.begin(), overruled.end()) {}

  std::vector<NativeFinding> run() {
    driver();
    for (const std::string& gpu : profile_.gpus) {
      old_for_cuda(gpu);
      code_for(gpu);
    }
    for (const auto& [file, fault] : needs_.gpu_faults)
      say(Severity::Warning, file + ": " + fault, "use another build, or try this one on the target's GPUs");
    processor();
    kernel();
    space();
    return std::move(findings_);
  }

 private:
  void say(Severity severity, std::string what, std::string next) {
    findings_.push_back(
        {.kind = Kind::Machine, .severity = severity, .library = {}, .what = std::move(what), .next = std::move(next)});
  }
  void refuse(const std::string& check, const std::string& what, const std::string& next) {
    if (overruled_.contains(check))
      say(Severity::Warning, what, "the job overrules `" + check + "`, and the manifest says so");
    else
      say(Severity::Refusal, what,
          next + "; or overrule it, where you know better: [target] overrule = [\"" + check +
              "\"], which the manifest tells the installing site");
  }

  void driver() {
    const auto floor = needs_.cuda ? driver_floor(*needs_.cuda) : std::nullopt;
    if (!floor || profile_.driver.empty() || Version::leading(profile_.driver) >= Version::leading(*floor)) return;
    refuse("driver",
           fmt::format("{} brings CUDA {}, which needs NVIDIA's driver {} or newer; the target has {}", needs_.cuda_of,
                       *needs_.cuda, *floor, profile_.driver),
           "require packages that are built for an older CUDA (torch_backend = \"auto\" in [python] finds torch), or "
           "update the target's driver and probe it again");
  }

  // What is known before there is a file; afterwards the files themselves say it.
  void old_for_cuda(const std::string& gpu) {
    const std::optional<unsigned> capability = bundle::gpu_capability(gpu);
    const auto floor = needs_.oldest_cuda ? gpu_floor(*needs_.oldest_cuda) : std::nullopt;
    if (!floor || !capability || *capability >= *floor) return;
    refuse("gpu",
           fmt::format("the bundle brings CUDA {}, which has code for GPUs from sm_{} on; the target has {} (sm_{})",
                       *needs_.oldest_cuda, *floor, gpu, *capability),
           "require packages that are built for an older CUDA (torch_backend in [python] names or finds torch's), or "
           "correct the profile's gpus");
  }

  void code_for(const std::string& gpu) {
    if (needs_.gpu.empty()) return;
    const std::optional<unsigned> capability = bundle::gpu_capability(gpu);
    if (!capability) {
      say(Severity::Warning,
          fmt::format("the GPU \"{}\" is in no table here, so nobody checked whether there is code for it", gpu),
          "if you know its compute capability, add it behind the name in the job's [target], as in \"8 x NAME sm_90\"");
      return;
    }
    for (const auto& [component, files] : needs_.gpu) code_for(gpu, *capability, component, files);
  }

  void code_for(const std::string& gpu, unsigned capability, const std::string& component,
                const std::map<std::string, bundle::GpuCode>& files) {
    std::string without;
    std::size_t count = 0;
    bundle::GpuImages all;
    for (const auto& [file, code] : files) {
      const bundle::GpuImages images = code.images();
      all.insert(images.begin(), images.end());
      if (!bundle::runs_on(images, capability) && ++count <= 3) without += (count > 1 ? ", " : "") + file;
    }
    if (count == 0) return;
    const std::string needed = fmt::format("{} (sm_{})", gpu, capability);
    if (count == files.size())
      refuse("gpu", fmt::format("{} has no code that {} can run: its code is for {}", component, needed, text_of(all)),
             fmt::format("require a build of it for sm_{} (of torch, one for another CUDA, such as +cu126), or correct "
                         "the profile's gpus",
                         capability));
    else
      say(Severity::Warning,
          fmt::format("of {}, {}{} has no code that {} can run", component, without,
                      count > 3 ? fmt::format(" and {} more", count - 3) : "", needed),
          "nothing, if the job uses only the others; else require another build");
  }

  void processor() {
    const std::string &level = needs_.cpu.value, &there = profile_.cpu;
    if (level.empty() || there.empty() || there >= level) return;  // one digit at the end decides
    refuse("cpu", fmt::format("{} needs a processor of {}; the target's is {}", needs_.cpu.who, level, there),
           "require or build one for older processors");
  }

  void kernel() {
    const std::string &floor = needs_.kernel.value, &there = profile_.kernel;
    if (floor.empty() || there.empty() || Version::leading(there) >= Version::leading(floor)) return;
    refuse("kernel", fmt::format("{} needs Linux {} or newer; the target has {}", needs_.kernel.who, floor, there),
           "pack on an older distribution, or update the target");
  }

  // A profile gives whole GiB, rounded down.
  void space() {
    if (!profile_.free_gib || needs_.bytes >> 30 <= *profile_.free_gib) return;
    refuse("space",
           fmt::format("the bundle takes {} once it is installed; the target has {} GiB free",
                       bundle::human_size(needs_.bytes), *profile_.free_gib),
           "leave something out, or free some room and probe again with --prefix");
  }

  const MachineNeeds& needs_;
  const bundle::Target& profile_;
  const std::set<std::string> overruled_;
  std::vector<NativeFinding> findings_;
};

// "torch-2.11.0" of a wheel's name, the file's own of a program; always a plain name.
std::string short_name(const std::string& owner) {
  std::string name = owner.substr(owner.find_last_of("/ ") + 1);
  if (const auto wheel = bundle::parse_wheel_name(owner)) name = wheel->name + "-" + wheel->version;
  name = name.substr(0, 100);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !bundle::is_plain_name(std::string("a") + c); }, '_');
  return bundle::is_plain_name(name) ? name : "component";
}

}  // namespace

MachineNeeds machine_needs(const NativeFiles& files, const std::string& arch, std::optional<unsigned> cuda) {
  MachineNeeds needs{.cuda = cuda};
  for (const NativeFile& file : files.files) {
    if (!file.fault.empty() || file.elf.arch != arch) continue;
    if (file.elf.soname.starts_with("libcudart.so.")) needs.cuda_of = file.owner;
    if (file.path.find("/glibc-hwcaps/") != file.path.npos) continue;  // ld.so takes these where they fit
    raise(needs.kernel, file.elf.kernel_floor, file.owner);
    if (file.elf.cpu_floor > needs.cpu.value) needs.cpu = {.value = file.elf.cpu_floor, .who = file.owner};
    if (!file.gpu.empty()) needs.gpu[file.owner][file.file_name()] = file.gpu;
    if (!file.gpu_fault.empty()) needs.gpu_faults[file.file_name() + " of " + file.owner] = file.gpu_fault;
  }
  return needs;
}

std::vector<NativeFinding> profile_findings(const MachineNeeds& needs, const bundle::Target& profile,
                                            const std::vector<std::string>& overruled) {
  return ProfileCheck(needs, profile, overruled).run();
}

std::map<std::string, std::string> gpu_code_of(const MachineNeeds& needs) {
  std::map<std::string, bundle::GpuImages> images;
  for (const auto& [component, files] : needs.gpu)
    for (const auto& [file, code] : files) images[short_name(component)].merge(code.images());
  std::map<std::string, std::string> texts;
  for (const auto& [component, all] : images) texts[component] = text_of(all);
  return texts;
}

}  // namespace sealift::packager
