// SPDX-License-Identifier: Apache-2.0
// What is cached is trusted until it is used: every entry is hashed while it is written, and reading all of it
// beforehand would double the time that `create` takes; see content_supply.hpp.
#include "packager/pack/content_supply.hpp"

#include <fmt/format.h>

#include "packager/builds/built_wheels.hpp"
#include "packager/host/uv.hpp"
#include "packager/interpreter/interpreter.hpp"
#include "packager/resolve/resolve.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

// uv, and the very version of Python that the lock was made with. Only asked for when a wheel has to be built again.
BuildTools build_tools(const std::string& python_version, const LockedIndexes& indexes, Isolation isolation) {
  const fs::path uv = find_uv({});
  InterpreterChoice choice{.version = python_version.substr(0, python_version.rfind('.'))};
  const ProcessResult same = run_uv({uv.string(), "python", "find", "--system", python_version});
  if (same.exit_code == 0) choice.interpreter = same.out.substr(0, same.out.find('\n'));
  const Interpreter interpreter = find_interpreter(choice, uv, {});
  return {.uv = uv,
          .python = interpreter.executable,
          .python_version = interpreter.version,
          .build_constraints = {},
          .index_words = index_words(indexes),
          .isolation = isolation};
}

// Unreadable is as good as damaged: either way it is brought again.
bool is_intact(const fs::path& file, const bundle::Digest& sha256) {
  try {
    return digest_of_file(file) == sha256;
  } catch (const bundle::Error&) {
    return false;
  }
}

}  // namespace

void ContentSupply::refuse_unsandboxed(const Content& content) const {
  const auto* source = std::get_if<FromSource>(&content.origin);
  if (source == nullptr || rebuild_.isolation == Isolation::Sandbox || !source->wheel.built_from->sandboxed) return;
  throw bundle::Error(bundle::ErrorCode::Digest,
                      {.what = "a built wheel in the cache is damaged, and would be built again outside of a sandbox",
                       .where = content.name,
                       .expected = "the wheel that was locked, which the manifest calls sandboxed",
                       .next = "run the same command again: the wheel is then built before anything is written, and "
                               "the manifest says how"});
}

ContentSupply::ContentSupply(const Cache& cache, bundle::Progress& progress, FetchOptions fetch, Rebuild rebuild)
    : cache_(cache), console_(progress), fetch_(fetch), rebuild_(std::move(rebuild)) {
  fetch_.trust_cache = true;
}

std::set<bundle::Digest> ContentSupply::bring(const std::vector<Content>& contents) const {
  fetch(downloads_of(contents), cache_, console_, fetch_);
  std::vector<LockedWheel> built;
  for (const Content& content : contents) {
    if (cache_.contains(content.sha256)) continue;
    if (const auto* source = std::get_if<FromSource>(&content.origin)) built.push_back(source->wheel);
    if (const auto* written = std::get_if<FromText>(&content.origin)) cache_.keep(written->text, content.sha256);
  }
  return rebuild_missing(
      built, [&] { return build_tools(rebuild_.python_version, rebuild_.indexes, rebuild_.isolation); }, cache_,
      console_, fetch_);
}

bool ContentSupply::repair(const Content& content) const {
  if (std::holds_alternative<FromLock>(content.origin) || std::holds_alternative<FromDisk>(content.origin))
    return false;
  const fs::path file = file_of(content, cache_);
  if (is_intact(file, content.sha256)) return false;
  console_.warn(fmt::format("{} in the cache is damaged ({}); it is {} again", content.name, file.string(),
                            std::holds_alternative<FromSource>(content.origin) ? "built" : "fetched"));
  std::error_code ignored;
  fs::remove(file, ignored);
  refuse_unsandboxed(content);
  // In silence: the step within which the damage was met goes on to have the progress line.
  bundle::Progress silent(nullptr);
  ContentSupply(cache_, silent, fetch_, rebuild_).bring({content});
  return true;
}

}  // namespace sealift::packager
