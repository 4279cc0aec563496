// SPDX-License-Identifier: Apache-2.0
// Each part is a process of its own, so that one cannot break the next; so they run beside each other on idle cores.
// The cheapest and most telling one begins first.
#include "installer/trial/self_check.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>

#include "installer/trial/bare_environment.hpp"
#include "installer/trial/load_check.hpp"
#include "installer/trial/self_check_scripts.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/host/child_process.hpp"
#include "sealift/bundle/native/host_libraries.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr int kNotPossible = 77;  // a script's exit code for it
constexpr std::size_t kMaxNamed = 5;
constexpr const char* kTrainer = "bin/sealift-train";
constexpr const char* kVerifier = "bin/sealift-verify";
constexpr int kNothingRun = 2;  // the verifier's exit code where no check could be run

[[noreturn]] void fail(const std::string& command, std::string expected, std::string got,
                       const std::string& or_else = "") {
  throw Error(ErrorCode::SelfTest, {.what = "what was built does not work; the generation in use was not touched",
                                    .where = command,
                                    .expected = std::move(expected),
                                    .got = std::move(got),
                                    .next = "send this message to who packed the bundle" + or_else});
}

constexpr const char* kOrWaive =
    "; or, where you know that nothing here needs such a file, name each with the reason, which the receipt keeps: "
    "apply --waive 'PATH=REASON'";

// A waiver that was mistyped, or is left from an older bundle, would look like one that was used.
void require_native(const std::vector<bundle::Waiver>& waivers, const std::vector<ElfPlace>& files) {
  for (const bundle::Waiver& waiver : waivers)
    if (std::none_of(files.begin(), files.end(), [&](const ElfPlace& file) { return file.path == waiver.path; }))
      throw Error(ErrorCode::Usage,
                  {.what = "a waiver names no native file of this bundle; the generation in use was not touched",
                   .where = "--waive " + waiver.path,
                   .expected = "the path of a library or program, as the self-test's message names it",
                   .got = "none of the " + std::to_string(files.size()) + " native files has this path",
                   .next = "correct the path, or leave the waiver out; only a file that does not load can be waived"});
}

std::string import_statement(const std::vector<std::string>& modules) {
  std::string text = "import ";
  for (const std::string& module : modules) text += (&module == &modules.front() ? "" : ", ") + module;
  return text;
}

std::string listed(const std::vector<LoadReport::Unloaded>& files) {
  std::string text;
  for (std::size_t i = 0; i < files.size() && i < kMaxNamed; ++i)
    text += (i == 0 ? "" : "; ") + files[i].path + " (" + files[i].reason + ")";
  return files.size() > kMaxNamed ? text + "; and " + std::to_string(files.size() - kMaxNamed) + " more" : text;
}

class Checker {
 public:
  Checker(const bundle::Environment& environment, const Layout& layout, const fs::path& generation,
          const fs::path& scratch, const SelfCheckOptions& options)
      : environment_(environment),
        layout_(layout),
        generation_(generation),
        scratch_(scratch),
        options_(options),
        interpreter_(environment.interpreter.below(generation)) {}

  SelfCheck run() {
    result_.imports = environment_.imports;
    const auto brought = layout_.find(environment_.interpreter.text());
    if (brought != layout_.end() && brought->second.origin->wheel)
      fail(environment_.interpreter.text(), "an interpreter that an entry of the bundle places",
           "a program of " + brought->second.origin->owner);
    const bool only_imports = options_.depth == SelfCheckOptions::Depth::Imports;
    run_parts(only_imports ? 1 : kParts.size());
    if (options_.depth != SelfCheckOptions::Depth::Training) return result_;
    timed("training", result_, [&] { train(); });
    timed("verification", result_, [&] { verify(); });
    return result_;
  }

 private:
  struct Part {
    const char* name;
    void (Checker::*run)(SelfCheck& to, const fs::path& scratch) const;
  };
  static const std::array<Part, 3> kParts;

  template <class Work>
  static void timed(const char* name, SelfCheck& to, const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
    to.took.push_back({.part = name, .milliseconds = static_cast<std::uint64_t>(took)});
  }

  // The first `count`, each with a result of its own; these are put together in their order.
  void run_parts(std::size_t count) {
    std::array<SelfCheck, kParts.size()> results;
    std::array<std::exception_ptr, kParts.size()> failures;
    try {
      bundle::parallel_for(options_.threads, count, [&](std::size_t i) {
        try {
          const fs::path scratch = scratch_ / ("part" + std::to_string(i));
          fs::create_directory(scratch);
          timed(kParts[i].name, results[i], [&] { (this->*kParts[i].run)(results[i], scratch); });
        } catch (...) {
          failures[i] = std::current_exception();
          throw;  // so that nothing more is begun
        }
      });
    } catch (...) {
      for (const std::exception_ptr& failure : failures)
        if (failure) std::rethrow_exception(failure);
      throw;
    }
    for (SelfCheck& part : results) take(std::move(part));
  }
  void take(SelfCheck part) {
    result_.milliseconds += part.milliseconds;
    result_.steps.insert(result_.steps.end(), part.steps.begin(), part.steps.end());
    result_.waived.insert(result_.waived.end(), part.waived.begin(), part.waived.end());
    result_.took.insert(result_.took.end(), part.took.begin(), part.took.end());
  }

  // What a wheel brings under a name is not what that step is about.
  bool places(const std::string& path) const {
    const auto there = layout_.find(path);
    return there != layout_.end() && there->second.type != Place::Type::Folder && !there->second.origin->wheel;
  }
  bundle::Child python(const std::string& code, const fs::path& scratch,
                       const std::vector<std::string>& more = {}) const {
    bundle::Child child{.arguments = {interpreter_.string(), "-I", "-B", "-c", code},
                        .environment = bare_environment(interpreter_, scratch),
                        .patience = options_.patience};
    child.arguments.insert(child.arguments.end(), more.begin(), more.end());
    return child;
  }
  static void add(SelfCheck& to, std::string name, bool passed, std::string detail) {
    to.steps.push_back({.name = std::move(name), .passed = passed, .detail = std::move(detail)});
  }

  void import_modules(SelfCheck& to, const fs::path& scratch) const {
    if (environment_.imports.empty()) return;
    const std::string code = import_statement(environment_.imports);
    const bundle::Child child = python(code, scratch);
    const bundle::ChildEnd end = bundle::run_child(child);
    if (!end.good())
      fail(environment_.interpreter.text() + " -I -B -c \"" + code + "\"", "the modules to be imported",
           end.text(child));
    to.milliseconds = end.milliseconds;
  }

  void load_native_files(SelfCheck& to, const fs::path& scratch) const {
    const std::vector<ElfPlace> files = elf_files(layout_, generation_, options_.arch);
    require_native(options_.waivers, files);
    if (files.empty()) return add(to, "native files", false, "there is none");
    if (!places(environment_.interpreter.text()))
      return add(to, "native files", false, "the bundle brings no interpreter to load them with");
    LoadReport report = load_check(files, generation_, interpreter_, scratch, options_.patience, of_host());
    const std::string unneeded = waive(report.broken, to);
    if (!report.broken.empty())
      fail(report.broken.front().path, "every native file to load, or to wait for the GPU's driver",
           std::to_string(report.broken.size()) + " of " + std::to_string(report.files) +
               " do not load: " + listed(report.broken),
           kOrWaive);
    add(to, "native files", true,
        std::to_string(report.loaded) + " of " + std::to_string(report.files) + " libraries and programs load" +
            unneeded);
    if (!report.host.empty()) add(to, "files that need this machine's own libraries", false, listed(report.host));
    if (!report.driver.empty()) add(to, "files that need a driver", false, listed(report.driver));
    if (!report.plugins.empty()) add(to, "plugins that nothing here needs", false, listed(report.plugins));
  }

  std::vector<std::string> of_host() const {
    constexpr std::uint64_t kMostText = 1 << 20;
    const fs::path file = generation_ / bundle::kHostLibrariesPlace;
    if (!places(std::string(bundle::kHostLibrariesPlace))) return {};
    return bundle::parse_host_libraries(bundle::read_text(file, kMostText), file.string());
  }

  // Takes out of `broken` what is waived, and names the waivers that nothing needed.
  std::string waive(std::vector<LoadReport::Unloaded>& broken, SelfCheck& to) const {
    std::string unneeded;
    for (const bundle::Waiver& waiver : options_.waivers) {
      const auto found =
          std::find_if(broken.begin(), broken.end(), [&](const auto& file) { return file.path == waiver.path; });
      if (found == broken.end()) {
        unneeded += (unneeded.empty() ? "; waivers that were not needed: " : ", ") + waiver.path;
        continue;
      }
      to.waived.push_back({.path = found->path, .fault = found->reason, .reason = waiver.reason});
      broken.erase(found);
    }
    return unneeded;
  }

  void all_reduce(SelfCheck& to, const fs::path& scratch) const {
    const char* const name = "all-reduce of two ranks";
    const std::string torch = environment_.site_packages.text() + "/torch/";
    if (!layout_.contains(torch + "__init__.py") || !layout_.contains(torch + "distributed/__init__.py"))
      return add(to, name, false, "the bundle brings no torch");
    const bundle::Child child = python(kAllReduceScript, scratch, {scratch.string()});
    const bundle::ChildEnd end = bundle::run_child(child);
    if (!end.late && end.exit_code == kNotPossible)
      return add(to, name, false, end.errors.substr(0, end.errors.find('\n')));
    if (!end.good()) fail("an all-reduce of two ranks over Gloo", "both ranks to get the sum", end.text(child));
    add(to, name, true, "Gloo over the loopback, " + std::to_string(end.milliseconds) + " ms");
  }

  void train() {
    if (!places(kTrainer)) return add(result_, "training", false, std::string("the bundle places no ") + kTrainer);
    const bundle::Child child{.arguments = {(generation_ / kTrainer).string(), "run", "--steps", "2", "--ranks", "1",
                                            "--threads", "1", "--out", (scratch_ / "training").string()},
                              .environment = bare_environment(generation_ / kTrainer, scratch_),
                              .patience = options_.patience};
    const bundle::ChildEnd end = bundle::run_child(child);
    if (!end.good()) fail(std::string(kTrainer) + " run --steps 2", "two steps of training", end.text(child));
    add(result_, "training", true,
        "two steps of " + std::string(kTrainer) + ", " + std::to_string(end.milliseconds) + " ms");
  }

  // Only what needs no finished generation: its record is written after this.
  void verify() {
    const char* const name = "verification";
    if (!places(kVerifier)) return add(result_, name, false, std::string("the bundle places no ") + kVerifier);
    const bundle::Child child{
        .arguments = {(generation_ / kVerifier).string(), "run", "--level", "quick", "--only", "arithmetic", "--only",
                      "communication", "--only", "training", "--out", (scratch_ / "verification").string()},
        .environment = bare_environment(generation_ / kVerifier, scratch_),
        .patience = options_.patience};
    const bundle::ChildEnd end = bundle::run_child(child);
    if (!end.late && end.exit_code == kNothingRun) return add(result_, name, false, end.text(child));
    if (!end.good()) fail(std::string(kVerifier) + " run --level quick", "every check to pass", end.text(child));
    add(result_, name, true,
        std::string(kVerifier) + " run --level quick, " + std::to_string(end.milliseconds) + " ms");
  }

  const bundle::Environment& environment_;
  const Layout& layout_;
  const fs::path& generation_;
  const fs::path& scratch_;
  const SelfCheckOptions& options_;
  const fs::path interpreter_;
  SelfCheck result_;
};

const std::array<Checker::Part, 3> Checker::kParts = {{{"imports", &Checker::import_modules},
                                                       {"native files", &Checker::load_native_files},
                                                       {"all-reduce", &Checker::all_reduce}}};

}  // namespace

SelfCheck self_check(const bundle::Environment& environment, const Layout& layout, const fs::path& generation,
                     const fs::path& scratch, const SelfCheckOptions& options) {
  return Checker(environment, layout, generation, scratch, options).run();
}

bundle::Json to_json(const SelfCheck& test) {
  bundle::Json steps = bundle::Json::array();
  for (const SelfCheck::Step& step : test.steps)
    steps.push_back({{"name", step.name}, {"passed", step.passed}, {"detail", step.detail}});
  bundle::Json json = {{"imports", test.imports}, {"milliseconds", test.milliseconds}, {"steps", std::move(steps)}};
  for (const SelfCheck::Waived& file : test.waived)
    json["waived"].push_back({{"path", file.path}, {"fault", file.fault}, {"reason", file.reason}});
  return json;
}

SelfCheck self_check_from(bundle::JsonObject object) {
  SelfCheck test;
  for (const bundle::Json& module : object.array("imports", 1000))
    test.imports.push_back(module.is_string() ? module.get<std::string>() : "");
  test.milliseconds = object.integer("milliseconds");
  if (object.has("steps"))  // older records have none
    for (const bundle::Json& json : object.array("steps", 100)) {
      bundle::JsonObject step(json, object.where() + ".steps");
      test.steps.push_back(
          {.name = step.string("name"), .passed = step.boolean("passed"), .detail = step.string("detail", 1 << 20)});
      step.done();
    }
  if (object.has("waived"))
    for (const bundle::Json& json : object.array("waived", bundle::kMaxWaivers)) {
      bundle::JsonObject file(json, object.where() + ".waived");
      test.waived.push_back({.path = file.string("path"),
                             .fault = file.string("fault", 1 << 20),
                             .reason = file.string("reason", bundle::kMaxWaiverReason)});
      file.done();
    }
  object.done();
  return test;
}

}  // namespace sealift::installer
