// SPDX-License-Identifier: Apache-2.0
// [[model]] and [[data]] in a job file: what is read, what is filled in, what is refused.
#include <doctest/doctest.h>

#include <cstdlib>

#include "packager/tables/model_toml.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using test::TempDir;

namespace {

// A folder with a model beside a job file, and no hub in the environment but what a test puts there.
struct JobDesk {
  TempDir dir;
  JobDesk() {
    test::write_file(dir / "weights/tiny/config.json", "{}");
    ::unsetenv("HF_ENDPOINT");
    ::unsetenv("MODELSCOPE_DOMAIN");
    ::unsetenv("MODELSCOPE_ENDPOINT");
  }
  std::vector<JobModel> read(const std::string& text) const {
    const TomlValue document = parse_toml(text, "job.toml", bundle::ErrorCode::Usage);
    TomlTable table(document, "job.toml", bundle::ErrorCode::Usage);
    std::vector<JobModel> models = read_job_models(table, dir.path());
    table.done();
    return models;
  }
};

}  // namespace

TEST_CASE("a folder becomes a model below models/, and data goes below data/") {
  const JobDesk desk;
  const std::vector<JobModel> models =
      desk.read("[[model]]\nsource = \"weights/tiny/\"\n[[data]]\nsource = \"weights\"\nexclude = [\"*.tmp\"]\n");
  REQUIRE(models.size() == 2);
  CHECK(models[0].spec.hub == Hub::Folder);
  CHECK(models[0].spec.folder == desk.dir / "weights/tiny");
  CHECK(models[0].spec.into == "models/tiny");
  CHECK_FALSE(models[0].spec.allow_pickle);
  CHECK(models[1].spec.data);
  CHECK(models[1].spec.into == "data/weights");
  CHECK(models[1].exclude == std::vector<std::string>{"*.tmp"});
}

TEST_CASE("a repository comes from the hub that the job names, or else the environment") {
  const JobDesk desk;
  const std::string model = "[[model]]\nrepo = \"org/tiny\"\n";
  CHECK_REFUSED(desk.read(model), Usage, "HF_ENDPOINT in the environment");
  ::setenv("HF_ENDPOINT", "https://mirror.invalid/", 1);
  const ModelSpec spec = desk.read(model)[0].spec;
  CHECK(spec.endpoint == "https://mirror.invalid");
  CHECK(spec.revision == "main");
  CHECK(spec.into == "models/tiny");
  CHECK(spec.layout == ModelLayout::Folder);
  CHECK(desk.read(model + "endpoint = \"http://other.invalid:8080/hf\"\n")[0].spec.endpoint ==
        "http://other.invalid:8080/hf");
  CHECK(desk.read(model + "layout = \"both\"\nrevision = \"refs/pr/1\"\n")[0].spec.layout == ModelLayout::Both);
  ::unsetenv("HF_ENDPOINT");

  const std::string scope = model + "hub = \"modelscope\"\n";
  CHECK_REFUSED(desk.read(scope), Usage, "MODELSCOPE_ENDPOINT in the environment");
  ::setenv("MODELSCOPE_DOMAIN", "scope.invalid", 1);
  CHECK(desk.read(scope)[0].spec.endpoint == "https://scope.invalid");
  CHECK(desk.read(scope)[0].spec.revision == "master");
  ::setenv("MODELSCOPE_ENDPOINT", "http://127.0.0.1:8080/ms/", 1);  // the newer name counts
  CHECK(desk.read(scope)[0].spec.endpoint == "http://127.0.0.1:8080/ms");
  CHECK(desk.read(scope + "endpoint = \"https://other.invalid\"\n")[0].spec.endpoint == "https://other.invalid");
  ::setenv("MODELSCOPE_ENDPOINT", "scope.invalid", 1);
  CHECK(desk.read(scope)[0].spec.endpoint == "https://scope.invalid");
  ::setenv("MODELSCOPE_ENDPOINT", "https://name:word@scope.invalid", 1);
  CHECK_REFUSED(desk.read(scope), Usage, "not the address of a hub");
  ::unsetenv("MODELSCOPE_ENDPOINT");
  ::unsetenv("MODELSCOPE_DOMAIN");
}

TEST_CASE("a table that makes no sense is refused with its line and key") {
  const JobDesk desk;
  const std::string folder = "[[model]]\nsource = \"weights/tiny\"\n";
  const std::string hub = "[[model]]\nrepo = \"org/tiny\"\nendpoint = \"https://hub.invalid\"\n";
  CHECK(desk.read(folder).size() + desk.read(hub).size() == 2);
  CHECK_REFUSED(desk.read("[[model]]\ninto = \"models/x\"\n"), Usage, "comes from one place");
  CHECK_REFUSED(desk.read(folder + "repo = \"org/tiny\"\n"), Usage, "comes from one place");
  CHECK_REFUSED(desk.read("[[model]]\nsource = \"gone\"\n"), Usage, "the folder is not there");
  CHECK_REFUSED(desk.read(folder + "revision = \"main\"\n"), Usage, "for a repository");
  CHECK_REFUSED(desk.read(folder + "layout = \"hf-cache\"\n"), Usage, "only a repository");
  CHECK_REFUSED(desk.read(folder + "into = \"../x\"\n"), Usage, "line 3, key 'model.into'");
  for (const char* place :
       {"apt", "rpm/x", "share/sealift", "Share/Sealift/golden", "bin/sealift-train", "libexec/sealift"})
    CHECK_REFUSED(desk.read(folder + "into = \"" + place + "\"\n"), Usage, "have no place there");
  CHECK_REFUSED(desk.read(folder + "format = \"x\"\n"), Usage, "a key is not known");
  CHECK_REFUSED(desk.read(folder + "[[data]]\nsource = \"weights\"\ninto = \"Models/Tiny\"\n"), Usage,
                "the same folder");
  CHECK_REFUSED(desk.read(hub + "hub = \"other\"\n"), Usage, "hf or modelscope");
  CHECK_REFUSED(desk.read(hub + "layout = \"flat\"\n"), Usage, "hf-cache");
  CHECK_REFUSED(desk.read(hub + "layout = \"tree\"\n"), Usage, "only a folder is carried as one archive");
  CHECK(desk.read(folder + "layout = \"tree\"\n")[0].spec.layout == ModelLayout::Tree);
  CHECK_REFUSED(desk.read(hub + "revision = \"../..\"\n"), Usage, "not a branch");
  const std::string scope = hub + "hub = \"modelscope\"\n";
  CHECK(desk.read(scope + "layout = \"both\"\n")[0].spec.layout == ModelLayout::Both);
  CHECK(desk.read(scope + "layout = \"modelscope-cache\"\n")[0].spec.layout == ModelLayout::ModelScopeCache);
  CHECK_REFUSED(desk.read(scope + "layout = \"hf-cache\"\n"), Usage, "folder, modelscope-cache or both");
  CHECK_REFUSED(desk.read(hub + "layout = \"modelscope-cache\"\n"), Usage, "folder, hf-cache or both");
  CHECK_REFUSED(desk.read(folder + "layout = \"both\"\n"), Usage, "folder or tree");
  CHECK_REFUSED(desk.read(scope + "layout = \"both\"\nrevision = \"a/b\"\n"), Usage, "no place in ModelScope's cache");
  CHECK(desk.read(scope + "revision = \"a/b\"\n")[0].spec.revision == "a/b");
  for (const char* repo : {"", "a/b/c", "../x", "org/", "org/na me", "org/x?y"})
    CHECK_REFUSED(desk.read("[[model]]\nendpoint = \"https://h.invalid\"\nrepo = \"" + std::string(repo) + "\"\n"),
                  Usage, "name of a repository");
  for (const char* endpoint :
       {"hub.invalid", "ftp://hub.invalid", "https://user:pass@hub.invalid", "https://h.invalid/?x"})
    CHECK_REFUSED(desk.read("[[model]]\nrepo = \"org/tiny\"\nendpoint = \"" + std::string(endpoint) + "\"\n"), Usage,
                  "address of a hub");
}
