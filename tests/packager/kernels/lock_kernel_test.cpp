// SPDX-License-Identifier: Apache-2.0
// A kernel from a made hub: its variant's files, the layout and the variables for each loader, and what is refused.
#include "packager/kernels/lock_kernel.hpp"

#include <doctest/doctest.h>

#include "packager/kernels/kernel_files.hpp"
#include "packager/kernels/kernel_metadata.hpp"
#include "packager/tables/kernel_toml.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_hub.hpp"

using namespace sealift;
using namespace sealift::packager;
namespace fs = std::filesystem;

namespace {

const std::string kMetadata =
    R"({"id":"_tiny_1","name":"tiny","version":1,"python-depends":[],"backend":{"type":"cpu"}})";
const std::string kCpu = "build/torch211-cxx11-cpu-x86_64-linux/";

struct KernelDesk {
  test::TempDir dir;
  test::TinyHub hub;
  Cache cache{dir / "cache"};
  std::string loader = "0.15.2";
  std::string torch = "2.11.0+cpu";
  std::string revision = "v1";
  std::string arch = "x86_64";
  test::ModelFiles files = {{"README.md", "a kernel"},
                            {kCpu + "__init__.py", "answer = 42\n"},
                            {kCpu + "__pycache__/__init__.cpython-311.pyc", "old"},
                            {kCpu + "_tiny.abi3.so", std::string(5000, 'e')},
                            {kCpu + "metadata.json", kMetadata},
                            {"build/torch211-cxx11-cu128-x86_64-linux/__init__.py", "answer = 43\n"},
                            {"build/torch210-cxx11-cpu-x86_64-linux/__init__.py", "answer = 44\n"}};

  KernelDesk() { hub.large = {kCpu + "_tiny.abi3.so"}; }
  std::vector<LockedKernel> lock(const std::vector<std::string>& revisions, std::FILE* stream = nullptr) {
    const std::string kind = bundle::Version::leading(loader) < bundle::Version{.minor = 14} ? "models" : "kernels";
    std::vector<ModelSpec> asked;
    for (const std::string& one : revisions) {
      hub.publish("org/tiny", files, kind, one);
      asked.push_back({.hub = Hub::HfHub, .endpoint = hub.endpoint(), .repo = "org/tiny", .revision = one});
    }
    std::vector<LockedWheel> wheels;
    for (const auto& [name, version] : {std::pair("kernels", loader), std::pair("torch", torch)})
      if (!version.empty())
        wheels.push_back({.name = name, .version = version, .file_name = {}, .url = {}, .sha256 = {}});
    bundle::Progress progress(stream);
    return lock_kernels(asked, wheels, arch, cache, progress,
                        {.jobs = 2, .attempts = 2, .first_pause = std::chrono::milliseconds(1)});
  }
  std::vector<LockedKernel> lock() { return lock({revision}); }
  // Several repositories of these files, each of which is asked for at v1.
  std::vector<LockedKernel> lock_repositories(const std::vector<std::string>& names) {
    std::vector<ModelSpec> asked;
    for (const std::string& name : names) {
      hub.publish(name, files, bundle::Version::leading(loader) < bundle::Version{.minor = 14} ? "models" : "kernels",
                  "v1");
      asked.push_back({.hub = Hub::HfHub, .endpoint = hub.endpoint(), .repo = name, .revision = "v1"});
    }
    std::vector<LockedWheel> wheels;
    for (const auto& [name, version] : {std::pair("kernels", loader), std::pair("torch", torch)})
      wheels.push_back({.name = name, .version = version, .file_name = {}, .url = {}, .sha256 = {}});
    bundle::Progress progress(nullptr);
    return lock_kernels(asked, wheels, arch, cache, progress,
                        {.jobs = 2, .attempts = 2, .first_pause = std::chrono::milliseconds(1)});
  }
};

std::vector<std::string> places_of(const LockedKernel& kernel) {
  std::vector<std::string> places;
  for (const Content& content : contents_of(kernel)) places.push_back(content.into);
  return places;
}

std::vector<ModelSpec> read_job(const std::string& text) {
  const TomlValue document = parse_toml(text, "job.toml", bundle::ErrorCode::Usage);
  TomlTable table(document, "job.toml", bundle::ErrorCode::Usage);
  return read_job_kernels(table);
}

std::vector<LockedKernel> reread(const std::string& text) {
  const TomlValue document = parse_toml(text, "x.lock.toml", bundle::ErrorCode::Format);
  TomlTable table(document, "x.lock.toml", bundle::ErrorCode::Format);
  return read_locked_kernels(table);
}

}  // namespace

TEST_CASE("of a kernel's repository the files of one variant are carried, in the cache, with the ref of the version") {
  KernelDesk desk;
  const std::vector<LockedKernel> kernels = desk.lock();
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].variant == "torch211-cxx11-cpu-x86_64-linux");
  const std::string root = "hub/kernels--org--tiny/", snapshot = root + "snapshots/" + desk.hub.commit + "/" + kCpu;
  CHECK(places_of(kernels[0]) == std::vector<std::string>{snapshot + "__init__.py", snapshot + "_tiny.abi3.so",
                                                          snapshot + "metadata.json", root + "refs/v1"});
  for (const Content& content : contents_of(kernels[0])) {
    CHECK((content.kind == Content::Kind::Program) == content.into.starts_with(snapshot));
    if (content.kind == Content::Kind::Program) CHECK(desk.cache.contains(content.sha256));  // lock checks them
  }
  CHECK(kernel_variables(kernels) == bundle::Variables{{"KERNELS_CACHE", "${PREFIX}/hub"}});
  CHECK(reread(write_locked_kernels(kernels)) == kernels);
}

TEST_CASE("loaders before 0.15.1 are led to a kernel by LOCAL_KERNELS, and those before 0.14 ask for a model") {
  KernelDesk desk;
  desk.loader = "0.13.0";
  const std::vector<LockedKernel> kernels = desk.lock();
  const std::string place = "hub/models--org--tiny/snapshots/" + desk.hub.commit;
  CHECK(places_of(kernels[0])[0] == place + "/" + kCpu + "__init__.py");
  CHECK(kernel_variables(kernels).at("LOCAL_KERNELS") == "org/tiny=${PREFIX}/" + place);
  CHECK(reread(write_locked_kernels(kernels)) == kernels);
  CHECK_REFUSED(desk.lock({"v1", "main"}), Usage, "one revision");
  desk.loader = "0.14.1";
  CHECK(kernel_variables(desk.lock()).at("LOCAL_KERNELS").find("hub/kernels--org--tiny/") != std::string::npos);
  desk.loader = "0.15.2";
  CHECK(desk.lock({"v1", "main"}).size() == 2);
}

TEST_CASE("more kernels than LOCAL_KERNELS can name are refused for a loader that needs it, and for no other") {
  KernelDesk desk;
  const std::vector<std::string> three = {"kernels-community/one", "kernels-community/two", "kernels-community/three"};
  desk.loader = "0.13.0";
  CHECK(desk.lock_repositories({three[0], three[1]}).size() == 2);
  CHECK_REFUSED(desk.lock_repositories(three), Usage, "for 3 kernels");
  desk.loader = "0.15.2";
  CHECK(desk.lock_repositories(three).size() == 3);
}

TEST_CASE("a kernel that the environment's loader cannot load is refused, with what there is") {
  KernelDesk desk;
  desk.torch = "2.12.0+cpu";
  CHECK_REFUSED(desk.lock(), Platform, "no variant of a kernel fits");
  CHECK_REFUSED(desk.lock(), Platform, "torch 2.12 (cpu), x86_64, kernels 0.15.2");
  CHECK_REFUSED(desk.lock(), Platform, "torch210-cxx11-cpu-x86_64-linux");
  desk.torch = "2.11.0+cpu";
  desk.arch = "aarch64";
  CHECK_REFUSED(desk.lock(), Platform, "aarch64");
  desk.arch = "x86_64";
  desk.loader = "0.12.3";
  CHECK_REFUSED(desk.lock(), Missing, "kernels>=0.15.1");
  desk.loader = "";
  CHECK_REFUSED(desk.lock(), Missing, "nothing loads them");
  desk.loader = "0.15.2";
  desk.files.erase(kCpu + "metadata.json");
  CHECK_REFUSED(desk.lock(), Format, "metadata.json");
  desk.loader = "0.13.0";
  CHECK(desk.lock().size() == 1);
  desk.files.erase(kCpu + "__init__.py");
  CHECK_REFUSED(desk.lock(), Format, "no module");
}

TEST_CASE("what a kernel's metadata asks for is looked at: a newer loader, another kernel, a package") {
  KernelDesk desk;
  std::string& metadata = desk.files[kCpu + "metadata.json"];
  metadata = R"({"kernels-minver": "0.16.0"})";
  CHECK_REFUSED(desk.lock(), Format, "kernels>=0.16.0");
  metadata = R"({"kernel-depends": [{"repo-id": "org/two", "version": 3}]})";
  CHECK(desk.lock().size() == 1);  // this loader does not follow them
  desk.loader = "0.17.2";
  CHECK_REFUSED(desk.lock(), Format, "add [[kernel]] with repo = \"org/two\" and revision = \"v3\"");
  metadata = R"({"kernel-depends": {}})";
  CHECK_REFUSED(desk.lock(), Format, "not a list");
  metadata = R"({"python-depends": ["einops"]})";
  std::FILE* const told = std::tmpfile();
  CHECK(desk.lock({"v1"}, told).size() == 1);
  std::rewind(told);
  std::string said(2000, '\0');
  said.resize(std::fread(said.data(), 1, said.size(), told));
  std::fclose(told);
  CHECK(said.find("asks for the package einops") != std::string::npos);
  for (const std::string bad :
       {"[]", "{", R"({"a": 1, "a": 2})", R"({"python-depends": [1]})", R"({"kernel-depends": [{"version": 1}]})",
        R"({"kernel-depends": [{"repo-id": "a"}]})"}) {
    INFO(bad);
    metadata = bad;
    CHECK_REFUSED(desk.lock(), Format, "metadata");
  }
}

TEST_CASE("a job's kernel names a repository and a revision, once") {
  const std::string hub = "endpoint = \"http://127.0.0.1:1\"\n";
  const auto kernels = read_job("[[kernel]]\nrepo = \"org/tiny\"\nrevision = \"v1\"\n" + hub);
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].repo == "org/tiny");
  CHECK_REFUSED(read_job("[[kernel]]\nrepo = \"org/tiny\"\n" + hub), Usage, "needs a revision");
  CHECK_REFUSED(read_job("[[kernel]]\nrepo = \"../tiny\"\nrevision = \"v1\"\n" + hub), Usage, "not the name");
  CHECK_REFUSED(read_job("[[kernel]]\nrepo = \"org/tiny\"\nrevision = \"../v1\"\n" + hub), Usage, "not a branch");
  CHECK_REFUSED(read_job("[[kernel]]\nrepo = \"org/tiny\"\nrevision = \"v1\"\nlayout = \"folder\"\n" + hub), Usage,
                "layout");
  const std::string one = "[[kernel]]\nrepo = \"org/tiny\"\nrevision = \"v1\"\n" + hub;
  CHECK_REFUSED(read_job(one + one), Usage, "named twice");
}

TEST_CASE("a lock's kernel lies in its variant's folder, whatever somebody wrote into the lock") {
  KernelDesk desk;
  const std::string good = write_locked_kernels(desk.lock());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    return bad;
  };
  CHECK_REFUSED(reread(with(kCpu + "__init__", "build/other/__init__")), Format, "variant's folder");
  CHECK_REFUSED(reread(with(kCpu + "__init__", kCpu + "../../x")), Format, "");
  CHECK_REFUSED(reread(with("variant = \"torch211", "variant = \"../torch211")), Format, "");
  CHECK_REFUSED(reread(with(desk.hub.commit, "main")), Format, "not a commit");
}
