// SPDX-License-Identifier: Apache-2.0
// Each puts bin/ first in PATH and keeps the user's own Python (PYTHONHOME, PYTHONPATH, ~/.local) out. dash and csh
// cannot find where a sourced file lies, so their files hold the prefix's path at the time of writing; `switch`
// rewrites them after a move.
#include "installer/activation/activation.hpp"

#include "installer/activation/kernel_spec.hpp"
#include "installer/activation/modulefiles.hpp"
#include "installer/activation/shell_text.hpp"
#include "installer/activation/variables.hpp"

namespace sealift::installer {

namespace {

constexpr std::string_view kSh = R"sh(# For sh, bash, zsh, ksh: . PREFIX/activate; the way back: sealift_deactivate
if [ -n "${BASH_SOURCE:-}" ]; then
  _sealift_here=$BASH_SOURCE
elif [ -n "${ZSH_VERSION:-}" ]; then
  eval '_sealift_here=${(%):-%x}'
else
  _sealift_here=@PREFIX@/activate
fi
_sealift_here=$(CDPATH= cd -- "$(dirname -- "$_sealift_here")" && pwd)
if [ ! -d "$_sealift_here/current/bin" ]; then
  echo "no environment is installed in $_sealift_here" >&2
  unset _sealift_here
  return 1
fi
if [ -n "${_SEALIFT_PATH:-}" ]; then sealift_deactivate; fi
_SEALIFT_PATH=$PATH
_SEALIFT_PYTHONPATH=${PYTHONPATH:-}
_SEALIFT_PYTHONHOME=${PYTHONHOME:-}
sealift_deactivate() {
  PATH=$_SEALIFT_PATH
  if [ -n "$_SEALIFT_PYTHONPATH" ]; then PYTHONPATH=$_SEALIFT_PYTHONPATH; export PYTHONPATH; fi
  if [ -n "$_SEALIFT_PYTHONHOME" ]; then PYTHONHOME=$_SEALIFT_PYTHONHOME; export PYTHONHOME; fi
  eval "unset _sealift_none ${_SEALIFT_SET:-}"
  unset SEALIFT_PREFIX PYTHONNOUSERSITE _SEALIFT_PATH _SEALIFT_PYTHONPATH _SEALIFT_PYTHONHOME _SEALIFT_SET
  unset -f sealift_deactivate
  hash -r 2>/dev/null || true
}
unset PYTHONPATH PYTHONHOME
SEALIFT_PREFIX=$_sealift_here
PYTHONNOUSERSITE=1
PATH=$SEALIFT_PREFIX/current/bin:$PATH
export SEALIFT_PREFIX PYTHONNOUSERSITE PATH
@VARIABLES@unset _sealift_here
hash -r 2>/dev/null || true
)sh";

constexpr std::string_view kFish = R"fish(# For fish: source PREFIX/activate.fish; the way back: sealift_deactivate
set -l here (realpath (dirname (status --current-filename)))
if not test -d "$here/current/bin"
    echo "no environment is installed in $here" >&2
    return 1
end
functions -q sealift_deactivate; and sealift_deactivate
set -g _sealift_path $PATH
set -g _sealift_pythonpath $PYTHONPATH
set -g _sealift_pythonhome $PYTHONHOME
function sealift_deactivate
    set -gx PATH $_sealift_path
    test -n "$_sealift_pythonpath"; and set -gx PYTHONPATH $_sealift_pythonpath
    test -n "$_sealift_pythonhome"; and set -gx PYTHONHOME $_sealift_pythonhome
    set -e SEALIFT_PREFIX
    set -e PYTHONNOUSERSITE
    for name in $_sealift_set
        set -e $name
    end
    set -e _sealift_set
    functions -e sealift_deactivate
end
set -e PYTHONPATH
set -e PYTHONHOME
set -gx SEALIFT_PREFIX $here
set -gx PYTHONNOUSERSITE 1
set -gx PATH "$here/current/bin" $PATH
@VARIABLES@)fish";

constexpr std::string_view kCsh = R"csh(# For csh and tcsh: source PREFIX/activate.csh; the way back: sealift_deactivate
# These shells cannot tell where this file lies. After the prefix was moved: sealift-install switch N writes it again.
setenv SEALIFT_PREFIX @PREFIX@
if ( ! $?_sealift_path ) set _sealift_path = "$PATH"
if ( ! $?_sealift_undo ) set _sealift_undo = ""
alias sealift_deactivate 'setenv PATH "$_sealift_path"; unset _sealift_path; eval "$_sealift_undo"; unset _sealift_undo; unsetenv SEALIFT_PREFIX; unsetenv PYTHONNOUSERSITE; unalias sealift_deactivate; rehash'
unsetenv PYTHONPATH
unsetenv PYTHONHOME
setenv PYTHONNOUSERSITE 1
setenv PATH "${SEALIFT_PREFIX}/current/bin:$_sealift_path"
@VARIABLES@rehash
)csh";

// In each shell: a variable that the user has set is theirs; the others are noted, to be removed again.
std::string in_fish(const bundle::Variables& variables) {
  if (variables.empty()) return {};
  std::string lines =
      "set -g _sealift_set\nset -l cache $HOME/.cache\ntest -n \"$XDG_CACHE_HOME\"; and set cache $XDG_CACHE_HOME\n";
  const auto quote = [](const std::string& text) {
    return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
  };
  for (const auto& [name, value] : variables)
    lines += "if not set -q " + name + "\n    set -gx " + name + " " +
             expanded(value, quote, "\"$here/current\"", "\"$cache\"") + "\n    set -ga _sealift_set " + name +
             "\nend\n";
  return lines;
}

std::string in_csh(const bundle::Variables& variables) {
  if (variables.empty()) return {};
  std::string lines =
      "set _sealift_cache = ~/.cache\n"
      // In a block, since csh looks up every variable of a line, whatever its `if` says.
      "if ( $?XDG_CACHE_HOME ) then\n  set _sealift_cache = \"$XDG_CACHE_HOME\"\nendif\n";
  for (const auto& [name, value] : variables)
    lines += "if ( ! $?" + name + " ) then\n  setenv " + name + " " +
             expanded(
                 value, [](const std::string& text) { return quoted(text, true); }, "\"${SEALIFT_PREFIX}/current\"",
                 "\"$_sealift_cache\"") +
             "\n  set _sealift_undo = \"$_sealift_undo unsetenv " + name + ";\"\nendif\n";
  return lines + "unset _sealift_cache\n";
}

}  // namespace

SmallFiles activation_files(const Prefix& prefix, const GenerationRecord& record) {
  const bundle::Variables variables = variables_for(prefix, record);
  const std::string root = prefix.folder().string();
  SmallFiles files = {
      {prefix.folder() / "activate",
       filled(kSh, {{"PREFIX", quoted(root)}, {"VARIABLES", in_sh(variables, "\"$SEALIFT_PREFIX/current\"")}})},
      {prefix.folder() / "activate.fish", filled(kFish, {{"VARIABLES", in_fish(variables)}})},
      {prefix.folder() / "activate.csh",
       filled(kCsh, {{"PREFIX", quoted(root, true)}, {"VARIABLES", in_csh(variables)}})}};
  for (auto& file : modulefiles_of_current(prefix, record, variables)) files.push_back(std::move(file));
  for (auto& file : modulefiles_of(prefix, record, variables)) files.push_back(std::move(file));
  for (auto& file : kernel_spec(prefix, record)) files.push_back(std::move(file));
  return files;
}

}  // namespace sealift::installer
