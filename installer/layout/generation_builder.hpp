// SPDX-License-Identifier: Apache-2.0
// Makes the names of a generation while it is still being laid out: hard links into the store, or copies where the file
// system has no hard links. Behind the layout, so that names are made while records are still being read.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "installer/disk/disk.hpp"
#include "installer/layout/layout.hpp"

namespace sealift::installer {

// add() makes folders itself and leaves all else to `threads` - 1 other threads; finish() helps them. Destroying an
// unfinished one stops them; the caller then removes what was made.
class GenerationBuilder {
 public:
  using Name = Layout::value_type;

  GenerationBuilder(std::filesystem::path generation, Disk& disk, unsigned threads);  // makes the folder `generation`
  GenerationBuilder(const GenerationBuilder&) = delete;
  GenerationBuilder& operator=(const GenerationBuilder&) = delete;
  ~GenerationBuilder();

  // A folder before the names in it. `name` must outlive this, or finish().
  void add(const Name& name);
  // After the last add(). Throws the first failure once all threads have stopped.
  void finish();
  // Files of the store that did not have their stamp, so that their bytes were hashed before they were used.
  std::uint64_t hashed() const { return hashed_.size(); }

 private:
  void make_names();  // until none is left and none will come

  const std::filesystem::path generation_;
  Disk& disk_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<const Name*> waiting_;  // from next_ on
  std::size_t next_ = 0;
  bool closed_ = false;  // nothing more is added
  std::exception_ptr failure_;
  std::vector<std::pair<Stamp*, Stamp>> hashed_;  // where a stamp is kept, if anywhere, and what it was when hashed
  std::vector<std::jthread> others_;              // last member, since the threads use all others
};

// Builds a layout that is complete already.
void build_generation(const Layout& layout, const std::filesystem::path& generation, Disk& disk, unsigned threads);

}  // namespace sealift::installer
