// SPDX-License-Identifier: Apache-2.0
// libsquashfs leaves to its caller what a compressor is. Its own ones hang together: who links zstd's links gzip's,
// xz's, lzma's and lz4's libraries, too. So libzstd stands here behind its interface, and nothing else.
#include "bundle/image/squashfs.hpp"

#include <zstd.h>
#include <zstd_errors.h>

#include <new>

#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle::detail {

namespace {

// The fastest. What a higher level saves of an environment's bytes does not pay for the minutes that it takes.
constexpr int kLevel = 1;

struct Freer {
  void operator()(ZSTD_CCtx* work) const { ZSTD_freeCCtx(work); }
};

// One at a time for a thread that compresses; uncompressing keeps nothing between two calls.
struct Zstd : sqfs_compressor_t {
  std::uint32_t block_size = 0;
  std::unique_ptr<ZSTD_CCtx, Freer> work;
};

sqfs_s32 compress(sqfs_compressor_t* base, const sqfs_u8* in, sqfs_u32 size, sqfs_u8* out, sqfs_u32 room) {
  const std::size_t count = ZSTD_compressCCtx(static_cast<Zstd*>(base)->work.get(), out, room, in, size, kLevel);
  if (ZSTD_isError(count) != 0)
    return ZSTD_getErrorCode(count) == ZSTD_error_dstSize_tooSmall ? 0 : SQFS_ERROR_COMPRESSOR;
  return count < size ? static_cast<sqfs_s32>(count) : 0;  // 0: stored as it is
}

sqfs_s32 uncompress(sqfs_compressor_t*, const sqfs_u8* in, sqfs_u32 size, sqfs_u8* out, sqfs_u32 room) {
  const std::size_t count = ZSTD_decompress(out, room, in, size);
  return ZSTD_isError(count) != 0 ? SQFS_ERROR_COMPRESSOR : static_cast<sqfs_s32>(count);
}

sqfs_object_t* copy(const sqfs_object_t* object);

// nullptr when there is no memory.
Zstd* made(std::uint32_t block_size, bool uncompresses) {
  std::unique_ptr<Zstd> zstd(new (std::nothrow) Zstd{});
  if (!zstd) return nullptr;
  zstd->block_size = block_size;
  zstd->base.copy = copy;
  zstd->base.destroy = [](sqfs_object_t* object) { delete reinterpret_cast<Zstd*>(object); };
  zstd->get_configuration = [](const sqfs_compressor_t* base, sqfs_compressor_config_t* options) {
    *options = {};
    options->id = SQFS_COMP_ZSTD;
    options->block_size = static_cast<const Zstd*>(base)->block_size;
    options->level = kLevel;
  };
  // The level is of interest to who appends to an image; readers do not ask for it.
  zstd->write_options = [](sqfs_compressor_t*, sqfs_file_t*) { return 0; };
  zstd->read_options = [](sqfs_compressor_t*, sqfs_file_t*) { return 0; };
  zstd->do_block = uncompresses ? uncompress : compress;
  if (uncompresses) return zstd.release();
  zstd->work.reset(ZSTD_createCCtx());
  return zstd->work ? zstd.release() : nullptr;
}

sqfs_object_t* copy(const sqfs_object_t* object) {
  const Zstd* const zstd = reinterpret_cast<const Zstd*>(object);
  Zstd* const twin = made(zstd->block_size, zstd->do_block == uncompress);
  return twin == nullptr ? nullptr : &twin->base;
}

}  // namespace

std::string sqfs_words(int error) {
  switch (error) {
    case SQFS_ERROR_ALLOC:
      return "out of memory";
    case SQFS_ERROR_IO:
      return "an input or output error";
    case SQFS_ERROR_COMPRESSOR:
      return "a block that cannot be compressed or uncompressed";
    case SQFS_ERROR_CORRUPTED:
      return "tables that contradict each other";
    case SQFS_ERROR_UNSUPPORTED:
      return "a feature that is not supported";
    case SQFS_ERROR_OVERFLOW:
      return "a number that is too large";
    case SQFS_ERROR_OUT_OF_BOUNDS:
      return "a place outside of the image";
    default:
      return "error " + std::to_string(error) + " of libsquashfs";
  }
}

SqfsObject<sqfs_compressor_t> zstd_compressor(std::uint32_t block_size, bool uncompresses) {
  if (Zstd* const zstd = made(block_size, uncompresses)) return SqfsObject<sqfs_compressor_t>(zstd);
  throw Error(ErrorCode::Io, {.what = "no compressor can be made", .got = sqfs_words(SQFS_ERROR_ALLOC)});
}

}  // namespace sealift::bundle::detail
