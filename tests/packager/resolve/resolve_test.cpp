// SPDX-License-Identifier: Apache-2.0
// What is asked of uv and what is made of its answer; uv itself is played by a script, but for one test.
#include "packager/resolve/resolve.hpp"
#include "packager/resolve/prereleases.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

#include "packager/host/uv.hpp"
#include "packager/resolve/need_chains.hpp"
#include "packager/resolve/pylock.hpp"
#include "packager/resolve/uv_refusal.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_wheel.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace {

void write_script(const std::filesystem::path& path, const std::string& text) {
  write_file(path, "#!/bin/sh\n" + text);
  std::filesystem::permissions(path, std::filesystem::perms(0755));
}

UvPython python_beside(const std::filesystem::path& uv, const std::filesystem::path& python = "/python") {
  const std::filesystem::path folder = uv.parent_path() / "uv-python";
  std::filesystem::remove_all(folder);
  return UvPython(python, "3.11.2", folder);
}

Resolution resolve(const Job& job, const std::filesystem::path& uv, const std::filesystem::path& folder,
                   SourceFacts& facts) {
  return packager::resolve(job, uv, python_beside(uv), folder, facts);
}

// As a job's first question: nothing is known of sources.
Resolution resolve(const Job& job, const std::filesystem::path& uv, const std::filesystem::path& folder) {
  SourceFacts facts;
  return resolve(job, uv, folder, facts);
}

Job small_job() {
  Job job{.file = "job.toml",
          .name = "demo",
          .version = 1,
          .target = {.arch = "x86_64", .glibc = {2, 36}},
          .python = "3.11"};
  job.inputs.requirements = {"demo"};
  return job;
}

}  // namespace

TEST_CASE("uv is asked for the target, relative to the job file, with a Python that runs nothing") {
  const TempDir dir;
  write_script(dir / "uv", "echo \"$@\" > " + (dir / "asked").string() +
                               "\nwhile [ \"$1\" != -o ]; do shift; done\necho answer > \"$2\"\n");
  Job job = small_job();
  CHECK(resolve(job, dir / "uv", dir / "out").pylock == "answer\n");
  const std::string asked = read_file(dir / "asked");
  CHECK(asked.find("--python-platform x86_64-manylinux_2_36 --python-version 3.11.2 ") != asked.npos);
  CHECK(asked.find("--directory " + std::filesystem::current_path().string()) != asked.npos);
  CHECK(asked.find(" --python " + (dir / "uv-python/python").string() + " ") != asked.npos);
  CHECK(asked.find(" --no-build-isolation") != asked.npos);
  CHECK(asked.find("-binary") == asked.npos);
  CHECK(asked.find(" --no-config") != asked.npos);
  CHECK(std::filesystem::is_empty(dir / "out"));

  SUBCASE("a level that uv does not know becomes the nearest older one") {
    job.target.glibc = {2, 30};
    resolve(job, dir / "uv", dir.path());
    CHECK(read_file(dir / "asked").find("x86_64-manylinux_2_28 ") != std::string::npos);
    job.target.glibc = {2, 41};
    resolve(job, dir / "uv", dir.path());
    CHECK(read_file(dir / "asked").find("x86_64-manylinux_2_40 ") != std::string::npos);
  }
  SUBCASE("a job without builds gets what has wheels") {
    job.inputs.build = false;
    resolve(job, dir / "uv", dir.path());
    CHECK(read_file(dir / "asked").find(" --only-binary :all: ") != std::string::npos);
  }
}

TEST_CASE("where uv would run the code of a source it has a question, with who needs that source") {
  const TempDir dir;
  // As uv 0.13 says it.
  write_script(dir / "uv", R"(cat >&2 <<'END'
warning: something else
error: Failed to build `Class_Properties==0.2.0`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta:__legacy__.prepare_metadata_for_build_wheel` failed (exit status: 1)

         [stderr]
         )" + std::string(kRunsNothing) +
                               R"(

hint: `Class_Properties` (v0.2.0) was included because `mine` (v4.2.3) depends on `datafiles[x]>=2.1, <3.0` (v2.6) which depends on `classproperties>=0.2, <0.3`
END
exit 2
)");
  SourceFacts facts;
  const Resolution resolution = resolve(small_job(), dir / "uv", dir / "out", facts);
  REQUIRE(resolution.question);
  CHECK(resolution.question->name == "class-properties");
  CHECK(resolution.question->version == "0.2.0");
  CHECK(resolution.question->needed_by == "datafiles 2.6, for mine 4.2.3");
  CHECK(resolution.pylock.empty());
  CHECK(facts.direct.empty());
  SUBCASE("and a build that failed for another reason is none") {
    write_script(dir / "uv", "echo 'error: Failed to build `a==1`' >&2; exit 1\n");
    CHECK_REFUSED(resolve(small_job(), dir / "uv", dir / "out"), Io, "Failed to build `a==1`");
  }
  SUBCASE("a source without a name is refused") {
    write_script(dir / "uv",
                 "echo 'error: The build backend returned an error: " + std::string(kRunsNothing) + "' >&2; exit 1\n");
    CHECK_REFUSED(resolve(small_job(), dir / "uv", dir / "out"), Usage, "NAME @");
  }
}

TEST_CASE("the Python that uv gets tells uv about itself and runs nothing else") {
  const std::filesystem::path uv = SEALIFT_UV_BESIDE, python = "/usr/bin/python3.11";
  if (!std::filesystem::exists(uv) || !std::filesystem::exists(python)) {
    sealift::test::left_out("needs uv (cmake/prerequisites.sh) and ", python.string());
    return;
  }
  const TempDir dir;
  const UvPython given = python_beside(dir / "uv", python);
  const std::string marker = (dir / "was-run").string(), code = "open('" + marker + "', 'w').close()";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-c", code}, {"-I", "-c", code}, {"-m", "pip"}, {}}) {
    std::vector<std::string> command = {given.path().string()};
    command.insert(command.end(), words.begin(), words.end());
    const ProcessResult result = run_process(command);
    CHECK(result.exit_code == 1);
    CHECK(result.err.find(kRunsNothing) != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(marker));
  const ProcessResult asked =
      run_process({given.path().string(), "-I", "-B", "-c", "import sys; print(sys.executable)"});
  CHECK(asked.out == given.path().string() + "\n");  // what uv would start to run a build
  given.require_silence(uv, dir.path());
  SUBCASE("a uv that runs code nevertheless is not used") {
    std::filesystem::remove_all(dir / "canary");
    write_script(dir / "uv", "touch " + (dir / "canary/sang").string() + "; echo '" + std::string(kRunsNothing) +
                                 "' >&2; exit 1\n");
    CHECK_REFUSED(given.require_silence(dir / "uv", dir.path()), CannotCheck, "it ran a project's code");
  }
  SUBCASE("and so is one that answers by other words") {
    std::filesystem::remove_all(dir / "canary");
    write_script(dir / "uv", "exit 0\n");
    CHECK_REFUSED(given.require_silence(dir / "uv", dir.path()), CannotCheck, "runs only the Python");
  }
  SUBCASE("a Python without distutils, as Debian 11 has it, is told to get it") {
    std::filesystem::remove_all(dir / "canary");
    write_script(dir / "uv", "echo 'cause: Python installation is missing `distutils`, which is' >&2; exit 2\n");
    CHECK_REFUSED(given.require_silence(dir / "uv", dir.path()), Missing, "apt install python3-distutils");
  }
}

TEST_CASE("what uv warns of is kept") {
  CHECK(warnings_in("Using CPython 3.11\nwarning: `a==1` is yanked (reason: \"bad\")\nResolved 2 packages\n"
                    "  warning: of a build\nwarning: The package `b==2` does not have an extra named `c`") ==
        std::vector<std::string>{"`a==1` is yanked (reason: \"bad\")",
                                 "The package `b==2` does not have an extra named `c`"});
}

TEST_CASE("that uv runs another Python than the carried one is no warning") {
  CHECK(warnings_in("warning: The requested Python version 3.11.9 is not available; 3.11.2 will be used to build "
                    "dependencies instead.\n")
            .empty());
}

TEST_CASE("every package without a wheel is listed, though uv names one at a time") {
  const TempDir dir;
  // Complains about the first of two names whose source it may not take.
  write_script(dir / "uv", R"(
sources=' '
while [ $# -gt 0 ]; do
  case "$1" in --no-binary) sources="$sources$2 "; shift;; -o) out=$2; shift;; esac
  shift
done
for name in oss2 crcmod; do
  if [ "${sources#* $name }" = "$sources" ]; then
    echo "Because app==1 depends on $name-extra and app==2.0 depends on $name, no" >&2
    echo "hint: Wheels are required for \`$name\` because building from source is disabled" >&2
    exit 1
  fi
done
echo 'lock-version = "1.0"' > $out
)");
  Job job = small_job();
  job.inputs.build = false;
  SourceFacts facts;
  CHECK_REFUSED(resolve(job, dir / "uv", dir.path(), facts), Platform,
                "oss2 (needed by app==2.0), crcmod (needed by app==2.0)");
  CHECK(facts.of_indexes == std::set<std::string>{"crcmod", "oss2"});
  CHECK(facts.direct.empty());
}

TEST_CASE(
    "uv is told so much of sources that it has nothing to build, and may build nothing that a job names directly") {
  SourceFacts facts{.of_indexes = {"crcmod", "oss2"},
                    .direct = {"mine", "other"},
                    .built = {{.name = "oss2", .version = "2.0", .requires_dist = {"crcmod>=1; extra == \"x\""}},
                              {.name = "mine", .version = "1.5", .requires_dist = {"oss2"}, .extras = {"x"}}}};
  CHECK(facts.has_unknown());
  const std::string text = write_source_facts(facts);
  const auto says = [&](const std::string& lines) {
    return text.find("[[dependency-metadata]]\n" + lines) != text.npos;
  };
  CHECK(says("name = \"crcmod\"\nrequires-dist = []"));
  CHECK(says("name = \"oss2\"\nrequires-dist = []"));  // of versions that were not built
  CHECK(says("name = \"oss2\"\nversion = \"2.0\"\nrequires-dist = [\"crcmod>=1; extra == \\\"x\\\"\"]"));
  CHECK(says("name = \"mine\"\nversion = \"1.5\"\nrequires-dist = [\"oss2\"]\nprovides-extra = [\"x\"]"));
  CHECK(says("name = \"other\"\nversion = \"0\"\nrequires-dist = []"));
  CHECK(source_words(facts) ==
        std::vector<std::string>{"--only-binary", ":all:", "--no-binary", "crcmod", "--no-binary", "oss2"});
  facts.built[1].requires_dist = {"OSS2[x] @ file:///home/me/oss2"};
  CHECK(source_words(facts) == std::vector<std::string>{"--only-binary", ":all:", "--no-binary", "crcmod"});
  CHECK_REFUSED(metadata_of("m", "1", "Requires-Dist: a\n b\n"), Format, "a line break");
}

TEST_CASE("a folder of which nothing is known yet is asked for without dependencies, and is never uv's to build") {
  const TempDir dir;
  write_script(dir / "uv", "echo \"$@\" >> " + (dir / "asked").string() + R"(
case "$*" in *--no-deps*) ;; *) echo 'error: Failed to build `Mine @ file:///x`' >&2; exit 1;; esac
while [ "$1" != -o ]; do shift; done
echo answer > "$2"
)");
  SourceFacts facts;
  resolve(small_job(), dir / "uv", dir / "out", facts);
  CHECK(facts.direct == std::set<std::string>{"mine"});
  CHECK(facts.of_indexes.empty());
  CHECK(read_file(dir / "asked").find("--no-binary") == std::string::npos);
}

TEST_CASE("uv gets none of our variables but those that it needs, and those that decide are named") {
  const TempDir dir;
  write_script(dir / "uv",
               "env > " + (dir / "seen").string() + "\nwhile [ \"$1\" != -o ]; do shift; done\necho answer > \"$2\"\n");
  for (const char* name : {"SEALIFT_PASSPHRASE", "HF_TOKEN", "UV_INDEX", "UV_FIND_LINKS", "PIP_INDEX_URL", "PYTHONPATH",
                           "TAR_OPTIONS", "GIT_SSH_COMMAND", "LD_PRELOAD_X", "UV_INDEX_MINE_PASSWORD", "https_proxy"})
    ::setenv(name, "given", 1);
  resolve(small_job(), dir / "uv", dir / "out");
  CHECK(ignored_uv_variables() == std::vector<std::string>{"UV_FIND_LINKS", "UV_INDEX"});
  const std::string seen = read_file(dir / "seen");
  for (const char* name : {"SEALIFT_PASSPHRASE", "HF_TOKEN", "UV_INDEX", "UV_FIND_LINKS", "PIP_INDEX_URL", "PYTHONPATH",
                           "TAR_OPTIONS", "GIT_SSH_COMMAND", "LD_PRELOAD_X"}) {
    CHECK_MESSAGE(seen.find(std::string(name) + "=") == seen.npos, name);
    ::unsetenv(name);
  }
  for (const char* name : {"UV_INDEX_MINE_PASSWORD", "https_proxy"}) {
    CHECK_MESSAGE(seen.find(std::string(name) + "=given") != seen.npos, name);
    ::unsetenv(name);
  }
}

TEST_CASE("projects, constraints and indexes are passed on to uv") {
  const TempDir dir;
  write_script(dir / "uv",
               "echo \"$@\" > " + (dir / "asked").string() +
                   "\nfor word; do case \"$word\" in *constraints.txt|*excludes.txt) cat \"$word\";; esac; done > " +
                   (dir / "constraints").string() + "\nwhile [ \"$1\" != -o ]; do shift; done\necho answer > \"$2\"\n");
  write_file(dir / "pyproject.toml", "");
  Job job = small_job();
  job.inputs.pyproject = dir / "pyproject.toml";
  job.inputs.extras = {"gpu"};
  job.inputs.groups = {"dev"};
  job.inputs.constraints = {"torch<3"};
  job.inputs.build_constraints = {"setuptools<80"};
  job.inputs.excludes = {"pynvvideocodec"};
  job.inputs.default_index = "https://mirror.invalid/simple";
  resolve(job, dir / "uv", dir.path());
  const std::string asked = read_file(dir / "asked"), project = (dir / "pyproject.toml").string();
  CHECK(asked.find(project + " --extra gpu --group " + project + ":dev --constraints ") != asked.npos);
  CHECK(asked.find(" --default-index https://mirror.invalid/simple ") != asked.npos);
  CHECK(read_file(dir / "constraints") == "torch<3\npynvvideocodec\n");
  CHECK(asked.find(" --excludes ") != asked.npos);
}

TEST_CASE("a lock that the job brings is resolved again for the target, without dependencies and with its hashes") {
  const TempDir dir;
  const std::string digest(64, 'a');
  // Answers both as `uv export` and as `uv pip compile`.
  write_script(dir / "uv",
               "if [ \"$1\" = export ]; then text='demo==1 --hash=sha256:" + digest +
                   "'; else text=\"$*\"; fi\nwhile [ \"$1\" != -o ]; do shift; done\necho \"$text\" > \"$2\"\n");
  Job job = small_job();
  job.inputs.requirements.clear();
  SUBCASE("of uv") {
    write_file(dir / "uv.lock", "");
    job.inputs.lock_file = dir / "uv.lock";
  }
  SUBCASE("of PEP 751") {
    write_file(dir / "pylock.toml",
               "lock-version = \"1.0\"\n[[packages]]\nname = \"demo\"\nversion = \"1\"\nwheels = [{ url = "
               "\"https://x.invalid/demo-1-py3-none-any.whl\", hashes = { sha256 = \"" +
                   digest + "\" } }]\n");
    job.inputs.lock_file = dir / "pylock.toml";
  }
  const Resolution resolution = resolve(job, dir / "uv", dir / "out");
  CHECK(resolution.pylock.find(" --no-deps ") != std::string::npos);
  CHECK(resolution.pylock.find("locked.txt") != std::string::npos);
  CHECK(resolution.pylock.find("requirements.in") == std::string::npos);  // empty, and uv would warn of it
  REQUIRE(resolution.hashes.contains("demo"));
  CHECK(resolution.hashes.at("demo").begin()->hex() == digest);
}

TEST_CASE("who needs what is read from uv's annotations, and followed up to the job") {
  const TempDir dir;
  write_script(dir / "uv",
               "echo \"crcmod==1.7   # via oss2\"\necho \"app==1 # via -c /x/constraints.txt, -r $3\"\n"
               "echo \"oss2==2 # via -c /x/constraints.txt, app\"\necho \"Mine_Own @ file:///x # via -r $3, app\"\n");
  const auto needs = who_needs(small_job(), dir / "uv", python_beside(dir / "uv"), {});
  CHECK(needs.at("crcmod") == "oss2, for app, for the job");
  CHECK(needs.at("app") == "the job");
  CHECK(needs.at("oss2") == "app, for the job");
  CHECK(needs.at("mine-own") == "the job; also by app");
  write_script(dir / "uv", "exit 1\n");
  CHECK(who_needs(small_job(), dir / "uv", python_beside(dir / "uv"), {}).empty());
}

TEST_CASE("the way to a package is the shortest, and ends in a circle too") {
  const auto chains = need_chains({{"deep", {"far", "near"}},
                                   {"far", {"near"}},
                                   {"near", {"the job"}},
                                   {"lonely", {"round"}},
                                   {"round", {"lonely", "round"}},
                                   {"unsaid", {}}});
  CHECK(chains.at("deep") == "near, for the job; also by far");
  CHECK(chains.at("far") == "near, for the job");
  CHECK(chains.at("lonely") == "round");
  CHECK(chains.at("round") == "lonely; also by round");
  CHECK_FALSE(chains.contains("unsaid"));
}

TEST_CASE("without builds a pre-release is not taken for its wheel where the releases are sources") {
  CHECK(is_prerelease("0.3.1.dev5"));
  CHECK(is_prerelease("2.0rc1"));
  CHECK_FALSE(is_prerelease("1.0.post1"));
  CHECK_FALSE(is_prerelease("2.11.0+cu130"));
  const TempDir dir;
  // As uv 0.13 answers: of `betas` there are pre-releases alone.
  write_script(dir / "uv", R"(
case "$*" in
  *"--prerelease disallow"*)
    case "$*" in *speedy.in*) echo 'hint: Wheels are required for `speedy` because building from source is disabled' >&2;; esac
    exit 1;;
  *"--no-binary speedy"*) version=0.19.8;;
  *) version=0.3.1.dev5;;
esac
while [ "$1" != -o ]; do shift; done
[ ! -e "$2" ] || exit 3
printf '[[packages]]\nname = "speedy"\nversion = "%s"\n[[packages]]\nname = "betas"\nversion = "0.6b2"\n' $version > "$2"
)");
  Job job = small_job();
  job.inputs.build = false;
  CHECK_REFUSED(resolve(job, dir / "uv", dir / "out"), Platform, "speedy");
  SUBCASE("a job may ask for it") {
    job.inputs.requirements = {"speedy==0.3.1.dev5"};
    CHECK(resolve(job, dir / "uv", dir / "out").pylock.find("0.3.1.dev5") != std::string::npos);
  }
}

TEST_CASE("uv's own words are shown when it finds no solution") {
  const TempDir dir;
  write_script(dir / "uv", "echo 'no version of demo' >&2; exit 1\n");
  CHECK_REFUSED(resolve(small_job(), dir / "uv", dir.path()), Io, "no version of demo");
}

TEST_CASE("each cause for which uv finds no packages has a code and a next step of its own") {
  using bundle::ErrorCode;
  const std::string none = "error: No solution found when resolving dependencies\n  cause: Because ";
  const std::vector<std::pair<std::string, ErrorCode>> said = {
      // as uv 0.13 says it
      {none + "nosuch was not found in the package registry and you require nosuch, we can conclude that your "
              "requirements are unsatisfiable.",
       ErrorCode::Missing},
      {none + "there is no version of foo==9 and you require foo==9, we can conclude that your requirements are "
              "unsatisfiable.",
       ErrorCode::Conflict},
      {"error: No solution found when resolving dependencies\n  cause: you require foo<1 and foo>1, which are "
       "incompatible",
       ErrorCode::Conflict},
      {none + "the requested Python version (>=3.8) does not satisfy Python>=3.9 and foo==1 depends on Python>=3.9",
       ErrorCode::Platform},
      {"error: Couldn't parse requirement in `r.in` at position 0\n  cause: no such comparison operator",
       ErrorCode::Usage},
      {"error: Failed to fetch: http://127.0.0.1:9/simple/foo/\n  cause: tcp connect error", ErrorCode::Network},
      {none + "foo was not found in the cache and you require foo\n\nhint: Packages were unavailable because the "
              "network was disabled.",
       ErrorCode::Network},
      {"error: Git operation failed\n  cause: failed to clone into: /x", ErrorCode::Network},
      {"error: Distribution not found at: file:///x/nofolder", ErrorCode::Missing},
      {"thread 'main' panicked", ErrorCode::Io},
      {"memory allocation of 417792 bytes failed\nstack backtrace:", ErrorCode::Io}};
  std::map<ErrorCode, std::set<std::string>> next;
  for (const auto& [text, code] : said) {
    CAPTURE(text);
    CHECK(refusal_of(text).code == code);
    next[code].insert(refusal_of(text).next);
  }
  CHECK(next.size() == 6);
  for (const auto& [code, steps] : next)
    for (const auto& [other, others] : next)
      if (code != other)
        for (const std::string& step : steps) CHECK_FALSE(others.contains(step));
  CHECK(refusal_of(said.back().first).next.find("one may have no end") != std::string::npos);
}

TEST_CASE("a limit of a server, a wheel that uv cannot read and an archive that it cannot unpack are told apart") {
  const std::string file = "error: Failed to fetch: http://h.invalid/f/demo-1.0+cu12-py3-none-any.whl",
                    url = file.substr(24);
  const std::string limit = "\n  cause: HTTP status client error (429 Too Many Requests) for url (" + url + ")";
  CHECK(std::string(refusal_of(file + limit).what).find("limits how often") != std::string::npos);
  CHECK_FALSE(unread_wheel_in(file + limit));
  const auto missing = [](const std::string& status) { return "\n  cause: HTTP status client error (" + status + ")"; };
  CHECK(unread_wheel_in(file + missing("404 Not Found")) == url);
  CHECK(unread_wheel_in(file + ".metadata" + missing("404 Not Found")) == url);
  CHECK(unread_wheel_in(file + ".metadata" + missing("403 Forbidden")) == url);
  CHECK_FALSE(unread_wheel_in(file + missing("403 Forbidden")));
  CHECK_FALSE(unread_wheel_in("error: Failed to fetch: http://h.invalid/simple/demo/" + missing("404 Not Found")));
  const std::string build = "error: Failed to download and build `src==1.0`\n  cause: ";
  REQUIRE(question_in(build + "Failed to extract archive: src==1.0\n  cause: Invalid gzip header"));
  CHECK(question_in(build + "Failed to extract archive: src==1.0")->title() == "src 1.0");
  CHECK_FALSE(question_in(build + "the build backend returned an error"));
}

TEST_CASE("a server that wants a login is told from one that is not reached, and by its address") {
  const std::string none =
      "error: No solution found when resolving dependencies\n  cause: Because foo was not found in the "
      "package registry and you require foo, …\n\nhint: An index ";
  const std::vector<std::string> said = {
      none +
          "URL (https://h.invalid/simple) could not be queried due to a lack of valid authentication credentials (401 "
          "Unauthorized)",
      none + "(https://h.invalid/simple) returned a 403 Forbidden error. Check that the index URL is correct",
      "error: Failed to fetch: `https://h.invalid/simple`\n  cause: HTTP status client error (401 Unauthorized) for "
      "url "
      "(https://h.invalid/simple)"};
  for (const std::string& text : said) {
    CAPTURE(text);
    CHECK(refusal_of(text).code == bundle::ErrorCode::Network);
    CHECK(std::string(refusal_of(text).what).find("login") != std::string::npos);
    CHECK(closed_server(text) == "https://h.invalid/simple");
  }
  CHECK(closed_server("error: Failed to fetch: http://127.0.0.1:9/simple/foo/\n  cause: tcp connect error").empty());
}

TEST_CASE("403 of an index is told as what is not there or wants a login; of a file, as a login") {
  const UvRefusal index = refusal_of(
      "error: No solution found when resolving dependencies\n\nhint: An index (https://h.invalid/simple) returned a "
      "403 Forbidden error. Check that the index URL is correct and the credentials are valid.");
  CHECK(index.or_login);
  CHECK(index.next.find("index_strategy = \"unsafe-first-match\"") != std::string::npos);
  CHECK(index.next.find("network") == std::string::npos);
  CHECK_FALSE(refusal_of("error: Failed to fetch: `https://h.invalid/a.whl`\n  cause: HTTP status client error (403 "
                         "Forbidden) for url (https://h.invalid/a.whl)")
                  .or_login);
}

TEST_CASE("an address that a package names is told with the constraint that allows it") {
  const UvRefusal refused = refusal_of(  // as uv 0.13 says it
      "error: Failed to resolve dependencies for package `urldep==1.0`\n  cause: Package `other` was included as a URL "
      "dependency. URL dependencies must be expressed as direct requirements or constraints. Consider adding `other @ "
      "https://h.invalid/a \"b\".whl` to your dependencies or constraints file.\n");
  CHECK(refused.code == bundle::ErrorCode::Usage);
  CHECK(refused.next.find("constraints = [\"other @ https://h.invalid/a \\\"b\\\".whl\"]") != std::string::npos);
}

TEST_CASE("a build for one CUDA that no index has is told to have an index of its own") {
  const auto told = [](const std::string& version) {
    return refusal_of(
        "error: No solution found when resolving dependencies\n  cause: Because there is no version of torch==" +
        version + " and you require torch==" + version +
        ", we can conclude that your requirements are "
        "unsatisfiable.");
  };
  CHECK(told("2.11.0+cu126").next.find("torch_backend = \"cu126\"") != std::string::npos);
  CHECK(told("2.11.0+cpu").next.find("torch_backend = \"cpu\"") != std::string::npos);
  CHECK(told("2.11.0+cu126").code == bundle::ErrorCode::Missing);
  for (const char* other : {"2.11.0", "2.11.0+rocm6.4", "2.11.0+cu", "2.11.0+local"})
    CHECK(told(other).next.find("torch_backend") == std::string::npos);
}

TEST_CASE("uv is named, or found, or missed with advice") {
  CHECK_REFUSED(find_uv("/no/such/uv"), Missing, "--uv");
}

TEST_CASE("network: the real uv resolves a small package for an older target") {
  if (std::getenv("SEALIFT_TEST_NETWORK") == nullptr) return;  // set by the test that is labelled `network`
  const std::filesystem::path uv =
      std::getenv("SEALIFT_UV") != nullptr ? std::getenv("SEALIFT_UV") : find_program("uv");
  const std::filesystem::path python = find_program("python3");
  REQUIRE_MESSAGE(std::filesystem::exists(uv), "needs uv: cmake/prerequisites.sh, or SEALIFT_UV");
  REQUIRE(!python.empty());
  Job job = small_job();
  job.target.glibc = {2, 28};
  job.inputs.requirements = {"markupsafe==3.0.2"};
  const TempDir dir;
  SourceFacts nothing;
  const auto wheels =
      choose_packages(packager::resolve(job, uv, python_beside(dir / "uv", python), dir.path(), nothing).pylock,
                      dir.path(), "3.11", job.target)
          .wheels;
  REQUIRE(wheels.size() == 1);
  CHECK(wheels[0].name == "markupsafe");
  CHECK(wheels[0].file_name.find("cp311-cp311-manylinux") != std::string::npos);
}

TEST_CASE("a folder of PATH that cannot be looked into does not end the search") {
  const std::string before = std::getenv("PATH");
  // Longer than any name may be: looking there fails for every user, root too.
  ::setenv("PATH", ("/" + std::string(300, 'x') + ":" + before).c_str(), 1);
  const std::filesystem::path shell = find_program("sh");
  ::setenv("PATH", before.c_str(), 1);
  CHECK(shell.filename() == "sh");
}
