// SPDX-License-Identifier: Apache-2.0
// The sitecustomize and its notes.
// See python_stack.hpp.
// It hands over to the sitecustomize that it stands before, so that the program runs as without it.
#include "verify/egress/python_stack.hpp"

#include <cstdlib>
#include <fstream>

namespace sealift::verify {
namespace {

constexpr char kNote[] = R"(import _thread, os, sys

def _note_stacks(folder):
    events = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
              "socket.gethostbyaddr", "socket.getnameinfo"}
    def note(event, arguments):
        if event not in events:
            return
        try:
            lines, frame = [event + " " + repr(arguments[1:] if event[7:] in ("connect", "sendto", "sendmsg") else
                                               arguments)[:200]], sys._getframe(1)
            while frame is not None and len(lines) < 30:
                code = frame.f_code
                lines.append(f"{code.co_filename}:{frame.f_lineno} in {code.co_name}")
                frame = frame.f_back
            path = os.path.join(folder, str(_thread.get_native_id()))
            file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            os.write(file, "\n".join(lines).encode("utf-8", "replace"))
            os.close(file)
        except Exception:
            pass
    sys.addaudithook(note)

if not hasattr(sys, "_sealift_notes"):
    sys._sealift_notes = os.environ["SEALIFT_NOTES"]
    _note_stacks(sys._sealift_notes)
)";

constexpr char kHandOver[] = R"(
_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _here]
sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize
except ImportError:
    pass
)";

/// What `variables` leave of a variable.
std::string left_of(const char* variable, const std::vector<Variable>& variables) {
  const char* inherited = std::getenv(variable);
  std::string text = inherited ? inherited : "";
  for (const auto& [name, value] : variables) {
    if (name == variable) text = value.value_or("");
  }
  return text;
}

std::string with_rest(const std::string& first, const std::string& rest) {
  return first + (rest.empty() ? "" : ':' + rest);
}

/// What the Python of an installed prefix adds by itself (installer/start): what was set for it by this name, else
/// PYTHONPATH where somebody activated the prefix.
std::string path_of_installed(const std::vector<Variable>& variables) {
  const auto asked = left_of("SEALIFT_PYTHONPATH", variables);
  if (!asked.empty()) return asked;
  return left_of("SEALIFT_PREFIX", variables).empty() ? std::string() : left_of("PYTHONPATH", variables);
}

}  // namespace

PythonStacks::PythonStacks(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
  std::ofstream out(folder_ / "sitecustomize.py");
  out << kNote << kHandOver;
  std::ofstream(folder_ / "note.py") << kNote;
}

std::vector<Variable> PythonStacks::variables(const std::vector<Variable>& variables) const {
  auto all = variables;
  all.emplace_back("SEALIFT_NOTES", folder_.string());
  all.emplace_back("PYTHONPATH", with_rest(folder_.string(), left_of("PYTHONPATH", variables)));
  all.emplace_back("SEALIFT_PYTHONPATH", with_rest(folder_.string(), path_of_installed(variables)));
  return all;
}

std::string PythonStacks::take(std::int64_t thread) const {
  const auto file = folder_ / std::to_string(thread);
  std::string text;
  {
    std::ifstream in(file, std::ios::binary);
    if (!in) return text;
    text.resize(8192);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
  }
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return text;
}

}  // namespace sealift::verify
