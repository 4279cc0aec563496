// SPDX-License-Identifier: Apache-2.0
// What one check found: an outcome that is never a pass unless something was run, why, who is at fault, and the
// numbers. The value that everything here makes or reads: checks make it, the verdict collects it, the report draws it.
// All that is said, names of figures and culprits too, is said in both languages where it is made: no page translates.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sealift::verify {

/// A statement or a name in both languages of the report.
struct Phrase {
  std::string en, zh;
  Phrase() = default;
  Phrase(std::string english, std::string chinese) : en(std::move(english)), zh(std::move(chinese)) {}
  /// What is the same in both: a machine's name, a unit, what a program said.
  Phrase(std::string of_both) : en(of_both), zh(std::move(of_both)) {}
  Phrase(const char* of_both) : Phrase(std::string(of_both)) {}
  bool operator==(const Phrase&) const = default;
};

/// Adds `more` to what `phrase` says, after a semicolon where it says something.
inline void append(Phrase& phrase, const Phrase& more) {
  phrase.en += (phrase.en.empty() ? "" : "; ") + more.en;
  phrase.zh += (phrase.zh.empty() ? "" : "；") + more.zh;
}

enum class Outcome { Pass, Fail, NotRun };

/// The chapters of the report, in its order.
enum class Part { Installation, Machine, Arithmetic, Communication, Training, Python, Egress };

/// How much is run: about 1, 10 and 60 minutes. A level contains those before it.
enum class Level { Quick, Full, Burn };
inline constexpr std::array kLevelNames{"quick", "full", "burn"};

/// A number beside what it should be.
struct Figure {
  Phrase name;
  double value = 0;
  Phrase unit;
  std::optional<double> at_least, at_most;
  Phrase basis;  ///< where the expectation comes from: "its kind", "its siblings", "the golden run"; may be empty
  bool operator==(const Figure&) const = default;
};

/// A line in a picture.
struct Curve {
  Phrase name;
  std::vector<std::pair<double, double>> points;  ///< x rising
  bool expected = false;                          ///< drawn as what it should be
  bool operator==(const Curve&) const = default;
};

/// Curves over one pair of axes.
struct Graph {
  Phrase title, x, y;  ///< axes with their units: "step", "bus bandwidth in GB/s"
  bool log_x = false, log_y = false;
  std::vector<Curve> curves;
  bool operator==(const Graph&) const = default;
};

/// A value for each pair, drawn as colours: the bandwidth between nodes.
struct Matrix {
  Phrase title, unit;
  std::vector<Phrase> rows, columns;
  std::vector<std::optional<double>> values;  ///< row by row; nothing: not measured
  bool operator==(const Matrix&) const = default;
};

/// What was read: a driver, a transport, a version.
struct Fact {
  Phrase name, value;
  bool operator==(const Fact&) const = default;
};

/// The result of one check.
struct Check {
  std::string name;  ///< "communication.all_reduce": its part, a dot, what it is; the same on every site
  Part part = Part::Installation;
  Phrase title;  ///< what it shows
  Outcome outcome = Outcome::NotRun;
  Phrase reason;                 ///< why it failed or was not run; of a pass, what was seen
  std::vector<Phrase> at_fault;  ///< ranks, nodes, devices, files: "rank 3 on gpu07 (cuda:3)"
  double seconds = 0;
  std::vector<Figure> figures;
  std::vector<Graph> graphs;
  std::vector<Matrix> matrices;
  std::vector<Fact> facts;
  bool operator==(const Check&) const = default;
};

}  // namespace sealift::verify
