// SPDX-License-Identifier: Apache-2.0
// What `lock` needs, small: a job for one wheel that lies beside it, and a script that plays uv.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "packager/host/process.hpp"
#include "packager/lock_job.hpp"
#include "packager/resolve/uv_python.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_wheel.hpp"

namespace sealift::test {

using namespace sealift::packager;
namespace fs = std::filesystem;

inline const fs::path kPython = "/usr/bin/python3.11";

inline bool no_python() {
  if (fs::exists(kPython) && !find_program("patchelf").empty()) return false;
  sealift::test::left_out("needs ", kPython.string(), " and patchelf");
  return true;
}

// A job for one wheel that lies beside it, and a uv that runs no code of packages and always answers with that wheel.
struct Desk {
  TempDir dir;

  explicit Desk(const std::string& glibc = "2.36") {
    const TinyWheel tiny;
    const std::string bytes = make_wheel(tiny);
    write_file(dir / ("wheels/" + tiny.file_name()), bytes);
    write_file(
        dir / "uv",
        "#!/bin/sh\ncase \"$*\" in *canary*) echo '" + std::string(kRunsNothing) +
            "' >&2; exit 1;; esac\nwhile [ \"$1\" != -o ]; do shift; done\ncat > \"$2\" <<'END'\n"
            "lock-version = \"1.0\"\n[[packages]]\nname = \"demo\"\nversion = \"1.0\"\narchive = { path = \"wheels/" +
            tiny.file_name() + "\", hashes = { sha256 = \"" + bundle::sha256(bundle::as_bytes(bytes)).hex() +
            "\" } }\nEND\n");
    fs::permissions(dir / "uv", fs::perms(0755));
    write_file(dir / "job.toml", "name = \"de.mo\"\nversion = 4\n[target]\narch = \"x86_64\"\nglibc = \"" + glibc +
                                     "\"\n[python]\nversion = \"3.11\"\ninterpreter = \"" + kPython.string() +
                                     "\"\nrequirements = [\"demo\"]\nimports = [\"demo\"]\n");
  }
  // One more wheel in uv's answer.
  bundle::Digest add(const TinyWheel& wheel) const {
    const std::string bytes = make_wheel(wheel);
    const bundle::Digest digest = bundle::sha256(bundle::as_bytes(bytes));
    write_file(dir / ("wheels/" + wheel.file_name()), bytes);
    std::string uv = read_file(dir / "uv");
    uv.insert(uv.rfind("END\n"), "[[packages]]\nname = \"" + wheel.name +
                                     "\"\nversion = \"1.0\"\narchive = { path = \"wheels/" + wheel.file_name() +
                                     "\", hashes = { sha256 = \"" + digest.hex() + "\" } }\n");
    write_file(dir / "uv", uv);
    return digest;
  }
  LockResult lock(std::FILE* stream = nullptr) const {
    bundle::Progress progress(stream);
    return lock_job({.job = dir / "job.toml", .cache = dir / "cache", .uv = dir / "uv"}, progress);
  }
};

}  // namespace sealift::test
