// SPDX-License-Identifier: Apache-2.0
// A program that goes on behind the command that started it: the command ends once what it was asked for is there, with
// the result, or with the error and its exit code.
#pragma once

namespace sealift::installer {

class Background {
 public:
  // The rest of the program runs in a child, in a session of its own. What called us waits for ready(), or for the
  // child's end, and then ends alike. Before any thread was started.
  Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();

  // Lets the waiting command end with 0. From here on stdin, stdout and stderr lead nowhere.
  void ready();

 private:
  int waiting_ = -1;  // a pipe to the command
};

}  // namespace sealift::installer
