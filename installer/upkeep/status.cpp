// SPDX-License-Identifier: Apache-2.0
// Reads one small file a generation and hashes nothing, so it is quick on any prefix. Whether files were changed since
// is the doctor's question.
#include "installer/upkeep/status.hpp"

#include <set>

#include "installer/activation/variables.hpp"
#include "installer/activation/venvs.hpp"
#include "installer/generations/generation.hpp"
#include "installer/generations/pins.hpp"
#include "installer/prefix/require_prefix.hpp"

namespace sealift::installer {

Status status_of(const Prefix& prefix) {
  require_prefix(prefix);
  Status status{.prefix = prefix.folder(),
                .current = current_generation(prefix),
                .generations = {},
                .failed = failed_generation(prefix)};
  const std::set<unsigned> pinned = pinned_generations(prefix);
  const KnownVenvs venvs = known_venvs(prefix);
  for (const unsigned number : generation_numbers(prefix)) {
    Status::Generation generation{.number = number, .record = {}, .fault = {}, .pinned = pinned.contains(number)};
    const auto [first, last] = venvs.equal_range(number);
    for (auto venv = first; venv != last; ++venv) generation.venvs.push_back(venv->second);
    try {
      generation.variables = variables_of(prefix.generation(number));
      generation.record = read_generation_record(prefix.generation(number), number);
    } catch (const bundle::Error& error) {
      generation.fault = error.facts().what;
    }
    status.generations.push_back(std::move(generation));
  }
  return status;
}

}  // namespace sealift::installer
