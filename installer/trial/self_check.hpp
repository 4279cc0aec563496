// SPDX-License-Identifier: Apache-2.0
// The self-check (`--self-test`) of a built generation, before the switch: its interpreter imports what the bundle
// names, its native files load, two processes of its torch communicate. Only programs of the generation are run, and
// those were verified. A step that cannot run here is reported as "not run", with the reason; it never counts as
// passed.
#pragma once

#include <chrono>

#include "bundle/core/json.hpp"
#include "bundle/host/waiver.hpp"
#include "installer/layout/layout.hpp"

namespace sealift::installer {

struct SelfCheck {
  struct Step {
    std::string name;     // "native files"
    bool passed = false;  // else: not run
    std::string detail;   // what was tried, or why it was not

    bool operator==(const Step&) const = default;
  };

  std::vector<std::string> imports;
  std::uint64_t milliseconds = 0;  // of the imports
  std::vector<Step> steps;         // what was tried besides

  // A native file that does not load, and who installed went on without it.
  struct Waived {
    std::string path;
    std::string fault;   // why it does not load
    std::string reason;  // the waiver's

    bool operator==(const Waived&) const = default;
  };
  std::vector<Waived> waived = {};

  // What each part cost by the clock; parts run beside each other. Not in the record.
  struct Took {
    std::string part;
    std::uint64_t milliseconds = 0;
  };
  std::vector<Took> took = {};
};

struct SelfCheckOptions {
  enum class Depth {
    Imports,   // only what the bundle names
    Full,      // and native files, and a two-rank all-reduce
    Training,  // and two steps of the carried sealift-train
  };

  Depth depth = Depth::Full;
  std::string arch = "x86_64";                               // native files for others are not tried
  std::chrono::seconds patience = std::chrono::minutes(10);  // with each program
  unsigned threads = 1;                                      // parts that run at a time
  std::vector<bundle::Waiver> waivers = {};                  // for native files that do not load, and for nothing else
};

// Each part has a folder of its own below `scratch` as HOME and TMPDIR. Of several that fail, the first one counts in
// the order in which they would run one after the other. Throws SelfTest with the end of the program's stderr, and
// Usage for a waiver that names no native file. An environment without imports and libraries is checked without an
// interpreter.
SelfCheck self_check(const bundle::Environment& environment, const Layout& layout,
                     const std::filesystem::path& generation, const std::filesystem::path& scratch,
                     const SelfCheckOptions& options = {});

bundle::Json to_json(const SelfCheck& test);
SelfCheck self_check_from(bundle::JsonObject object);

}  // namespace sealift::installer
