// SPDX-License-Identifier: Apache-2.0
// Levels of x86-64 as its psABI lists them, in the words of /proc/cpuinfo. GPUs are PCI devices of vendor 10de and
// class 03; NVIDIA's driver gives them names, and without it the device's number must do.
#include "installer/host/probe_hardware.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "sealift/bundle/manifest/target_profile.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxKinds = 4;  // of GPUs in one machine

// What x86-64-v2, -v3 and -v4 add to the level below.
const std::vector<std::string> kLevels[] = {{"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"},
                                            {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
                                            {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}};
// Beyond the levels: what numerical libraries choose their kernels by, on either architecture.
const char* const kNotable[] = {"avx_vnni", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8",
                                "asimddp",  "i8mm",        "bf16",        "sve",         "sve2",     "sme"};

// The words behind the first "NAME : " of a text of such lines.
std::string value_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos || !line.starts_with(name)) continue;
    if (line.find_first_not_of(" \t", name.size()) != colon) continue;  // a longer name
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == line.npos ? std::string() : line.substr(begin);
  }
  return {};
}

void probe_cpu(const fs::path& root, bundle::Target& target) {
  const std::string text = head_of(root / "proc/cpuinfo");
  const bool x86 = target.arch == "x86_64";
  std::istringstream words(value_of(text, x86 ? "flags" : "Features"));
  const std::set<std::string> flags{std::istream_iterator<std::string>(words), {}};
  if (flags.empty()) return;
  int level = 1;
  for (const std::vector<std::string>& added : kLevels) {
    if (!std::all_of(added.begin(), added.end(), [&](const std::string& flag) { return flags.contains(flag); })) break;
    ++level;
  }
  if (x86) target.cpu = "x86-64-v" + std::to_string(level);
  for (const char* flag : kNotable)
    if (flags.contains(flag)) target.flags.emplace_back(flag);
}

std::string word_of(const fs::path& file) {
  std::string word;
  std::istringstream(head_of(file)) >> word;
  return word;
}

// "10de:2335" for each of NVIDIA's GPUs, with the name that its driver gives it where that is loaded.
void probe_gpus(const fs::path& root, bundle::Target& target) {
  std::map<std::string, int> kinds;
  std::error_code error;
  for (fs::directory_iterator it(root / "sys/bus/pci/devices", error), end; !error && it != end; it.increment(error)) {
    const fs::path device = it->path();
    if (word_of(device / "vendor") != "0x10de" || !word_of(device / "class").starts_with("0x03")) continue;
    const std::string information = head_of(root / "proc/driver/nvidia/gpus" / device.filename() / "information");
    const std::string model = profile_text(value_of(information, "Model"));
    const std::string number = word_of(device / "device");
    ++kinds[!model.empty() ? model : "10de:" + (number.starts_with("0x") ? number.substr(2) : number)];
  }
  for (const auto& [kind, count] : kinds)
    if (target.gpus.size() < kMaxKinds) target.gpus.push_back(profile_text(std::to_string(count) + " x " + kind));
}

// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ...": the first word of digits and
// dots. Where /proc has no such file, /sys/module may.
std::string driver_of(const fs::path& root) {
  std::istringstream words(head_of(root / "proc/driver/nvidia/version") + " " +
                           head_of(root / "sys/module/nvidia/version"));
  for (std::string word; words >> word;)
    if (word.size() >= 5 && word.size() <= 20 && std::count(word.begin(), word.end(), '.') >= 1 &&
        std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; }) &&
        std::isdigit(static_cast<unsigned char>(word.front())) != 0 && word.back() != '.')
      return word;
  return {};
}

}  // namespace

std::string head_of(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return {};
  std::string text(std::size_t{64} << 10, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

std::string profile_text(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\' && out.size() < bundle::kMaxProfileText) out += c;
  const std::size_t begin = out.find_first_not_of(' ');
  return begin == out.npos ? std::string() : out.substr(begin, out.find_last_not_of(' ') - begin + 1);
}

std::optional<std::uint64_t> probe_shared_memory(const fs::path& root) {
  struct stat folder {
  }, parent{};
  struct statvfs info {};
  const fs::path shared = root / "dev/shm";
  // A folder on the disk below it is no shared memory; in a container without a /dev of its own it is often that.
  if (::stat(shared.c_str(), &folder) != 0 || ::stat((root / "dev").c_str(), &parent) != 0 ||
      folder.st_dev == parent.st_dev || ::statvfs(shared.c_str(), &info) != 0)
    return std::nullopt;
  return std::uint64_t{info.f_blocks} * info.f_frsize;
}

void probe_hardware(const fs::path& root, bundle::Target& target) {
  probe_cpu(root, target);
  probe_gpus(root, target);
  target.driver = driver_of(root);
}

}  // namespace sealift::installer
