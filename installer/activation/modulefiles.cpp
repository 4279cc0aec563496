// SPDX-License-Identifier: Apache-2.0
// Both find the prefix by where they lie themselves, and refuse when their generation is gone.
#include "installer/activation/modulefiles.hpp"

#include "installer/activation/shell_text.hpp"

namespace sealift::installer {

namespace {

constexpr std::string_view kLua = R"lua(-- For Lmod: module use PREFIX/modulefiles; module load @NAME@
local prefix = myFileName():match("^(.*)/modulefiles/[^/]*$")
local root = pathJoin(prefix, @ROOT@)
whatis("Name: @NAME@, @WHICH@")
help([[A Python environment, installed by sealift-install: @WHICH@.]])
if not isDir(pathJoin(root, "bin")) then LmodError("there is no environment in " .. root) end
unsetenv("PYTHONPATH")
unsetenv("PYTHONHOME")
setenv("PYTHONNOUSERSITE", "1")
setenv("SEALIFT_PREFIX", prefix)
prepend_path("PATH", pathJoin(root, "bin"))
@VARIABLES@)lua";

constexpr std::string_view kTcl = R"tcl(#%Module1.0
# For Environment Modules: module use PREFIX/modulefiles; module load @NAME@
set prefix @PREFIX@
if {[info exists ModulesCurrentModulefile]} {
    set prefix [file dirname [file dirname [file normalize $ModulesCurrentModulefile]]]
}
set root $prefix/@FOLDER@
module-whatis {@NAME@, @WHICH@}
proc ModulesHelp {} {
    puts stderr {A Python environment, installed by sealift-install: @WHICH@.}
}
if {![file isdirectory $root/bin]} {
    puts stderr "there is no environment in $root"
    break
}
unsetenv PYTHONPATH
unsetenv PYTHONHOME
setenv PYTHONNOUSERSITE 1
setenv SEALIFT_PREFIX $prefix
prepend-path PATH $root/bin
@VARIABLES@)tcl";

// Backslashes, since a quoted word of Tcl ends where its quotes do.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c & 0x80) != 0 ||
                       std::string_view("/._-:").find(c) != std::string_view::npos;
    out += (plain ? "" : "\\") + std::string(1, c);
  }
  return out.empty() ? "{}" : out;
}

std::string in_tcl(const bundle::Variables& variables) {
  if (variables.empty()) return {};
  std::string lines =
      "set cache {}\nif {[info exists env(HOME)]} { set cache $env(HOME)/.cache }\n"
      "if {[info exists env(XDG_CACHE_HOME)]} { set cache $env(XDG_CACHE_HOME) }\n"
      "proc sealift_default {name value} {\n"
      "    if {![info exists ::env($name)] || [info exists ::env(_SEALIFT_SET_$name)]} {\n"
      "        setenv $name $value\n        setenv _SEALIFT_SET_$name 1\n    }\n}\n";
  for (const auto& [name, value] : variables)
    lines += "sealift_default " + name + " " + expanded(value, escaped, "${root}", "${cache}") + "\n";
  return lines;
}

std::string in_lua(const bundle::Variables& variables) {
  if (variables.empty()) return {};
  std::string lines =
      "local cache = os.getenv(\"XDG_CACHE_HOME\") or pathJoin(os.getenv(\"HOME\") or \"\", \".cache\")\n"
      "local function default(name, value)\n"
      "  if os.getenv(name) == nil or os.getenv(\"_SEALIFT_SET_\" .. name) then\n"
      "    setenv(name, value)\n    setenv(\"_SEALIFT_SET_\" .. name, \"1\")\n  end\nend\n";
  const auto quote = [](const std::string& text) {
    return "\"" + replaced(replaced(text, "\\", "\\\\"), "\"", "\\\"") + "\"";
  };
  for (const auto& [name, value] : variables)
    lines += "default(\"" + name + "\", " + expanded(value, quote, "root", "cache", " .. ") + ")\n";
  return lines;
}

// `folder`: of the environment, below the prefix.
SmallFiles modulefiles(const Prefix& prefix, const std::string& name, const std::string& folder,
                       const std::string& which, const bundle::Variables& variables) {
  const auto with = [&](std::string_view text, const std::string& lines) {
    return filled(text, {{"NAME", name},
                         {"WHICH", which},
                         {"FOLDER", folder},
                         {"ROOT", "\"" + folder + "\""},
                         {"PREFIX", escaped(prefix.folder().string())},
                         {"VARIABLES", lines}});
  };
  return {{prefix.modulefiles() / (name + ".lua"), with(kLua, in_lua(variables))},
          {prefix.modulefiles() / name, with(kTcl, in_tcl(variables))}};
}

}  // namespace

SmallFiles modulefiles_of(const Prefix& prefix, const GenerationRecord& record, const bundle::Variables& variables) {
  const std::string number = Prefix::generation_name(record.number);
  return modulefiles(prefix, record.name + "-" + number, "generations/" + number,
                     "generation " + std::to_string(record.number) + ", version " + std::to_string(record.version),
                     variables);
}

SmallFiles modulefiles_of_current(const Prefix& prefix, const GenerationRecord& record,
                                  const bundle::Variables& variables) {
  return modulefiles(prefix, record.name, "current", "whatever generation is current", variables);
}

}  // namespace sealift::installer
