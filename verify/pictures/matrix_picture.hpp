// SPDX-License-Identifier: Apache-2.0
// A Matrix as SVG: one hue from light to dark, so that it reads in black and white, with its scale and its values.
// Between a check and the page.
// A matrix above 32 rows or columns is drawn in blocks; each block shows its most unusual value, so none is averaged
// away.
#pragma once

#include "verify/wording/words.hpp"

namespace sealift::verify {

inline constexpr std::size_t kMostCells = 32;  ///< rows, and columns, of one picture

/// A matrix of at most kMostCells rows and columns. A block of `rows_per_cell` × `columns_per_cell` values is named by
/// its first and last row and column, and has the value that is farthest from the median of all finite values.
struct Blocks {
  Matrix matrix;
  std::size_t rows_per_cell = 1, columns_per_cell = 1;
};
Blocks in_blocks(const Matrix& matrix);

/// A <figure> with the picture, its scale and, where not each value is written, the lowest and highest by name.
std::string matrix_picture(const Matrix& matrix, Language language);

}  // namespace sealift::verify
