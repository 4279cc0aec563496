// SPDX-License-Identifier: Apache-2.0
// A check in two halves: what each rank measures, and how rank 0 judges all that was measured.
// A room gives a list of them; the conductor calls them in order and sends the measurements to rank 0.
// The halves are apart so that judging (outliers, differences between devices) is a pure function that tests feed.
#pragma once

#include "verify/conduct/site.hpp"

#include <functional>
#include <stdexcept>

namespace sealift::verify {

/// Thrown by a measurement that cannot be made here; the check is then NOT RUN for that rank, with this reason.
struct NotRun : std::runtime_error {
  explicit NotRun(Phrase why) : std::runtime_error(why.en), reason(std::move(why)) {}
  Phrase reason;
};

/// What one rank measured. Exactly one of `not_run`, `error` and `values` is meant.
struct Measured {
  std::int64_t rank = 0;
  std::string host;
  std::string device;
  std::optional<Phrase> not_run;
  std::optional<std::string> error;  ///< the text of what it threw
  nlohmann::json values;
};

/// "rank 3 on gpu07 (cuda:3)"
inline Phrase name_of(const Measured& measured) {
  const auto rank = std::to_string(measured.rank);
  return {"rank " + rank + " on " + measured.host + " (" + measured.device + ")",
          measured.host + " 上的进程 " + rank + "（" + measured.device + "）"};
}

/// "models/a.safetensors on gpu07"
inline Phrase on_host(const Phrase& what, const std::string& host) {
  return {what.en + " on " + host, host + " 上的 " + what.zh};
}

inline bool has_values(const Measured& measured) {
  return !measured.not_run && !measured.error && measured.values.is_object();
}

inline std::vector<const Measured*> with_values(const std::vector<Measured>& all) {
  std::vector<const Measured*> some;
  for (const auto& measured : all) {
    if (has_values(measured)) some.push_back(&measured);
  }
  return some;
}

/// Who measures.
enum class Who {
  EveryRank,  ///< together: collectives and child jobs of the whole world are allowed
  OneOfHost,  ///< the first rank of each host; the others wait
  FirstRank,  ///< rank 0 alone
};

struct CheckKind {
  std::string name;  ///< as in Check
  Part part = Part::Installation;
  Level from = Level::Quick;  ///< run at this level and above
  Phrase title;
  Who who = Who::EveryRank;
  std::function<nlohmann::json(const Site&)> measure;
  /// Sets outcome, reason, at_fault, figures, pictures. Called on rank 0 when at least one rank has values; ranks that
  /// failed or could not measure are among `all`, and the conductor has already made the check FAIL if one threw an
  /// error.
  std::function<void(const std::vector<Measured>& all, const Site& site, Check& check)> judge;
  bool of_whole_run = false;  ///< judges what the others did: never taken from a record
};

}  // namespace sealift::verify
