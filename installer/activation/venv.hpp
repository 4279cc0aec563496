// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install venv`: a virtual environment on top of a generation, for packages from outside of
// bundles. It sees the generation's packages, adds its own, and names generations/NNNN, so that no switch changes it.
// Made without Python, pip or a network.
#pragma once

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

struct VenvOptions {
  Prefix prefix;
  std::filesystem::path folder;
  unsigned generation = 0;  // 0: the current one
};

struct Venv {
  std::filesystem::path folder;
  unsigned generation = 0;
  bool known = false;      // to gc, which leaves the generation alone while the folder is there
  bool has_pip = false;    // the generation brings pip
  std::string repository;  // that pip and uv ask; empty: none is known
};

// The folder must be new, empty, or made by this before: then it is put on the generation that is asked for and keeps
// its packages. Writes below it and, for the prefix's owner, a name into PREFIX/venvs. Throws Missing when there is no
// such generation or it brings no interpreter, Conflict for any other folder and for a link in it where a folder must
// be, Usage for a place that cannot be used, or that another user could change.
Venv make_venv(const VenvOptions& options, Disk& disk);

}  // namespace sealift::installer
