// SPDX-License-Identifier: Apache-2.0
// Calls dnf's own Python interface, whose answers have a form, where the program's are tables for people. No root is
// needed: nothing is installed. See dnf.hpp.
#include "packager/rpm/dnf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bundle/core/json.hpp"
#include "packager/host/process.hpp"
#include "packager/host/trusted_certificates.hpp"
#include "packager/host/url.hpp"
#include "packager/tables/rpm_toml.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMaxRpms = 20'000;
constexpr std::uint64_t kMaxRpmSize = std::uint64_t{1} << 40;

// Nothing of this machine's configuration, plugins or installed packages is loaded.
constexpr const char* kResolve = R"(
import json, sys
import dnf, dnf.conf, dnf.exceptions, hawkey
with open(sys.argv[1]) as file:
    asked = json.load(file)
def end(**answer):
    json.dump(answer, sys.stdout)
    sys.exit(0)
conf = dnf.conf.Conf()
for key, folder in ('installroot', 'root'), ('cachedir', 'cache'), ('persistdir', 'state'), ('logdir', 'log'):
    setattr(conf, key, asked['scratch'] + '/' + folder)
conf.substitutions['releasever'] = asked['release']
conf.arch, conf.ignorearch, conf.module_platform_id = asked['arch'], True, asked['platform']
conf.install_weak_deps, conf.best, conf.strict = False, True, True
if asked['certificates']:
    conf.sslcacert = asked['certificates']
base = dnf.Base(conf)
for one in asked['repositories']:
    repo = base.repos.add_new_repo(one['name'], conf, baseurl=[one['url']])
    repo.gpgkey, repo.repo_gpgcheck, repo.skip_if_unavailable = one['keys'], one['index_signed'], False
try:
    base.fill_sack(load_system_repo=False)
except dnf.exceptions.RepoError as error:
    end(refused='repository', text=str(error))
unknown = []
for package in asked['packages']:
    try:
        base.install(package)
    except dnf.exceptions.MarkingError:
        unknown.append(package)
if unknown:
    end(refused='unknown', text=', '.join(unknown))
try:
    base.resolve()
except dnf.exceptions.DepsolveError as error:
    end(refused='conflict', text=str(error))
def described(package):
    kind, digest = package.chksum
    url = package.baseurl.rstrip('/') + '/' + package.location if package.baseurl else package.remote_location()
    return {'name': package.name, 'epoch': str(package.epoch), 'version': package.version, 'release': package.release,
            'arch': package.arch, 'repository': package.repoid, 'size': package.downloadsize,
            'url': url or '', 'digest': hawkey.chksum_name(kind) + ':' + digest.hex()}
end(packages=[described(package) for package in base.transaction.install_set])
)";

// The interpreter that has dnf's module, by its program's first line.
fs::path python_of_dnf() {
  const fs::path dnf = find_program("dnf");
  if (dnf.empty())
    throw Error(ErrorCode::Missing, {.what = "dnf, which resolves rpm packages, is not on this machine",
                                     .where = "PATH",
                                     .expected = "dnf 4",
                                     .next = "apt install dnf createrepo-c rpm; `create` does not need them"});
  bundle::FileSource program(fs::canonical(dnf));
  std::string line;
  if (program.size() > 2) line = bundle::as_text(program.view(0, 256));
  line.resize(std::min(line.find('\n'), line.size()));
  if (!line.starts_with("#!") || line.find("python") == line.npos)
    throw Error(ErrorCode::CannotCheck, {.what = "this dnf has another interface",
                                         .where = dnf.string(),
                                         .expected = "dnf 4, a program in Python",
                                         .next = "lock on Debian 12 or on a system of the target's kind with dnf 4"});
  line.erase(0, line.find_first_not_of(' ', 2));
  return line.substr(0, line.find(' '));
}

// What modules of a release belong to; without it modules that need a platform are left out.
std::string platform_of(const std::string& release) {
  return "platform:el" + release.substr(0, release.find('.'));
}

std::string question(const JobRpm& job, const std::string& arch, const fs::path& scratch) {
  bundle::Json repositories = bundle::Json::array();
  for (const RpmRepository& one : job.repositories) {
    bundle::Json keys = bundle::Json::array();
    for (const fs::path& key : one.keys) keys.push_back(file_url(key));
    const bool index_signed = one.checked == RpmSigned::Index || one.checked == RpmSigned::Both;
    repositories.push_back(
        {{"name", one.name}, {"url", one.url}, {"keys", std::move(keys)}, {"index_signed", index_signed}});
  }
  return bundle::write_json({{"scratch", scratch.string()},
                             {"release", job.release},
                             {"arch", arch},
                             {"platform", platform_of(job.release)},
                             {"certificates", trusted_certificates()},
                             {"packages", job.packages},
                             {"repositories", std::move(repositories)}});
}

std::string names_of(const std::vector<RpmRepository>& repositories) {
  std::string names;
  for (const RpmRepository& one : repositories) names += (names.empty() ? "" : ", ") + one.name;
  return names;
}

[[noreturn]] void refuse_resolution(const std::string& why, const std::string& text, const std::string& more,
                                    const JobRpm& job) {
  if (why == "unknown")
    throw Error(ErrorCode::Usage, {.what = "the repositories do not have these rpm packages",
                                   .where = "[rpm] packages",
                                   .expected = "packages of " + names_of(job.repositories),
                                   .got = text,
                                   .next = "correct the names, or add the repository that has them"});
  if (why == "conflict")
    throw Error(ErrorCode::Conflict, {.what = "dnf cannot resolve the rpm packages",
                                      .where = "[rpm] packages",
                                      .got = text,
                                      .next = "correct [rpm] packages, or name repositories that fit together"});
  if (text.find("GPG") != text.npos)
    throw Error(ErrorCode::Signature, {.what = "the index of a repository is not signed by one of its keys",
                                       .where = "[[rpm.repository]]",
                                       .got = text,
                                       .next = "ask its owner for the right key; if only its packages are signed, "
                                               "signed = \"packages\" checks those"});
  throw Error(ErrorCode::Network, {.what = "dnf cannot read the index of a repository",
                                   .where = "[[rpm.repository]]",
                                   .expected = "files of at most 1 GiB each",
                                   .got = text + "\n" + more,
                                   .next = "correct url and release, or check network and proxy (https_proxy)"});
}

[[noreturn]] void refuse_index(const IndexedRpm& rpm, const std::string& what, const std::string& got) {
  throw Error(ErrorCode::Format, {.what = "the index of a repository says of a package what cannot be: " + what,
                                  .where = rpm.repository,
                                  .got = bundle::SafePath::printable(got),
                                  .next = "take another mirror"});
}

bool is_on_this_machine(const JobRpm& job, const std::string& repository) {
  return std::any_of(job.repositories.begin(), job.repositories.end(),
                     [&](const RpmRepository& one) { return one.name == repository && one.url.starts_with("file:"); });
}

// dnf gives a '^' of a version as it stands, which no address may have (RFC 3986).
std::string address_of(const std::string& url) {
  std::string address;
  for (const char c : url) address += c == '^' ? "%5E" : std::string(1, c);
  return address;
}

IndexedRpm read_rpm(const bundle::Json& json, const JobRpm& job, const std::string& arch) {
  constexpr std::string_view kDigest = "sha256:";
  bundle::JsonObject object(json, "dnf's answer");
  IndexedRpm rpm{.name = object.string("name"),
                 .epoch = object.string("epoch"),
                 .version = object.string("version"),
                 .release = object.string("release"),
                 .arch = object.string("arch"),
                 .repository = object.string("repository"),
                 .url = address_of(object.string("url")),
                 .size = object.integer("size")};
  const std::string digest = object.string("digest");
  object.done();
  if (!is_rpm_name(rpm.file())) refuse_index(rpm, "a name or version of other characters", rpm.file());
  if (!digest.starts_with(kDigest))
    throw Error(ErrorCode::CannotCheck, {.what = "the index of a repository has no SHA-256 of a package",
                                         .where = rpm.repository + ": " + rpm.file(),
                                         .expected = "sha256",
                                         .got = digest.substr(0, digest.find(':')),
                                         .next = "have its owner run createrepo_c --checksum sha256"});
  const auto sha256 = bundle::Digest::from_hex(digest.substr(kDigest.size()));
  const std::optional<Url> url = parse_url(rpm.url);
  if (!sha256) refuse_index(rpm, "an invalid digest", digest);
  if (!url || url->has_credentials || (url->scheme != "https" && url->scheme != "http" && url->scheme != "file"))
    refuse_index(rpm, "an address of another kind", without_credentials(rpm.url));
  if (url->scheme == "file" && !is_on_this_machine(job, rpm.repository))
    refuse_index(rpm, "a file of this machine, from another one", rpm.url);
  if (rpm.size == 0 || rpm.size > kMaxRpmSize) refuse_index(rpm, "a size of no package", std::to_string(rpm.size));
  const bool old = arch == "x86_64" && rpm.arch.size() == 4 && rpm.arch.starts_with('i') && rpm.arch.ends_with("86");
  if (rpm.arch != arch && rpm.arch != "noarch" && !old) refuse_index(rpm, "another architecture", rpm.file());
  rpm.sha256 = *sha256;
  return rpm;
}

}  // namespace

std::vector<IndexedRpm> resolve_rpms(const JobRpm& job, const std::string& arch, const fs::path& scratch) {
  const fs::path python = python_of_dnf();
  for (const char* folder : {"root", "cache", "state", "log"}) fs::create_directories(scratch / folder);
  const fs::path file = scratch / "question.json";
  bundle::write_text(file, question(job, arch, scratch));
  const ProcessResult result = run_process({python.string(), "-I", "-c", kResolve, file.string()},
                                           {{"LC_ALL", "C.UTF-8"}, {"HOME", scratch}}, {.largest_file = kLargestIndex});
  if (result.exit_code != 0)
    throw Error(ErrorCode::CannotCheck,
                {.what = "dnf cannot be asked",
                 .where = python.string(),
                 .expected = "the Python module of dnf 4",
                 .got = result.err.substr(result.err.size() - std::min<std::size_t>(result.err.size(), 1000)),
                 .next = "apt install dnf, or lock on another machine"});
  const bundle::Json json = bundle::parse_json(result.out, "dnf's answer");
  bundle::JsonObject answer(json, "dnf's answer");
  if (answer.has("refused"))
    refuse_resolution(answer.string("refused"), answer.string("text", std::size_t{1} << 20), result.err, job);
  std::vector<IndexedRpm> rpms;
  for (const bundle::Json& package : answer.array("packages", kMaxRpms)) rpms.push_back(read_rpm(package, job, arch));
  std::sort(rpms.begin(), rpms.end(), [](const IndexedRpm& a, const IndexedRpm& b) { return a.file() < b.file(); });
  for (std::size_t i = 1; i < rpms.size(); ++i)
    if (rpms[i].file() == rpms[i - 1].file()) refuse_index(rpms[i], "two packages with one name", rpms[i].file());
  return rpms;
}

}  // namespace sealift::packager
