// SPDX-License-Identifier: Apache-2.0
// Two chunks a part: its threads read few chunks that others need too, and even a wheel of small files has parts
// enough.
#include "installer/store/shared_wheel.hpp"

namespace sealift::installer {

SharedWheel::SharedWheel(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry,
                         const std::filesystem::path& folder, Disk& disk, bundle::Progress& progress)
    : bundle_(bundle),
      entry_(entry),
      writer_(item_writer(entry, folder, disk, progress)),
      source_(bundle.stored(entry)),
      wheel_(*source_, bundle, entry, writer_),
      parts_(wheel_.parts(2 * bundle.payload().payload().chunk_size)) {
  for (const ClaimedWheel::Part& part : parts_) bundle.expect_part(entry, part.offset, part.stored);
  source_.reset();  // what it has read of the wheel's end goes to the parts
}

void SharedWheel::unpack(const ClaimedWheel::Part& part) const {
  const std::unique_ptr<bundle::ByteSource> source = bundle_.stored_part(entry_, part.offset, part.stored);
  FileOutput output(writer_.disk());
  for (std::size_t i = part.first; i < part.first + part.count; ++i) wheel_.write(wheel_.files()[i], *source, output);
}

Unpacked SharedWheel::finish() {
  wheel_.write_own();
  writer_.finish();
  return {.record = writer_.record_digest(), .stamps = writer_.take_stamps()};
}

}  // namespace sealift::installer
