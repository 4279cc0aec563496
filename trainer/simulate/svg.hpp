// SPDX-License-Identifier: Apache-2.0
// The few elements of SVG that pictures of simulated steps are made of.
// drawing.cpp draws timelines of them, and the test of the documentation's pictures draws curves.
// Coordinates are in pixels from the upper left corner; one digit behind the point keeps files small.
#pragma once

#include <string>

namespace sealift::trainer {

constexpr double kSvgWidth = 960;

/// `value` with this many digits behind the point.
std::string svg_number(double value, int digits = 1);

/// Text within SVG: names come from models.
std::string svg_escaped(const std::string& text);

/// The beginning of a file: a white page, kSvgWidth wide.
std::string svg_head(double height);

/// `more`: further attributes, with a space in front.
std::string svg_text(double x, double y, const std::string& text, const std::string& more = "");

std::string svg_line(double x1, double y1, double x2, double y2, const char* stroke);

}  // namespace sealift::trainer
