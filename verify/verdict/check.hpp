// SPDX-License-Identifier: Apache-2.0
// What one check found: an outcome that is never a pass unless something was run, the reason in both languages of the
// report, and the numbers and curves behind it.
// The value that everything in this program makes or reads: checks make it, the verdict collects it, the report draws
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sealift::verify {

/// One statement in both languages of the report.
struct Sentence {
  std::string en, zh;
  bool operator==(const Sentence&) const = default;
};

enum class Outcome { Pass, Fail, NotRun };

/// The chapters of the report, in its order.
enum class Part { Installation, Machine, Arithmetic, Communication, Training, Python, Egress };

/// How much is run: about 1, 10 and 60 minutes. A level contains those before it.
enum class Level { Quick, Full, Burn };

/// A number beside what it should be.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> at_least, at_most;
  std::string basis;  ///< where the expectation comes from: "its kind", "its siblings", "the golden run"; may be empty
  bool operator==(const Figure&) const = default;
};

/// A line in a picture.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x rising
  bool expected = false;                          ///< drawn as what it should be
  bool operator==(const Curve&) const = default;
};

/// Curves over one pair of axes.
struct Graph {
  std::string title, x, y;  ///< axes with their units: "step", "bus bandwidth in GB/s"
  bool log_x = false, log_y = false;
  std::vector<Curve> curves;
  bool operator==(const Graph&) const = default;
};

/// A value for each pair, drawn as colours: the bandwidth between nodes.
struct Matrix {
  std::string title, unit;
  std::vector<std::string> rows, columns;
  std::vector<std::optional<double>> values;  ///< row by row; nothing: not measured
  bool operator==(const Matrix&) const = default;
};

/// The result of one check.
struct Check {
  std::string name;  ///< "communication.all_reduce": its part, a dot, what it is; the same on every site
  Part part = Part::Installation;
  Sentence title;  ///< what it shows
  Outcome outcome = Outcome::NotRun;
  Sentence reason;                    ///< why it failed or was not run; of a pass, what was seen
  std::vector<std::string> at_fault;  ///< ranks, nodes, devices, files: "rank 3 on gpu07 (cuda:3)"
  double seconds = 0;
  std::vector<Figure> figures;
  std::vector<Graph> graphs;
  std::vector<Matrix> matrices;
  std::vector<std::pair<std::string, std::string>> facts;  ///< what was read: driver, transport, versions
  bool operator==(const Check&) const = default;
};

}  // namespace sealift::verify
