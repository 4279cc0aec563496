// SPDX-License-Identifier: Apache-2.0
// What [python] may ask for, what is refused, and the words that uv gets for it.
#include "packager/job/python_inputs.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace {

struct ProjectFolder {
  TempDir dir;
  ProjectFolder() {
    for (const char* name : {"reqs.txt", "pyproject.toml", "uv.lock", "pylock.toml", "pylock.gpu.toml", "other.lock"})
      write_file(dir / name, "");
  }
  PythonInputs read(const std::string& text) const {
    const TomlValue document = parse_toml(text, "job.toml", bundle::ErrorCode::Usage);
    TomlTable table(document, "job.toml", bundle::ErrorCode::Usage);
    PythonInputs inputs = read_python_inputs(table, dir.path());
    table.done();
    return inputs;
  }
};

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("packages can be asked for as requirements, a file of them, or a project with extras and groups") {
  const ProjectFolder folder;
  const PythonInputs inputs = folder.read(
      "requirements = [\"torch\", \"-e ./mine\"]\nrequirements_file = \"reqs.txt\"\npyproject = \"pyproject.toml\"\n"
      "extras = [\"train\"]\ngroups = [\"dev\"]\nconstraints = [\"torch<3\"]\nbuild_constraints = "
      "[\"setuptools<80\"]\nbuild = false\n");
  CHECK(inputs.requirements == Words{"torch", "-e ./mine"});
  CHECK(*inputs.requirements_file == folder.dir / "reqs.txt");
  CHECK(*inputs.pyproject == folder.dir / "pyproject.toml");
  CHECK(inputs.extras == Words{"train"});
  CHECK(inputs.groups == Words{"dev"});
  CHECK(inputs.constraints == Words{"torch<3"});
  CHECK(inputs.build_constraints == Words{"setuptools<80"});
  CHECK_FALSE(inputs.build);
  CHECK(folder.read("requirements = [\"torch\"]").build);
}

TEST_CASE("a lock is taken alone, and told by its name") {
  const ProjectFolder folder;
  CHECK(folder.read("lock_file = \"uv.lock\"\nextras = [\"x\"]").is_uv_lock());
  CHECK_FALSE(folder.read("lock_file = \"pylock.gpu.toml\"\nrequirements = [\"./mine\"]").is_uv_lock());
  CHECK_REFUSED(folder.read("lock_file = \"other.lock\""), Usage, "uv.lock, pylock.toml or");
  CHECK_REFUSED(folder.read("lock_file = \"gone.lock\""), Usage, "gone.lock");
  CHECK_REFUSED(folder.read("lock_file = \"uv.lock\"\nrequirements_file = \"reqs.txt\""), Usage, "taken as it is");
  CHECK_REFUSED(folder.read("lock_file = \"uv.lock\"\nconstraints = [\"a<1\"]"), Usage, "taken as it is");
  CHECK(folder.read("lock_file = \"pylock.toml\"\nextras = [\"x\"]").extras == Words{"x"});
}

TEST_CASE("a package can be left out, and the build of one can be given more than its project asks for") {
  const ProjectFolder folder;
  const std::string asked = "requirements = [\"a\"]\n";
  const PythonInputs inputs = folder.read(asked +
                                          "excludes = [\"PyNvVideoCodec\"]\n[extra_build_dependencies]\nFlash_Attn = "
                                          "[\"torch==2.11.0\", \"psutil\"]\n[extra_build_variables.flash-attn]\n"
                                          "MAX_JOBS = \"2\"\nHEADERS = \"${BUILD}/torch/include\"\n");
  CHECK(inputs.excludes == Words{"pynvvideocodec"});
  REQUIRE(inputs.builds.size() == 1);
  const BuildExtras& extras = inputs.builds.at("flash-attn");
  CHECK(extras.requirements == Words{"torch==2.11.0", "psutil"});
  CHECK(extras.variables.at("MAX_JOBS") == "2");
  CHECK(extras.variables.size() == 2);
  CHECK_REFUSED(folder.read(asked + "excludes = [\"a b\"]"), Usage, "name of a package");
  CHECK_REFUSED(folder.read(asked + "extra_build_dependencies = { x = [\"a\\nb\"] }"), Usage, "one line each");
  const auto refused = [&](const std::string& variable, const char* why) {
    CHECK_REFUSED(folder.read(asked + "[extra_build_variables.x]\n" + variable + "\n"), Usage, why);
  };
  refused("LD_PRELOAD = \"x\"", "the loader's");
  refused("SOURCE_DATE_EPOCH = \"1\"", "so that they can be repeated");
  refused("HERE = \"${PREFIX}/x\"", "${BUILD} alone");
}

TEST_CASE("indexes are told to uv in the order in which they are asked") {
  const ProjectFolder folder;
  const PythonInputs inputs = folder.read(
      "requirements = [\"a\"]\ndefault_index = \"https://mirror.invalid/simple\"\nindex_strategy = \"first-index\"\n"
      "indexes = [{ name = \"ours\", url = \"https://ours.invalid/simple\" }, { url = \"file:///srv/simple\" }]\n");
  CHECK(index_words(inputs) == Words{"--default-index", "https://mirror.invalid/simple", "--index",
                                     "ours=https://ours.invalid/simple", "--index", "file:///srv/simple",
                                     "--index-strategy", "first-index"});
  CHECK(index_words(folder.read("requirements = [\"a\"]")).empty());
  const PythonInputs named = folder.read(
      "requirements = [\"a\"]\ndefault_index = { name = \"ours\", url = \"https://ours.invalid/simple\" }\n");
  CHECK(index_words(named) == Words{"--default-index", "ours=https://ours.invalid/simple"});  // for its variables
}

TEST_CASE("an index with a password in its address is refused, since the address is written down") {
  const ProjectFolder folder;
  CHECK_REFUSED(folder.read("requirements = [\"a\"]\ndefault_index = \"https://me:secret@ours.invalid/simple\""), Usage,
                "holds a password");
  const bundle::Error refused = test::refusal(
      [&] { folder.read("requirements = [\"a\"]\nindexes = [{ url = \"https://me:secret@ours.invalid/simple\" }]"); });
  CHECK_FALSE(test::mentions(refused, "secret"));
}

TEST_CASE("an index that others can answer for is warned of, and what was asked is locked without its password") {
  const ProjectFolder folder;
  const auto warned = [&](const std::string& toml) {
    std::string all;
    for (const std::string& line : index_warnings(locked_indexes(folder.read("requirements = [\"a\"]\n" + toml))))
      all += line + "\n";
    return all;
  };
  CHECK(warned("default_index = \"https://a.invalid/simple\"").empty());
  CHECK(warned("default_index = \"http://a.invalid/simple\"").find("plain http") != std::string::npos);
  const std::string two = "indexes = [{ name = \"ours\", url = \"http://b.invalid/x\" }]\n";
  CHECK(warned(two).find("the index http://b.invalid/x is asked by plain http") != std::string::npos);
  CHECK(warned(two).find("dependency confusion") == std::string::npos);
  CHECK(warned(two + "index_strategy = \"unsafe-best-match\"").find("dependency confusion") != std::string::npos);
  ::setenv("UV_DEFAULT_INDEX", "https://me:secret@c.invalid/simple", 1);
  const PythonInputs inputs = folder.read("requirements = [\"a\"]\n" + two);
  CHECK(locked_indexes(inputs) == LockedIndexes{.default_index = "https://c.invalid/simple",
                                                .others = {"ours=http://b.invalid/x"},
                                                .strategy = ""});
  CHECK(index_words(inputs) == Words{"--index", "ours=http://b.invalid/x"});  // uv reads the variable itself
  ::unsetenv("UV_DEFAULT_INDEX");
}

TEST_CASE("inputs with a fault are refused with their key") {
  const ProjectFolder folder;
  const std::string good = "requirements = [\"a\"]\n";
  CHECK_REFUSED(folder.read(""), Usage, "nothing to pack");
  CHECK_REFUSED(folder.read("requirements = [\"a\\n--index-url https://evil.invalid\"]"), Usage, "one line each");
  CHECK_REFUSED(folder.read(good + "constraints = [\"a\\nb\"]"), Usage, "'constraints'");
  CHECK_REFUSED(folder.read(good + "extras = [\"x\"]"), Usage, "only a project");
  CHECK_REFUSED(folder.read(good + "groups = [\"x\"]"), Usage, "'groups'");
  CHECK_REFUSED(folder.read("pyproject = \"pyproject.toml\"\nextras = [\"--all\"]"), Usage, "not plain");
  CHECK_REFUSED(folder.read(good + "pyproject = \"gone.toml\""), Usage, "gone.toml");
  CHECK_REFUSED(folder.read(good + "default_index = \"ftp://x.invalid\""), Usage, "address of an index");
  CHECK_REFUSED(folder.read(good + "indexes = [{ name = \"a b\", url = \"https://x.invalid\" }]"), Usage, "not plain");
  CHECK_REFUSED(folder.read(good + "indexes = [{ url = \"https://x.invalid\", key = 1 }]"), Usage, "'indexes.key'");
  CHECK_REFUSED(folder.read(good + "index_strategy = \"best\""), Usage, "first-index");
}

TEST_CASE("a backend of torch is one of uv's words, and a mirror is asked for it by its own address") {
  const ProjectFolder folder;
  const std::string job = "requirements = [\"torch\"]\n";
  CHECK(index_words(folder.read(job)) == Words{});
  CHECK(index_words(folder.read(job + "torch_backend = \"cu128\"")) == Words{"--torch-backend", "cu128"});
  const PythonInputs mirror =
      folder.read(job +
                  "torch_backend = \"cu126\"\ntorch_index = \"https://mirror.example/whl/\"\n[[indexes]]\nurl = "
                  "\"https://other.example/simple\"");
  CHECK(index_words(mirror) ==
        Words{"--index", "https://mirror.example/whl/cu126", "--index", "https://other.example/simple"});
  CHECK(index_words(locked_indexes(mirror)) == index_words(mirror));
  for (const char* name : {"cuda", "cu", "CU128", "rocm6.4", "cu12800000"})
    CHECK_REFUSED(folder.read(job + "torch_backend = \"" + name + "\""), Usage, "auto, cpu or like cu128");
  CHECK_REFUSED(folder.read(job + "torch_index = \"https://mirror.example/whl\""), Usage, "with a backend only");
}
