// SPDX-License-Identifier: Apache-2.0
// Calls `uv pip compile` and reads its pylock.toml (PEP 751); see resolve.hpp.
#include "packager/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "packager/process.hpp"
#include "packager/scratch_folder.hpp"
#include "packager/toml_file.hpp"
#include "packager/wheel_tags.hpp"
#include "sealift/bundle/payload_writer.hpp"
#include "sealift/bundle/wheel.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;
using bundle::GlibcVersion;

namespace {

// The manylinux levels that uv can resolve for are fewer than the versions of glibc: the nearest that is not newer.
GlibcVersion uv_platform(GlibcVersion target) {
  if (target >= GlibcVersion{2, 40}) return {2, 40};
  if (target >= GlibcVersion{2, 31}) return target;
  return target >= GlibcVersion{2, 28} ? GlibcVersion{2, 28} : GlibcVersion{2, 17};
}

std::string joined(const std::vector<std::string>& texts, const char* separator) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : separator) + text;
  return out;
}

[[noreturn]] void refuse_without_wheels(const std::vector<std::string>& packages) {
  throw Error(
      ErrorCode::Platform,
      {.what = fmt::format("{} package(s) have no wheel and would have to be built", packages.size()),
       .expected = "a wheel for every package",
       .got = joined(packages, ", "),
       .next = "require versions that have wheels, or build wheels of these and offer them through UV_FIND_LINKS"});
}

// The packages that uv's message says have no wheel: "Wheels are required for `NAME`".
std::set<std::string> named_without_wheel(const std::string& message) {
  static constexpr std::string_view kStart = "Wheels are required for `";
  std::set<std::string> names;
  for (std::size_t at = message.find(kStart); at != message.npos; at = message.find(kStart, at)) {
    at += kStart.size();
    const std::string name = message.substr(at, message.find('`', at) - at);
    names.insert(name.substr(0, name.find_first_of(" =<>")));
  }
  return names;
}

std::string url_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::optional<bundle::Bytes> byte =
        text[i] == '%' && i + 2 < text.size()
            ? bundle::from_hex(std::string{static_cast<char>(std::tolower(text[i + 1])),
                                           static_cast<char>(std::tolower(text[i + 2]))})
            : std::nullopt;
    if (byte) i += 2;
    out.push_back(byte ? static_cast<char>(byte->front()) : text[i]);
  }
  return out;
}

std::string file_url(const fs::path& path) {
  std::string out = "file://";
  for (const char c : path.string()) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || std::string_view("/-._~+").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

LockedWheel read_wheel(TomlTable& table, const fs::path& where) {
  table.ignore_others();
  LockedWheel wheel;
  if (table.has("path"))
    wheel.url = file_url(fs::absolute(where / table.string("path")).lexically_normal());
  else
    wheel.url = table.string("url");
  const std::string_view bare = std::string_view(wheel.url).substr(0, wheel.url.find_first_of("?#"));
  wheel.file_name = table.string_or("name", url_decoded(bare.substr(bare.rfind('/') + 1)));
  TomlTable hashes = table.table("hashes");
  const std::optional<Digest> digest = Digest::from_hex(hashes.string("sha256"));
  if (!digest) hashes.refuse("sha256", "this is not a SHA-256", "64 lower-case hexadecimal digits");
  wheel.sha256 = *digest;
  wheel.size = table.integer_or("size", 0);
  return wheel;
}

}  // namespace

fs::path find_uv(const fs::path& given) {
  const char* variable = std::getenv("SEALIFT_UV");
  const fs::path uv = !given.empty() ? given : variable != nullptr ? fs::path(variable) : find_program("uv");
  if (uv.empty() || !fs::exists(uv))
    throw Error(ErrorCode::Missing,
                {.what = "uv, which resolves the requirements, is not there",
                 .where = uv.empty() ? "PATH" : uv.string(),
                 .next = "install uv (it is a package on PyPI), or name it with --uv or SEALIFT_UV"});
  return uv;
}

std::string resolve(const Job& job, const fs::path& uv, const fs::path& python) {
  const ScratchFolder scratch("sealift-resolve");
  bundle::write_text(scratch / "requirements.in", joined(job.requirements, "\n") + "\n");
  std::vector<std::string> command = {uv.string(), "pip", "compile", (scratch / "requirements.in").string()};
  if (job.requirements_file) command.push_back(job.requirements_file->string());
  const std::string platform = fmt::format("{}-manylinux_{}_{}", job.target.arch, uv_platform(job.target.glibc).major,
                                           uv_platform(job.target.glibc).minor);
  for (const std::string& word : {std::string("--format"), std::string("pylock.toml"), std::string("--python-platform"),
                                  platform, std::string("--python-version"), job.python, std::string("--python"),
                                  python.string(), std::string("--no-build"), std::string("--no-header"),
                                  std::string("--quiet"), std::string("-o"), (scratch / "pylock.toml").string()})
    command.push_back(word);
  // uv names one package without wheels at a time; leaving those out and asking again finds them all.
  std::vector<std::string> without_wheels;
  for (;;) {
    std::vector<std::string> attempt = command;
    if (!without_wheels.empty()) {
      fs::remove(scratch / "excludes.txt");
      bundle::write_text(scratch / "excludes.txt", joined(without_wheels, "\n") + "\n");
      attempt.insert(attempt.end(), {"--excludes", (scratch / "excludes.txt").string()});
    }
    const ProcessResult result = run_process(attempt, {{"UV_PYTHON_DOWNLOADS", "never"}, {"NO_COLOR", "1"}});
    if (result.exit_code == 0) break;
    const std::size_t before = without_wheels.size();
    for (const std::string& name : named_without_wheel(result.err))
      if (std::find(without_wheels.begin(), without_wheels.end(), name) == without_wheels.end())
        without_wheels.push_back(name);
    if (without_wheels.size() > before) continue;
    if (!without_wheels.empty()) refuse_without_wheels(without_wheels);
    throw Error(ErrorCode::Network,
                {.what = "uv could not resolve the requirements",
                 .where = job.file.string(),
                 .expected = "one set of wheels for Python " + job.python + " on " + platform,
                 .got = result.err,
                 .next = "correct the requirements, or check network, proxy and index (UV_DEFAULT_INDEX)"});
  }
  if (!without_wheels.empty()) refuse_without_wheels(without_wheels);
  return bundle::read_text(scratch / "pylock.toml", std::uint64_t{64} << 20);
}

std::vector<LockedWheel> choose_wheels(std::string_view pylock, const fs::path& where, std::string_view python,
                                       const bundle::Target& target) {
  const TomlValue document = parse_toml(pylock, "pylock.toml", ErrorCode::Format);
  TomlTable root(document, "pylock.toml", ErrorCode::Format);
  if (const std::string version = root.string("lock-version"); !version.starts_with("1."))
    throw Error(ErrorCode::CannotCheck, {.what = "the pylock is of a version that this program does not know",
                                         .where = "pylock.toml",
                                         .expected = "1.0",
                                         .got = version,
                                         .next = "use a uv that writes lock-version 1"});
  std::vector<LockedWheel> chosen;
  std::vector<std::string> no_wheel, no_fit;
  std::set<std::string> names;
  for (TomlTable& package : root.tables("packages")) {
    // `marker` needs no evaluation: uv resolved for this very target, so what does not apply is not listed.
    const std::string name = bundle::normalized_project_name(package.string("name"));
    const std::string version = package.string_or("version", "");
    if (!names.insert(name).second)
      throw Error(ErrorCode::Conflict, {.what = "a package stands twice in the resolution",
                                        .where = "pylock.toml",
                                        .got = name,
                                        .next = "require one version of it"});
    std::optional<std::pair<WheelRank, LockedWheel>> best;
    std::string too_new;  // a wheel that would fit but for its glibc
    std::vector<TomlTable> wheels = package.tables("wheels");
    for (TomlTable& item : wheels) {
      LockedWheel wheel = read_wheel(item, where);
      wheel.name = name;
      wheel.version = version;
      const std::optional<WheelFit> fit = fit_wheel(wheel.file_name, python, target);
      if (fit && (!best || std::tie(fit->rank, wheel.file_name) < std::tie(best->first, best->second.file_name)))
        best.emplace(fit->rank, std::move(wheel));
      else if (const std::optional<GlibcVersion> wanted = glibc_wanted(wheel.file_name, python, target);
               !fit && wanted && too_new.empty())
        too_new = fmt::format(" ({} needs glibc {})", wheel.file_name, wanted->text());
    }
    if (best)
      chosen.push_back(std::move(best->second));
    else
      (wheels.empty() ? no_wheel : no_fit).push_back(name + " " + version + too_new);
  }
  if (!no_wheel.empty()) refuse_without_wheels(no_wheel);
  if (!no_fit.empty())
    throw Error(ErrorCode::Platform,
                {.what = "some packages have no wheel for the target",
                 .expected = fmt::format("CPython {} on {}, glibc {}", python, target.arch, target.glibc.text()),
                 .got = joined(no_fit, ", "),
                 .next = "require versions that have one"});
  std::sort(chosen.begin(), chosen.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.file_name < b.file_name; });
  return chosen;
}

}  // namespace sealift::packager
