// SPDX-License-Identifier: Apache-2.0
// Lets Python programs say from where they call: a sitecustomize that notes the stack at each audit event of a socket.
// Beside the watch; it reads the note of a thread when that thread's call arrives.
// Python's audit events (PEP 578) need no signal, which would interrupt the very call that is watched.
#pragma once

#include "verify/conduct/child.hpp"

namespace sealift::verify {

/// Python in front of a script of ours: an installed prefix takes PYTHONPATH, and so the sitecustomize, from its
/// Python.
inline constexpr const char* kNoteStacks =
    "import os\n"
    "if os.path.exists(os.environ.get('SEALIFT_NOTES', '') + '/note.py'):\n"
    "    exec(open(os.environ['SEALIFT_NOTES'] + '/note.py').read(), {})\n";

class PythonStacks {
 public:
  /// Makes `folder`, which the notes and the sitecustomize are put into.
  explicit PythonStacks(std::filesystem::path folder);

  /// What a watched program needs in its environment, on top of its own `variables`.
  std::vector<Variable> variables(const std::vector<Variable>& variables) const;

  /// The last note of a thread, which is then removed; empty where there is none. At most 8 KiB.
  std::string take(std::int64_t thread) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace sealift::verify
