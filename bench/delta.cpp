// SPDX-License-Identifier: Apache-2.0
// What a wheel costs as a patch on its older version: makes the patch by the code that packs, and then every file of
// the wheel by the code that installs, compared with RECORD. compare_delta.py says which wheels.
//   sealift-bench-delta NEW.whl OLD.whl SCRATCH   ->   patch, wheel, same, patched, seconds to make and to apply, MB
#include <fcntl.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>

#include "sealift/bundle/core/mapped_file.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/wheel/patched_wheel.hpp"
#include "sealift/bundle/wheel/wheel_patch.hpp"

using namespace sealift::bundle;
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Every file of the wheel from its patch; throws unless RECORD has its digest. Returns the seconds without unpacking
// the older wheel, which a store has unpacked.
double apply(const fs::path& patch, std::uint64_t size, const fs::path& name, Wheel& older, const fs::path& scratch) {
  std::map<Digest, const WheelFile*> had;
  for (const WheelFile& file : older.files()) had.emplace(file.sha256, &file);
  const Clock::time_point begin = Clock::now();
  double unpacking = 0;
  FileSource stored(patch);
  PatchedWheel source(stored, size);
  Wheel wheel(source, name.filename().string());
  for (const WheelFile& file : wheel.files()) {
    const std::optional<Digest> from = source.base_of(file);
    if (!from) {
      wheel.extract(file, [](ByteView) {});
      continue;
    }
    const Clock::time_point unpack = Clock::now();
    const WheelFile& base = *had.at(*from);
    const fs::path path = scratch / "base";
    fs::remove(path);
    {
      OutputFile output(path);
      older.extract(base, [&](ByteView piece) { output.write(piece); });
    }
    const MappedFile mapped(Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), base.member.size, path);
    unpacking += seconds_since(unpack);
    source.rebuild(file, mapped.bytes(), [](ByteView) {});
  }
  return seconds_since(begin) - unpacking;
}

void measure(const fs::path& wheel, const fs::path& older, const fs::path& scratch) {
  const fs::path out = scratch / "patch";
  fs::remove(out);
  FileSource after(wheel), before(older);
  const PublishedWheel fresh{.source = after, .file_name = wheel.filename().string()};
  const PublishedWheel base{.source = before, .file_name = older.filename().string()};
  const Clock::time_point begin = Clock::now();
  const std::optional<WheelPatch> made = make_wheel_patch(fresh, base, scratch, out);
  const double making = seconds_since(begin);
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  Wheel unpacked(before, base.file_name);
  const double applying = made ? apply(out, after.size(), wheel, unpacked, scratch) : 0;
  std::printf("%llu\t%llu\t%zu\t%zu\t%.1f\t%.1f\t%ld\n",
              static_cast<unsigned long long>(made ? made->size : after.size()),
              static_cast<unsigned long long>(after.size()), made ? made->same : 0, made ? made->patched : 0, making,
              applying, used.ru_maxrss / 1024);
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 4) return std::fprintf(stderr, "usage: sealift-bench-delta NEW.whl OLD.whl SCRATCH\n"), 2;
  measure(arguments[1], arguments[2], arguments[3]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
