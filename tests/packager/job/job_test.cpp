// SPDX-License-Identifier: Apache-2.0
// Job files: what is read from a good one, and what each fault is answered with.
#include "packager/job/job.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/nearest.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using packager::Job;
using packager::read_job;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace {

const std::string kGood = R"(name = "air-gap"
version = 3
channel = "samples"
[target]
arch = "x86_64"
glibc = "2.28"
[python]
version = "3.11"
requirements = ["torch==2.11.0", "pip"]
imports = ["torch", "torch.nn"]
[[program]]
source = "bin/trainer"
into = "bin/sealift-train"
)";

struct JobFolder {
  TempDir dir;
  JobFolder() { write_file(dir / "bin/trainer", "#!/bin/sh\n"); }
  Job read(const std::string& text) const {
    write_file(dir / "job.toml", text);
    return read_job(dir / "job.toml");
  }
  Job read_with(const std::string& old_text, const std::string& new_text) const {
    std::string text = kGood;
    REQUIRE(text.find(old_text) != text.npos);
    return read(text.replace(text.find(old_text), old_text.size(), new_text));
  }
};

}  // namespace

TEST_CASE("a job file says what to pack and for which machine, with paths relative to itself") {
  const JobFolder folder;
  const Job job = folder.read(kGood);
  CHECK(job.name == "air-gap");
  CHECK(job.version == 3);
  CHECK(job.channel == "samples");
  CHECK(job.target.glibc == bundle::GlibcVersion{2, 28});
  CHECK(job.python == "3.11");
  CHECK(job.interpreter == "auto");
  CHECK(job.inputs.requirements == std::vector<std::string>{"torch==2.11.0", "pip"});
  CHECK(job.imports == std::vector<std::string>{"torch", "torch.nn"});
  REQUIRE(job.programs.size() == 1);
  CHECK(job.programs[0].source == folder.dir / "bin/trainer");
  CHECK(job.programs[0].executable);
}

TEST_CASE("the C library is the target's unless the job file says that one is carried") {
  const JobFolder folder;
  CHECK_FALSE(folder.read(kGood).carries_runtime);
  CHECK_FALSE(folder.read_with("glibc = \"2.28\"", "glibc = \"2.28\"\nruntime = \"target\"").carries_runtime);
  const Job job = folder.read_with("glibc = \"2.28\"", "glibc = \"2.28\"\nruntime = \"carried\"");
  CHECK(job.carries_runtime);
  CHECK(job.target.glibc == bundle::GlibcVersion{2, 28});  // still what the targets have
  CHECK_REFUSED(folder.read_with("glibc = \"2.28\"", "glibc = \"2.28\"\nruntime = \"musl\""), Usage,
                "target or carried");
}

TEST_CASE("a job may be for aarch64, and take its libraries from a system of that kind") {
  const JobFolder folder;
  const Job job = folder.read_with("\"x86_64\"", "\"aarch64\"");
  CHECK(job.target.arch == "aarch64");
  CHECK(job.system.empty());
  CHECK_REFUSED(folder.read_with("\"x86_64\"", "\"riscv64\""), Usage, "x86_64 or aarch64");
  CHECK_REFUSED(folder.read_with("\"x86_64\"", "\"aarch64\"\ncpu = \"x86-64-v3\""), Usage, "key 'target.cpu'");
  const std::string with_system = "\"aarch64\"\nsystem = \"arm\"";
  CHECK_REFUSED(folder.read_with("\"x86_64\"", with_system), Usage, "key 'target.system'");
  std::filesystem::create_directories(folder.dir / "arm/usr/lib");
  CHECK(folder.read_with("\"x86_64\"", with_system).system == folder.dir / "arm");
}

TEST_CASE("the payload's chunks are digested with SHA-256 unless the job file asks for SM3, and never with less") {
  const JobFolder folder;
  CHECK(folder.read(kGood).payload_digest == bundle::DigestAlgorithm::Sha256);
  CHECK(folder.read("payload_digest = \"sm3\"\n" + kGood).payload_digest == bundle::DigestAlgorithm::Sm3);
  for (const std::string name : {"md5", "sha1", "sha512", "SHA256", ""})
    CHECK_REFUSED(folder.read("payload_digest = \"" + name + "\"\n" + kGood), Usage, "sha256 or sm3");
}

TEST_CASE("libraries of the target's own are named, by patterns or by a folder of this machine") {
  const JobFolder folder;
  write_file(folder.dir / "cann/lib64/libhccl.so", "");
  write_file(folder.dir / "cann/lib64/libascendcl.so.1", "");
  write_file(folder.dir / "cann/lib64/readme.txt", "");
  write_file(folder.dir / "cann/lib64/libcrypto.so.3", "");  // the vendor's copy is not what Python's ssl finds
  std::filesystem::create_directory(folder.dir / "empty");
  const auto with = [&](const std::string& list) {
    std::string job = kGood;
    return folder.read(job.insert(job.find("[target]\n") + 9, "host_libraries = [" + list + "]\n")).host_libraries;
  };
  CHECK(with("\"libge_*.so\", \"cann/lib64\"") ==
        std::vector<std::string>{"libascendcl.so.1", "libge_*.so", "libhccl.so"});
  for (const char* wrong : {"\"*\"", "\"lib*\"", "\"lib\"", "\"libx y\"", "\"hccl.so\"", "\"\""})
    CHECK_REFUSED(with(wrong), Usage, "host_libraries");
  CHECK_REFUSED(with("\"empty/\""), Usage, "name the libraries themselves");
  CHECK_REFUSED(with("\"/no/such/folder\""), Usage, "name the libraries themselves");
}

TEST_CASE("a job without [python] has models, data, images or packages of a system, and nothing for an interpreter") {
  const JobFolder folder;
  write_file(folder.dir / "rows/a.jsonl", "{}\n");
  const std::string head = "name = \"rows\"\nversion = 1\n", target = "[target]\narch = \"x86_64\"\nglibc = \"2.28\"\n",
                    data = "[[data]]\nsource = \"rows\"\n";
  CHECK(folder.read(head + target + data).python.empty());
  CHECK_REFUSED(folder.read(head + target), Usage, "there is nothing to pack");
  CHECK_REFUSED(folder.read(head + target + data + "[[program]]\nsource = \"rows/a.jsonl\"\ninto = \"bin/a\"\n"), Usage,
                "add [python]");
  CHECK_REFUSED(folder.read(head + "sdk = true\n" + target + data), Usage, "add [python]");
  CHECK_REFUSED(folder.read(head + target + data + "[toolchain]\nc = true\n"), Usage, "add [python]");
  CHECK_REFUSED(folder.read(head + target + "runtime = \"carried\"\n" + data), Usage, "leave runtime out");
}

TEST_CASE("a program of ours is named, and brings what belongs to it out of an installation") {
  const JobFolder folder;
  const std::filesystem::path root = folder.dir / "installed";
  for (const char* file :
       {"bin/sealift-train", "bin/sealift-verify", "bin/sealift-repo", "lib/libsealift_train_cuda.so",
        "share/sealift/presets/b.toml", "share/sealift/presets/a.toml", "share/sealift/presets/a.txt"})
    write_file(root / file, "x");
  const std::string job = kGood.substr(0, kGood.find("[[program]]"));
  const auto named = [](const std::string& name) {
    return "[[program]]\nname = \"" + name + "\"\nfrom = \"installed\"\n";
  };
  const auto places = [&](const std::string& text) {
    std::string all;
    for (const packager::JobProgram& program : folder.read(job + text).programs)
      all += program.into + (program.executable ? "* " : " ");
    return all;
  };
  CHECK(places(named("sealift-repo")) == "bin/sealift-repo* ");
  CHECK(places(named("sealift-train") + named("sealift-verify")) ==
        "bin/sealift-train* lib/libsealift_train_cuda.so share/sealift/presets/a.toml share/sealift/presets/b.toml "
        "bin/sealift-verify* ");
  std::filesystem::remove(root / "lib/libsealift_train_cuda.so");
  CHECK(places(named("sealift-verify")) == "bin/sealift-verify* ");
  write_file(root / "libexec/sealift-verify", "what bin/sealift-verify starts");
  CHECK(folder.read(job + named("sealift-verify")).programs.front().source == root / "libexec/sealift-verify");
  CHECK(places(named("sealift-verify")) == "bin/sealift-verify* ");
  CHECK_REFUSED(folder.read(job + named("sealift-launch")), Usage, "--component tools");
  CHECK_REFUSED(folder.read(job + named("../sh")), Usage, "no program of this name");
  CHECK_REFUSED(folder.read(job + named("sealift-repo") + "into = \"bin/x\"\n"), Usage, "its own place");
  CHECK_REFUSED(folder.read(kGood + named("sealift-train")), Usage, "two programs have the same path");
  CHECK_REFUSED(folder.read(job + named("sealift-repo") + named("sealift-repo") + "form = 1\n"), Usage, "form");
}

TEST_CASE("a program of an archive or a .deb is taken from where the name in bin leads") {
  const JobFolder folder;
  const std::filesystem::path root = folder.dir / "installed", place = root / "lib/sealift/bin/sealift-repo";
  write_file(place, "x");
  std::filesystem::create_directories(root / "bin");
  std::filesystem::create_symlink("../lib/sealift/bin/sealift-repo", root / "bin/sealift-repo");
  const std::string job = kGood.substr(0, kGood.find("[[program]]"));
  const auto programs = folder.read(job + "[[program]]\nname = \"sealift-repo\"\nfrom = \"installed\"\n").programs;
  REQUIRE(programs.size() == 1);
  CHECK(programs.front().source == place);
  CHECK(programs.front().into == "bin/sealift-repo");
}

TEST_CASE("a C compiler that is asked for is one more requirement, unless the job has chosen its version") {
  const JobFolder folder;
  const std::string asked = "[toolchain]\nc = true\n";
  const std::vector<std::string> plain = {"torch==2.11.0", "pip"};
  CHECK(folder.read(kGood).inputs.requirements == plain);
  CHECK(folder.read(kGood + "[toolchain]\nc = false\n").inputs.requirements == plain);
  CHECK(folder.read(kGood + asked).inputs.requirements == std::vector<std::string>{"torch==2.11.0", "pip", "ziglang"});
  std::string text = kGood + asked;
  text.replace(text.find("\"pip\""), 5, "\"ZigLang >=0.14\"");
  const Job chosen = folder.read(text);
  CHECK(chosen.inputs.requirements == std::vector<std::string>{"torch==2.11.0", "ZigLang >=0.14"});
  CHECK_FALSE(chosen.toolchain.cxx);
  const Job both = folder.read(kGood + "[toolchain]\ncxx = true\n");  // brings the C compiler with it
  CHECK(both.toolchain.c);
  CHECK(both.toolchain.cxx);
  CHECK(both.inputs.requirements.back() == "ziglang");
  CHECK_REFUSED(folder.read(kGood + "[toolchain]\nc = false\ncxx = true\n"), Usage, "without its C compiler");
  CHECK_REFUSED(folder.read(kGood + "[toolchain]\nfortran = true\n"), Usage, "toolchain.fortran");
}

TEST_CASE("the C++ core is carried where the job says so, out of the folder that it names") {
  const JobFolder folder;
  CHECK_FALSE(folder.read(kGood).sdk);
  CHECK_FALSE(folder.read("sdk = false\n" + kGood).sdk);
  REQUIRE(folder.read("sdk = true\n" + kGood).sdk);
  CHECK(folder.read("sdk = true\n" + kGood).sdk->from.empty());
  CHECK(folder.read(kGood + "[sdk]\n").sdk->from.empty());
  CHECK(folder.read(kGood + "[sdk]\nfrom = \"../installed\"\n").sdk->from ==
        folder.dir.path().parent_path() / "installed");
  CHECK_REFUSED(folder.read(kGood + "[sdk]\nform = \"x\"\n"), Usage, "key 'sdk.form'");
  CHECK_REFUSED(folder.read("sdk = 1\n" + kGood), Usage, "sdk");
}

TEST_CASE("a job file with an unknown key is refused with its name and line") {
  const JobFolder folder;
  CHECK_REFUSED(folder.read_with("imports =", "import ="), Usage, "line 10, key 'python.import'");
  CHECK_REFUSED(folder.read_with("[target]", "colour = 1\n[target]"), Usage, "key 'colour'");
  CHECK_REFUSED(folder.read_with("into =", "mode = 1\ninto ="), Usage, "key 'program.mode'");
}

TEST_CASE("all wrong values and all unknown keys of all tables are told in one message") {
  const JobFolder folder;
  const auto check_told = [&](const std::string& text, const std::vector<std::string>& keys) {
    const bundle::Error error = sealift::test::refusal([&] { folder.read(text); });
    INFO(error.what());
    CHECK(error.code() == bundle::ErrorCode::Usage);
    CHECK(sealift::test::mentions(error, std::to_string(keys.size()) + " things in "));
    for (const std::string& key : keys) CHECK_MESSAGE(sealift::test::mentions(error, "key " + key), key);
  };
  check_told(R"(name = "a/b"
version = 0
chanel = "x"
payload_digest = "md5"
[target]
arch = "riscv64"
glibc = "1.0"
kernel = 5
driver = "1.0"
runtime = "musl"
overrule = ["all"]
colour = "red"
[python]
version = "2.7"
requirements = ["a\nb"]
requirements_file = "nowhere.txt"
groups = ["a/b"]
build = 1
index_strategy = "best"
indexes = [{ name = "a/b", url = "no" }]
torch_backend = "rocm"
imports = ["a b"]
wheel = 1
extra_build_variables = { demo = { "A B" = "x", PATH = "/x" } }
)",
             {"'name'",
              "'version'",
              "'chanel'",
              "'payload_digest'",
              "'target.arch'",
              "'target.glibc'",
              "'target.kernel'",
              "'target.driver'",
              "'target.runtime'",
              "'target.overrule'",
              "'target.colour'",
              "'python.version'",
              "'python.requirements'",
              "'python.requirements_file'",
              "'python.groups'",
              "'python.build'",
              "'python.index_strategy'",
              "'python.indexes.name'",
              "'python.indexes.url'",
              "'python.torch_backend'",
              "'python.imports'",
              "'python.wheel'",
              "'python.extra_build_variables.demo.A B'",
              "'python.extra_build_variables.demo.PATH'"});
  check_told(
      "name = \"air-gap\"\nversion = 3\n[target]\narch = \"x86_64\"\nglibc = \"2.28\"\n"
      "[python]\nversion = \"3.11\"\nrequirements = [\"pip\"]\n"
      R"([[program]]
source = "nowhere"
into = "../x"
mode = 1
[[owner]]
path = "../x"
package = "a b"
[[owner]]
path = "/y"
package = "b"
[[shared]]
package = "a b"
into = "/x"
[[startup]]
package = "a b"
sha256 = "x"
[[model]]
repo = "a/b/c"
revision = "../x"
endpoint = "ftp://x"
layout = "flat"
allow_pickle = 1
files = 1
[[data]]
source = "nowhere"
into = "../x"
[[image]]
source = "app"
tag = 1
colour = 1
[[golden]]
name = "Big"
result = "nowhere.json"
[apt]
packages = ["a b"]
suite = "b c"
[rpm]
packages = ["a b"]
release = "9 "
[[rpm.repository]]
name = "a b"
url = "no"
signed = "yes"
[toolchain]
c = 1
cxx = 2
[environment]
LD_PRELOAD = "x"
PATH = 1
)",
      {"'program.source'",
       "'program.into'",
       "'program.mode'",
       "'owner.path'",
       "'owner.package'",
       "'shared.package'",
       "'shared.into'",
       "'startup.package'",
       "'startup.sha256'",
       "'model.repo'",
       "'model.revision'",
       "'model.endpoint'",
       "'model.layout'",
       "'model.allow_pickle'",
       "'model.files'",
       "'data.source'",
       "'data.into'",
       "'image.source'",
       "'image.tag'",
       "'image.colour'",
       "'golden.name'",
       "'golden.result'",
       "'apt.packages'",
       "'apt.suite'",
       "'rpm.packages'",
       "'rpm.release'",
       "'rpm.repository.name'",
       "'rpm.repository.url'",
       "'rpm.repository.signed'",
       "'toolchain.c'",
       "'toolchain.cxx'",
       "'environment.LD_PRELOAD'",
       "'environment.PATH'",
       "'owner.path'"});
}

TEST_CASE("a mistyped key is named with the known key that it is nearest to, whichever of the two is missed first") {
  const JobFolder folder;
  CHECK_REFUSED(folder.read_with("channel =", "chanel ="), Usage, "'channel' perhaps");
  CHECK_REFUSED(folder.read_with("version = 3", "verison = 3"), Usage, "key 'verison'");
  CHECK_REFUSED(folder.read_with("version = 3", "verison = 3"), Usage, "'version' perhaps");
  CHECK_REFUSED(folder.read_with("requirements =", "requirments ="), Usage, "key 'python.requirments'");
  CHECK_REFUSED(folder.read_with("requirements =", "requirments ="), Usage, "'requirements' perhaps");
  CHECK_REFUSED(folder.read_with("[target]", "[taget]"), Usage, "'target' perhaps");
  CHECK_REFUSED(folder.read_with("source =", "origin ="), Usage, "a key is missing");  // no slip of the hand
  // Without the profile, which would have said both, the required keys are missing too.
  const JobFolder fleet;
  CHECK_REFUSED(fleet.read_with("arch = \"x86_64\"\nglibc = \"2.28\"", "profil = \"debian-12\""), Usage,
                "key 'target.profil'");
  CHECK(sealift::nearest("torhc", {"torch", "touch"}) == "torch");
  CHECK(sealift::nearest("torch", {"torch"}).empty());
  CHECK(sealift::nearest(std::string(100000, 'x'), {"version"}).empty());
}

TEST_CASE("a job file with a fault is refused with the place and what was expected") {
  const JobFolder folder;
  CHECK_REFUSED(folder.read_with("version = 3\n", ""), Usage, "key 'version'");
  CHECK_REFUSED(folder.read_with("version = 3\n", "version = \"3\"\n"), Usage, "a whole number");
  CHECK_REFUSED(folder.read_with("version = 3\n", "version = 0\n"), Usage, "start at 1");
  CHECK_REFUSED(folder.read_with("version = 3\n", "version = -1\n"), Usage, "negative");
  CHECK_REFUSED(folder.read_with("\"air-gap\"", "\"../etc\""), Usage, "not plain");
  CHECK_REFUSED(folder.read_with("\"x86_64\"", "\"sparc\""), Usage, "sparc");
  CHECK_REFUSED(folder.read_with("\"2.28\"", "\"new\""), Usage, "glibc");
  CHECK_REFUSED(folder.read_with("\"2.28\"", "\"2.5\""), Usage, "2.17 or newer");
  CHECK_REFUSED(folder.read_with("\"3.11\"", "\"3.11.2\""), Usage, "MAJOR.MINOR");
  CHECK_REFUSED(folder.read_with("\"pip\"]", "7]"), Usage, "an array of strings");
  CHECK_REFUSED(folder.read_with("requirements = [\"torch==2.11.0\", \"pip\"]\n", ""), Usage, "nothing to pack");
  CHECK_REFUSED(folder.read_with("\"torch.nn\"", "\"os; evil\""), Usage, "module name");
  CHECK_REFUSED(folder.read_with("bin/trainer", "bin/gone"), Usage, "bin/gone");
  CHECK_REFUSED(folder.read_with("bin/sealift-train", "../outside"), Usage, "program.into");
  CHECK_REFUSED(folder.read(kGood + "[[program]]\nsource = \"bin/trainer\"\ninto = \"bin/sealift-train\"\n"), Usage,
                "two programs");
  CHECK_REFUSED(folder.read_with("[target]", "[target"), Usage, "line 4");
  CHECK_REFUSED(read_job(folder.dir / "none.toml"), Missing, "none.toml");
}

TEST_CASE("several Pythons in one job are refused with the way to have them") {
  const JobFolder folder;
  const std::string table = "[python]\nversion = \"3.11\"\n";
  const bundle::Error several = test::refusal(
      [&] { folder.read_with(table, "[[python]]\nversion = \"3.12\"\n[[python]]\nversion = \"3.11\"\n"); });
  CHECK(several.code() == bundle::ErrorCode::Usage);
  CHECK(test::mentions(several, "job.toml"));
  CHECK(test::mentions(several, "a job has one Python"));
  CHECK(test::mentions(several, "[[python]] with version 3.12, 3.11"));
  CHECK(test::mentions(several, "a job file for each version"));
}

TEST_CASE("a job says which variables programs inside get, and which of ours are to be left out") {
  const JobFolder folder;
  const Job job =
      folder.read(kGood + "[environment]\nNLTK_DATA = \"${PREFIX}/data\"\nWANDB_MODE = false\nHF_A = \"\"\n");
  CHECK(job.variables.at("NLTK_DATA") == "${PREFIX}/data");
  CHECK(job.variables.at("HF_A") == "");
  CHECK_FALSE(job.variables.at("WANDB_MODE").has_value());
  const auto refused = [&](const std::string& line, const char* word) {
    CHECK_REFUSED(folder.read(kGood + "[environment]\n" + line + "\n"), Usage, word);
  };
  refused("LD_PRELOAD = \"x\"", "the loader's");
  refused("HF_A = true", "a string");
  refused("HF_A = 1", "a string");
  refused("HF_A = \"${HOME}\"", "${PREFIX} and ${CACHE}");
  refused("HF_A = \"a\\nb\"", "one line");
  refused("\"a b\" = \"c\"", "not the name of a variable");
  refused("GCONV_PATH = \"x\"", "set where the job is started");
  refused("PIP_INDEX_URL = \"x\"", "SITE_");
}
