// SPDX-License-Identifier: Apache-2.0
// Makes the names of a generation while it is still being laid out: hard links into the store, copies where there can
// be none.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "installer/disk/disk.hpp"
#include "installer/layout/layout.hpp"

namespace sealift::installer {

// add() makes folders itself and leaves all else to the other `threads` - 1; finish() helps them. Destroying one that
// is not finished stops them; what is there then is for its folder's owner to remove.
class GenerationBuilder {
 public:
  using Name = Layout::value_type;

  GenerationBuilder(std::filesystem::path root, Disk& disk, unsigned threads);  // makes the folder `root`
  GenerationBuilder(const GenerationBuilder&) = delete;
  GenerationBuilder& operator=(const GenerationBuilder&) = delete;
  ~GenerationBuilder();

  // After the folder it is in. `name` stays where it is until this is finished or destroyed.
  void add(const Name& name);
  // Once everything was added. Throws the first failure, when all threads have stopped.
  void finish();

 private:
  void take_turns();  // until there is nothing left and nothing will come

  const std::filesystem::path root_;
  Disk& disk_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<const Name*> waiting_;  // from next_ on
  std::size_t next_ = 0;
  bool closed_ = false;  // nothing is added any more
  std::exception_ptr failure_;
  std::vector<std::jthread> others_;  // last, since they use all of this
};

// All of a layout that is made already.
void build_generation(const Layout& layout, const std::filesystem::path& root, Disk& disk, unsigned threads);

}  // namespace sealift::installer
