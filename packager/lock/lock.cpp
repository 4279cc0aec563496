// SPDX-License-Identifier: Apache-2.0
// Writes and reads the lock; see lock.hpp.
#include "packager/lock/lock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "packager/tables/apt_toml.hpp"
#include "packager/tables/build_variable.hpp"
#include "packager/tables/image_toml.hpp"
#include "packager/tables/kernel_toml.hpp"
#include "packager/tables/model_toml.hpp"
#include "packager/tables/rpm_toml.hpp"
#include "packager/tables/target_profile.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/manifest/target_profile.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;
using bundle::GlibcVersion;

namespace {

constexpr std::uint64_t kLockFormat = 1;

std::string list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? ", " : "") + toml_quoted(text);
  return out + "]";
}

// Sentences, so each has a line.
std::string warning_lines(const std::vector<std::string>& warnings) {
  if (warnings.empty()) return {};
  std::string out = "warnings = [\n";
  for (const std::string& warning : warnings) out += "  " + toml_quoted(warning) + ",\n";
  return out + "]\n";
}

Digest digest(TomlTable& table) {
  const std::string text = table.string("sha256");
  const std::optional<Digest> value = Digest::from_hex(text);
  if (!value) table.refuse("sha256", "this is not a SHA-256", "64 lower-case hexadecimal digits", text);
  return *value;
}

bundle::DigestAlgorithm payload_digest(TomlTable& table) {
  const std::string name = table.string("payload_digest");
  const std::optional<bundle::DigestAlgorithm> algorithm = bundle::digest_algorithm(name);
  if (!algorithm) table.refuse("payload_digest", "chunks cannot be digested with this", "sha256 or sm3", name);
  return *algorithm;
}

GlibcVersion glibc(TomlTable& table, const std::string& key) {
  const std::string text = table.string(key);
  const std::optional<GlibcVersion> version = bundle::parse_glibc(text);
  if (!version) table.refuse(key, "this is not a version of glibc", "like 2.36", text);
  return *version;
}

LockedBuild read_build(TomlTable table) {
  LockedBuild build{.url = table.string_or("url", ""),
                    .commit = table.string_or("commit", ""),
                    .subdirectory = table.string_or("subdirectory", ""),
                    .sha256 = digest(table),
                    .requirements = table.strings("requirements"),
                    .python = table.string("python"),
                    .tools = table.string_or("tools", ""),
                    .sandboxed = table.boolean_or("sandboxed", true)};
  const std::string kind = table.string("kind");
  const auto known = {SourceKind::Archive, SourceKind::Git, SourceKind::Folder};
  const auto found = std::find_if(known.begin(), known.end(), [&](SourceKind one) { return name_of(one) == kind; });
  if (found == known.end()) table.refuse("kind", "this is not a kind of source", "archive, git or folder", kind);
  build.kind = *found;
  for (const std::string& line : build.requirements)
    if (line.starts_with('-') || line.find_first_of("\n\r") != line.npos || line.find(" --hash=sha256:") == line.npos)
      table.refuse("requirements", "a build's requirement is not pinned", "NAME==VERSION --hash=sha256:…", line);
  if (table.has("variables")) {
    TomlTable variables = table.table("variables");
    for (const std::string& name : variables.keys()) {
      const std::string value = variables.string(name);
      if (const char* fault = fault_of_build_variable(name, value)) variables.refuse(name, fault, {}, value);
      build.variables.emplace(name, value);
    }
    variables.done();
  }
  if (!build.subdirectory.empty()) bundle::SafePath::parse(build.subdirectory, "subdirectory");
  table.done();
  return build;
}

LockedWheel read_wheel(TomlTable& table) {
  LockedWheel wheel{.name = table.string("name"),
                    .version = table.string("version"),
                    .file_name = table.string("file"),
                    .url = table.string_or("url", ""),
                    .sha256 = digest(table),
                    .size = table.integer_or("size", 0)};
  if (table.has("built_from")) wheel.built_from = read_build(table.table("built_from"));
  if (wheel.url.empty() == !wheel.built_from)
    table.refuse("url", "a wheel has an address or was built, and not both", "url or built_from");
  if (!bundle::parse_wheel_name(wheel.file_name) || wheel.file_name.find('/') != std::string::npos)
    table.refuse("file", "this is not the file name of a wheel", "NAME-VERSION-PYTHON-ABI-PLATFORM.whl",
                 wheel.file_name);
  table.done();
  return wheel;
}

std::string write_build(const LockedBuild& build) {
  std::string out = fmt::format("[wheel.built_from]\nkind = {}\n", toml_quoted(name_of(build.kind)));
  for (const auto& [key, value] :
       {std::pair("url", build.url), std::pair("commit", build.commit), std::pair("subdirectory", build.subdirectory)})
    if (!value.empty()) out += fmt::format("{} = {}\n", key, toml_quoted(value));
  out += fmt::format("sha256 = {}\nrequirements = {}\npython = {}\ntools = {}\n", toml_quoted(build.sha256.hex()),
                     list(build.requirements), toml_quoted(build.python), toml_quoted(build.tools));
  if (!build.sandboxed) out += "sandboxed = false\n";
  if (build.variables.empty()) return out;
  out += "[wheel.built_from.variables]\n";
  for (const auto& [name, value] : build.variables) out += fmt::format("{} = {}\n", name, toml_quoted(value));
  return out;
}

std::string write_indexes(const LockedIndexes& indexes, const fs::path& folder) {
  if (indexes == LockedIndexes{}) return {};
  std::string out = "\n[indexes]\n";
  if (!indexes.default_index.empty()) out += fmt::format("default = {}\n", toml_quoted(indexes.default_index));
  if (!indexes.others.empty()) out += fmt::format("others = {}\n", list(indexes.others));
  if (!indexes.strategy.empty()) out += fmt::format("strategy = {}\n", toml_quoted(indexes.strategy));
  if (!indexes.torch_backend.empty()) out += fmt::format("torch_backend = {}\n", toml_quoted(indexes.torch_backend));
  if (!indexes.in_files.empty()) out += fmt::format("in_files = {}\n", list(indexes.in_files));
  std::vector<std::string> files;
  for (const fs::path& file : indexes.login_files) files.push_back(file.lexically_relative(folder).string());
  if (!files.empty()) out += fmt::format("login_files = {}\n", list(files));
  if (!indexes.variable_addresses.empty())
    out += fmt::format("variable_addresses = {}\n", list(indexes.variable_addresses));
  if (!indexes.signed_pages.empty()) out += fmt::format("signed_pages = {}\n", list(indexes.signed_pages));
  return out;
}

std::string write_environment(const bundle::Variables& variables) {
  if (variables.empty()) return {};
  std::string out = "\n[environment]\n";
  for (const auto& [name, value] : variables) out += fmt::format("{} = {}\n", name, toml_quoted(value));
  return out;
}

std::string write_sdk(const std::optional<LockedSdk>& sdk) {
  if (!sdk) return {};
  return fmt::format("\n[sdk]\nversion = {}\nsha256 = {}\nsize = {}\n", toml_quoted(sdk->version),
                     toml_quoted(sdk->sha256.hex()), sdk->size);
}

LockedSdk read_locked_sdk(TomlTable table) {
  LockedSdk sdk{.version = table.plain_name("version"), .sha256 = digest(table), .size = table.integer("size")};
  table.done();
  return sdk;
}

bundle::Variables read_environment(TomlTable table) {
  bundle::Variables variables;
  for (const std::string& name : table.keys()) {
    const std::string value = table.string(name);
    if (const char* fault = bundle::fault_of_carried_variable(name, value)) table.refuse(name, fault, {}, value);
    variables.emplace(name, value);
  }
  return variables;
}

LockedIndexes read_indexes(TomlTable table, const fs::path& folder) {
  LockedIndexes indexes{.default_index = table.string_or("default", ""),
                        .others = table.strings("others"),
                        .strategy = table.string_or("strategy", ""),
                        .torch_backend = table.string_or("torch_backend", ""),
                        .in_files = table.strings("in_files"),
                        .variable_addresses = table.strings("variable_addresses"),
                        .signed_pages = table.strings("signed_pages")};
  for (const std::string& file : table.strings("login_files"))
    indexes.login_files.push_back((folder / file).lexically_normal());
  table.done();
  return indexes;
}

LockedInterpreter read_interpreter(TomlTable table) {
  LockedInterpreter interpreter{.description = table.string("description"),
                                .version = table.string("version"),
                                .sha256 = digest(table),
                                .size = table.integer("size"),
                                .libraries = table.strings("libraries")};
  table.done();
  return interpreter;
}

}  // namespace

std::string_view name_of(SourceKind kind) {
  switch (kind) {
    case SourceKind::Archive:
      return "archive";
    case SourceKind::Git:
      return "git";
    case SourceKind::Folder:
      return "folder";
  }
  return "?";
}

std::string write_lock(const Lock& lock, const fs::path& folder) {
  std::string out = fmt::format(
      "# Written by sealift-pack lock. `sealift-pack create` packs exactly this.\n"
      "format = {}\nname = {}\nversion = {}\nchannel = {}\nrollback_floor = {}\ncreated = {}\npayload_digest = "
      "{}\npython "
      "= {}\nimports = {}\n{}\n"
      "[target]\n{}glibc_floor = {}\n{}{}{}\n",
      kLockFormat, toml_quoted(lock.name), lock.version, toml_quoted(lock.channel), lock.rollback_floor,
      toml_quoted(lock.created), toml_quoted(name_of(lock.payload_digest)), toml_quoted(lock.python),
      list(lock.imports), warning_lines(lock.warnings), bundle::write_target_keys(lock.target),
      toml_quoted(lock.glibc_floor.text()), lock.overruled.empty() ? "" : "overrule = " + list(lock.overruled) + "\n",
      lock.host_libraries.empty() ? "" : "host_libraries = " + list(lock.host_libraries) + "\n",
      lock.system.empty() ? "" : "system = " + toml_quoted(lock.system.lexically_relative(folder).string()) + "\n");
  if (!lock.python.empty())
    out += fmt::format("[interpreter]\ndescription = {}\nversion = {}\nsha256 = {}\nsize = {}\nlibraries = {}\n",
                       toml_quoted(lock.interpreter.description), toml_quoted(lock.interpreter.version),
                       toml_quoted(lock.interpreter.sha256.hex()), lock.interpreter.size,
                       list(lock.interpreter.libraries));
  out += write_indexes(lock.indexes, folder) + write_environment(lock.variables) + write_toolchain(lock.toolchain) +
         write_sdk(lock.sdk) + write_squashfs(lock.squashfs);
  if (lock.runtime)
    out += fmt::format("\n[runtime]\nglibc = {}\nkernel = {}\n", toml_quoted(lock.runtime->glibc.text()),
                       toml_quoted(lock.runtime->kernel));
  for (const LockedProgram& program : lock.programs)
    out += fmt::format(
        "\n[[program]]\nsource = {}\nsha256 = {}\nsize = {}\ninto = {}\nexecutable = {}\nfrom_wheels = {}\n",
        toml_quoted(program.source.lexically_relative(folder).string()), toml_quoted(program.sha256.hex()),
        program.size, toml_quoted(program.into), program.executable, list(program.from_wheels));
  for (const LockedWheel& wheel : lock.wheels) {
    out += fmt::format("\n[[wheel]]\nname = {}\nversion = {}\nfile = {}\nsha256 = {}\n", toml_quoted(wheel.name),
                       toml_quoted(wheel.version), toml_quoted(wheel.file_name), toml_quoted(wheel.sha256.hex()));
    if (!wheel.built_from) out += fmt::format("url = {}\n", toml_quoted(wheel.url));
    if (wheel.size != 0) out += fmt::format("size = {}\n", wheel.size);
    if (wheel.built_from) out += write_build(*wheel.built_from);
  }
  return out + write_owner_rules(lock.owners) + write_shared_rules(lock.shared) +
         write_startup_rules(lock.startup_files) + write_locked_models(lock.models, folder) +
         write_locked_kernels(lock.kernels) + write_locked_images(lock.images) + write_locked_apt(lock.apt) +
         write_locked_rpm(lock.rpm);
}

Lock read_lock(const fs::path& file) {
  const TomlValue document = read_toml(file, ErrorCode::Format);
  TomlTable table(document, file, ErrorCode::Format);
  if (!table.has("format") && table.has("python") && table.has("target"))
    throw Error(ErrorCode::Usage,
                {.what = "this is a job file; what is packed is its lock",
                 .where = file.string(),
                 .expected = "a file that `sealift-pack lock` wrote, like NAME.lock.toml",
                 .next = "sealift-pack lock '" + file.string() + "', then create with what it wrote"});
  if (const std::uint64_t format = table.integer("format"); format != kLockFormat)
    throw Error(ErrorCode::CannotCheck, {.what = "the lock is of a format that this version does not know",
                                         .where = file.string(),
                                         .expected = std::to_string(kLockFormat),
                                         .got = std::to_string(format),
                                         .next = "run sealift-pack lock again"});
  Lock lock{.name = table.plain_name("name"),
            .version = table.integer("version"),
            .channel = table.plain_name("channel"),
            .rollback_floor = table.integer_or("rollback_floor", 0),
            .created = table.string("created"),
            .payload_digest = payload_digest(table),
            .python = table.string("python"),
            .imports = table.strings("imports"),
            .warnings = table.strings("warnings")};
  TomlTable target = table.table("target");
  glibc(target, "glibc");
  lock.target.arch = target.plain_name("arch");
  read_target_keys(target, lock.target);
  lock.glibc_floor = glibc(target, "glibc_floor");
  lock.overruled = read_overruled(target);
  lock.host_libraries = read_host_libraries(target, {});
  const fs::path folder = fs::absolute(file).parent_path();
  if (target.has("system")) lock.system = (folder / target.string("system")).lexically_normal();
  target.done();
  if (!lock.python.empty()) lock.interpreter = read_interpreter(table.table("interpreter"));
  if (table.has("indexes")) lock.indexes = read_indexes(table.table("indexes"), folder);
  if (table.has("environment")) lock.variables = read_environment(table.table("environment"));
  lock.toolchain = read_toolchain(table);
  lock.squashfs = read_squashfs(table);
  if (table.has("sdk")) lock.sdk = read_locked_sdk(table.table("sdk"));
  if (table.has("runtime")) {
    TomlTable runtime = table.table("runtime");
    lock.runtime = {.glibc = glibc(runtime, "glibc"), .kernel = runtime.string("kernel")};
    runtime.done();
  }
  for (TomlTable& item : table.tables("program")) {
    LockedProgram program{.source = (folder / item.string("source")).lexically_normal(),
                          .sha256 = digest(item),
                          .size = item.integer("size"),
                          .into = item.string("into"),
                          .executable = item.boolean_or("executable", true),
                          .from_wheels = item.strings("from_wheels")};
    item.done();
    bundle::SafePath::parse(program.into, file.string());
    lock.programs.push_back(std::move(program));
  }
  for (TomlTable& item : table.tables("wheel")) lock.wheels.push_back(read_wheel(item));
  lock.models = read_locked_models(table, folder);
  lock.kernels = read_locked_kernels(table);
  lock.images = read_locked_images(table);
  lock.owners = read_owner_rules(table);
  lock.shared = read_shared_rules(table);
  lock.startup_files = read_startup_rules(table);
  lock.apt = read_locked_apt(table);
  lock.rpm = read_locked_rpm(table);
  table.done();
  const auto by_file = [](const LockedWheel& a, const LockedWheel& b) { return a.file_name < b.file_name; };
  std::sort(lock.wheels.begin(), lock.wheels.end(), by_file);
  return lock;
}

}  // namespace sealift::packager
