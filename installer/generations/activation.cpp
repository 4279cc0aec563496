// SPDX-License-Identifier: Apache-2.0
// Each puts bin/ first in PATH and keeps the user's own Python (PYTHONHOME, PYTHONPATH, ~/.local) out. dash and csh
// cannot find where a sourced file lies, so their files hold the prefix's path at the time of writing; `switch`
// rewrites them after a move.
#include "installer/generations/activation.hpp"

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
  unset SEALIFT_PREFIX PYTHONNOUSERSITE _SEALIFT_PATH _SEALIFT_PYTHONPATH _SEALIFT_PYTHONHOME
  unset -f sealift_deactivate
  hash -r 2>/dev/null || true
}
unset PYTHONPATH PYTHONHOME
SEALIFT_PREFIX=$_sealift_here
PYTHONNOUSERSITE=1
PATH=$SEALIFT_PREFIX/current/bin:$PATH
export SEALIFT_PREFIX PYTHONNOUSERSITE PATH
unset _sealift_here
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
    functions -e sealift_deactivate
end
set -e PYTHONPATH
set -e PYTHONHOME
set -gx SEALIFT_PREFIX $here
set -gx PYTHONNOUSERSITE 1
set -gx PATH "$here/current/bin" $PATH
)fish";

constexpr std::string_view kCsh = R"csh(# For csh and tcsh: source PREFIX/activate.csh; the way back: sealift_deactivate
# These shells cannot tell where this file lies. After the prefix was moved: sealift-install switch N writes it again.
setenv SEALIFT_PREFIX @PREFIX@
if ( ! $?_sealift_path ) set _sealift_path = "$PATH"
alias sealift_deactivate 'setenv PATH "$_sealift_path"; unset _sealift_path; unsetenv SEALIFT_PREFIX; unsetenv PYTHONNOUSERSITE; unalias sealift_deactivate; rehash'
unsetenv PYTHONPATH
unsetenv PYTHONHOME
setenv PYTHONNOUSERSITE 1
setenv PATH "${SEALIFT_PREFIX}/current/bin:$_sealift_path"
rehash
)csh";

constexpr std::string_view kLua = R"lua(-- For Lmod: module use PREFIX/modulefiles; module load @NAME@
local prefix = myFileName():match("^(.*)/modulefiles/[^/]*$")
whatis("Name: @NAME@, whatever generation is current")
help([[The Python environment in PREFIX/current, installed by sealift-install.]])
unsetenv("PYTHONPATH")
unsetenv("PYTHONHOME")
setenv("PYTHONNOUSERSITE", "1")
setenv("SEALIFT_PREFIX", prefix)
prepend_path("PATH", pathJoin(prefix, "current", "bin"))
)lua";

std::string replaced(std::string_view text, std::string_view word, const std::string& by) {
  std::string out(text);
  for (std::size_t at = 0; (at = out.find(word, at)) != out.npos; at += by.size()) out.replace(at, word.size(), by);
  return out;
}

// In single quotes; `!` is history even there in csh.
std::string quoted(const std::string& text, bool csh) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '!' && csh)
      out += "\\!";
    else
      out += c;
  }
  return out + "'";
}

}  // namespace

SmallFiles activation_files(const Prefix& prefix, const std::string& name) {
  const std::string root = prefix.folder().string();
  return {{prefix.folder() / "activate", replaced(kSh, "@PREFIX@", quoted(root, false))},
          {prefix.folder() / "activate.fish", std::string(kFish)},
          {prefix.folder() / "activate.csh", replaced(kCsh, "@PREFIX@", quoted(root, true))},
          {prefix.folder() / "modulefiles" / (name + ".lua"), replaced(kLua, "@NAME@", name)}};
}

}  // namespace sealift::installer
