// SPDX-License-Identifier: Apache-2.0
// TOML <-> kernels; see kernel_toml.hpp. A revision has to be named, since loaders from 0.15 on load nothing without
// one: what is carried under no name would not be found.
#include "packager/tables/kernel_toml.hpp"

#include <fmt/format.h>

#include <set>

#include "packager/tables/model_toml.hpp"

namespace sealift::packager {

namespace {

ModelSpec read_job_kernel(TomlTable& table) {
  ModelSpec spec;
  for (const char* key : {"repo", "revision", "endpoint"}) table.ignore(key);
  if (!table.has("revision"))
    table.refuse_missing("revision", "a kernel needs a revision, as its loader does",
                         "revision = \"v1\" (what code asks for by version=1), a branch, a tag or a commit");
  table.attempt([&] { read_repository(table, spec); });
  table.done();
  return spec;
}

LockedKernel read_locked_kernel(TomlTable& table) {
  LockedKernel kernel;
  read_repository(table, kernel.spec);
  kernel.spec.kernel = table.boolean_or("of_kernels", true);
  kernel.named_by_variable = table.boolean_or("named_by_variable", false);
  kernel.commit = table.string("commit");
  if (kernel.commit.size() != 40 || kernel.commit.find_first_not_of("0123456789abcdef") != std::string::npos)
    table.refuse("commit", "this is not a commit", "40 hexadecimal digits", kernel.commit);
  kernel.variant = table.plain_name("variant");
  kernel.files = read_locked_files(table);
  for (const LockedFile& file : kernel.files)
    if (!file.path.starts_with("build/" + kernel.variant + "/"))
      table.refuse("files", "a file does not lie in the variant's folder", "build/" + kernel.variant + "/…", file.path);
  table.done();
  return kernel;
}

}  // namespace

std::vector<ModelSpec> read_job_kernels(TomlTable& job) {
  std::vector<ModelSpec> kernels;
  std::set<std::pair<std::string, std::string>> names;
  job.each("kernel", [&](TomlTable& table) {
    kernels.push_back(read_job_kernel(table));
    if (!names.emplace(kernels.back().repo, kernels.back().revision).second)
      table.refuse("repo", "a kernel is named twice", "each revision of a repository once", kernels.back().repo);
  });
  return kernels;
}

std::vector<LockedKernel> read_locked_kernels(TomlTable& lock) {
  std::vector<LockedKernel> kernels;
  for (TomlTable& table : lock.tables("kernel")) kernels.push_back(read_locked_kernel(table));
  return kernels;
}

std::string write_locked_kernels(const std::vector<LockedKernel>& kernels) {
  std::string out;
  for (const LockedKernel& kernel : kernels) {
    out += fmt::format("\n[[kernel]]\nendpoint = {}\nrepo = {}\nrevision = {}\ncommit = {}\nvariant = {}\n",
                       toml_quoted(kernel.spec.endpoint), toml_quoted(kernel.spec.repo),
                       toml_quoted(kernel.spec.revision), toml_quoted(kernel.commit), toml_quoted(kernel.variant));
    if (!kernel.spec.kernel) out += "of_kernels = false\n";
    if (kernel.named_by_variable) out += "named_by_variable = true\n";
    out += write_locked_files(kernel.files);
  }
  return out;
}

}  // namespace sealift::packager
