// SPDX-License-Identifier: Apache-2.0
// Reads [python]; see python_inputs.hpp.
#include "packager/job/python_inputs.hpp"

#include <algorithm>
#include <cstdlib>

#include "packager/host/http_logins.hpp"
#include "packager/host/url.hpp"
#include "packager/tables/build_variable.hpp"
#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

std::optional<fs::path> existing_file(TomlTable& table, const std::string& key, const fs::path& folder) {
  if (!table.has(key)) return std::nullopt;
  const fs::path path = fs::absolute(folder / table.string(key)).lexically_normal();
  if (!fs::is_regular_file(path)) table.refuse(key, "the file is not there", "a text file", path.string());
  return path;
}

// uv reads one requirement a line, so a line break would smuggle in an option.
std::vector<std::string> lines(TomlTable& table, const std::string& key) {
  std::vector<std::string> texts = table.strings(key);
  for (const std::string& text : texts)
    if (text.empty() || text.find_first_of("\n\r") != text.npos)
      table.refuse(key, "this is not one requirement", "one line each", text);
  return texts;
}

std::vector<std::string> plain_names(TomlTable& table, const std::string& key) {
  std::vector<std::string> names = table.strings(key);
  for (const std::string& name : names)
    if (!bundle::is_plain_name(name)) table.refuse(key, "a name is not plain", "like \"train\"", name);
  return names;
}

std::string package_name(const TomlTable& table, const std::string& key, const std::string& name) {
  if (!bundle::is_plain_name(name)) table.refuse(key, "this is not the name of a package", "like \"flash-attn\"", name);
  return bundle::normalized_project_name(name);
}

void read_variables(TomlTable variables, BuildExtras& extras) {
  for (const std::string& variable : variables.keys())
    variables.attempt([&] {
      const std::string value = variables.string(variable);
      if (const char* fault = fault_of_build_variable(variable, value))
        variables.refuse(variable, std::string("a build cannot get this variable: ") + fault, {}, value);
      extras.variables.emplace(variable, value);
    });
  variables.done();
}

void read_build_extras(TomlTable& table, PythonInputs& inputs) {
  table.attempt([&] {
    if (!table.has("extra_build_dependencies")) return;
    TomlTable packages = table.table("extra_build_dependencies");
    for (const std::string& name : packages.keys())
      packages.attempt([&] {
        packages.ignore(name);
        inputs.builds[package_name(packages, name, name)].requirements = lines(packages, name);
      });
    packages.done();
  });
  table.attempt([&] {
    if (!table.has("extra_build_variables")) return;
    TomlTable packages = table.table("extra_build_variables");
    for (const std::string& name : packages.keys())
      packages.attempt([&] {
        packages.ignore(name);
        read_variables(packages.table(name), inputs.builds[package_name(packages, name, name)]);
      });
    packages.done();
  });
}

std::string index_url(TomlTable& table, const std::string& key) {
  std::string url = table.string(key);
  const std::optional<Url> parsed = parse_url(url);
  const bool remote = parsed && (parsed->scheme == "https" || parsed->scheme == "http") && !parsed->host.empty();
  if (!remote && !(parsed && parsed->scheme == "file" && url.starts_with("file:///")))
    table.refuse(key, "this is not the address of an index", "https://…, http://… or file:///…",
                 without_credentials(url));
  // A password would be in the lock, in the evidence beside it and in every list of processes.
  if (parsed->has_credentials)
    table.refuse(key, "the address of an index holds a password", "an address without one", {},
                 "give the index a name, { name = \"ours\", url = \"" + without_credentials(url) + "\" }, and set " +
                     login_variables("ours") + "; or use a netrc file");
  return url;
}

// "NAME=URL", or "URL" without a name.
std::string read_index(TomlTable& index) {
  std::string name, url;
  index.attempt([&] {
    name = index.string_or("name", "");
    if (!name.empty() && !bundle::is_plain_name(name)) index.refuse("name", "a name is not plain", {}, name);
  });
  index.attempt([&] { url = index_url(index, "url"); });
  index.done();
  return (name.empty() ? "" : name + "=") + url;
}

void read_indexes(TomlTable& table, PythonInputs& inputs) {
  table.attempt([&] {
    if (table.is_table("default_index")) {
      TomlTable index = table.table("default_index");
      inputs.default_index = read_index(index);
    } else if (table.has("default_index")) {
      inputs.default_index = index_url(table, "default_index");
    }
  });
  table.attempt([&] { table.each("indexes", [&](TomlTable& index) { inputs.indexes.push_back(read_index(index)); }); });
  table.attempt([&] {
    inputs.index_strategy = table.string_or("index_strategy", "");
    static const std::vector<std::string> kKnown = {"", "first-index", "unsafe-first-match", "unsafe-best-match"};
    if (std::find(kKnown.begin(), kKnown.end(), inputs.index_strategy) == kKnown.end())
      table.refuse("index_strategy", "uv knows no such strategy",
                   "first-index, unsafe-first-match or unsafe-best-match", inputs.index_strategy);
  });
}

void read_torch_backend(TomlTable& table, PythonInputs& inputs) {
  std::string& name = inputs.torch_backend;
  table.attempt([&] {
    name = table.string_or("torch_backend", "");
    const bool cuda = name.size() >= 4 && name.size() <= 6 && name.starts_with("cu") &&
                      std::all_of(name.begin() + 2, name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!name.empty() && name != "auto" && name != "cpu" && !cuda)
      table.refuse("torch_backend", "this is not a backend of torch that can be packed", "auto, cpu or like cu128",
                   name);
  });
  table.attempt([&] {
    if (table.has("torch_index")) inputs.torch_index = index_url(table, "torch_index");
    while (inputs.torch_index.ends_with('/')) inputs.torch_index.pop_back();
    if (!inputs.torch_index.empty() && !table.has("torch_backend"))
      table.refuse("torch_index", "an index for backends of torch is of use with a backend only", "torch_backend",
                   inputs.torch_index);
  });
}

void check_lock_file(const TomlTable& table, const PythonInputs& inputs) {
  if (!inputs.lock_file) return;
  const std::string name = inputs.lock_file->filename().string();
  if (name != "uv.lock" && name != "pylock.toml" && !(name.starts_with("pylock.") && name.ends_with(".toml")))
    table.refuse("lock_file", "this is not the name of a supported lock",
                 "uv.lock, pylock.toml or "
                 "pylock.NAME.toml",
                 name);
  if (!inputs.requirements_file && !inputs.pyproject && inputs.constraints.empty()) return;
  table.refuse("lock_file", "a lock is taken as it is, so nothing else can be resolved beside it",
               "no requirements_file, pyproject or constraints", {}, "lock again with those, or leave them out");
}

// What is asked for at all, and whether it has extras.
void check_together(TomlTable& table, const PythonInputs& inputs) {
  if (inputs.requirements.empty() && !inputs.requirements_file && !inputs.pyproject && !inputs.lock_file)
    table.refuse_missing("requirements", "there is nothing to pack",
                         "requirements, requirements_file, pyproject or lock_file");
  if ((!inputs.extras.empty() || !inputs.groups.empty()) && !inputs.pyproject && !inputs.lock_file)
    table.refuse(inputs.extras.empty() ? "groups" : "extras", "only a project or a lock has extras and groups",
                 "pyproject, or lock_file", {}, "write extras of packages as \"name[extra]\"");
}

}  // namespace

PythonInputs read_python_inputs(TomlTable& table, const fs::path& folder) {
  PythonInputs inputs;
  table.attempt([&] { inputs.requirements = lines(table, "requirements"); });
  table.attempt([&] { inputs.requirements_file = existing_file(table, "requirements_file", folder); });
  table.attempt([&] { inputs.pyproject = existing_file(table, "pyproject", folder); });
  table.attempt([&] { inputs.lock_file = existing_file(table, "lock_file", folder); });
  table.attempt([&] { inputs.extras = plain_names(table, "extras"); });
  table.attempt([&] { inputs.groups = plain_names(table, "groups"); });
  if (table.is_good()) table.attempt([&] { check_together(table, inputs); });
  table.attempt([&] { inputs.constraints = lines(table, "constraints"); });
  table.attempt([&] { inputs.build_constraints = lines(table, "build_constraints"); });
  table.attempt([&] {
    for (const std::string& name : table.strings("excludes"))
      inputs.excludes.push_back(package_name(table, "excludes", name));
  });
  read_build_extras(table, inputs);
  table.attempt([&] { inputs.build = table.boolean_or("build", true); });
  read_indexes(table, inputs);
  read_torch_backend(table, inputs);
  if (table.is_good()) table.attempt([&] { check_lock_file(table, inputs); });
  return inputs;
}

LockedIndexes locked_indexes(const PythonInputs& inputs) {
  LockedIndexes locked{.default_index = {}, .others = {}, .strategy = inputs.index_strategy};
  const char* set = std::getenv("UV_DEFAULT_INDEX");
  locked.default_index = inputs.default_index ? *inputs.default_index : without_credentials(set == nullptr ? "" : set);
  if (inputs.torch_index.empty())
    locked.torch_backend = inputs.torch_backend;
  else
    locked.others.push_back(inputs.torch_index + "/" + inputs.torch_backend);
  locked.others.insert(locked.others.end(), inputs.indexes.begin(), inputs.indexes.end());
  return locked;
}

std::vector<std::string> index_words(const PythonInputs& inputs) {
  LockedIndexes named = locked_indexes(inputs);
  if (!inputs.default_index) named.default_index.clear();
  return index_words(named);
}

}  // namespace sealift::packager
