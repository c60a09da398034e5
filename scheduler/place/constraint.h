// Constraint: what --constraint asks of the nodes' features (4.2.3, 4.2.4). The grammar: features
// joined by & and |, evaluated from left to right without precedence; parentheses, one level;
// feature*n counts nodes; [a|b] means that all nodes come from the same alternative.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sched {

class Constraint {
 public:
  // An empty expression matches everything. kInvalidArgument says where it stopped making sense.
  static base::Result<Constraint> parse(std::string_view expression);

  // Whether a node with these features may be used at all, brackets and counts apart.
  bool matches(const std::vector<std::string>& features) const;

  // [a|b]: the alternatives of which all nodes must be one. Empty = no brackets.
  std::size_t alternatives() const { return alternatives_.size(); }
  bool matches_alternative(std::size_t index, const std::vector<std::string>& features) const;

  // feature*n: so many nodes of them are needed. Such features filter nothing by themselves.
  struct Counted {
    std::string feature;
    int count = 1;
  };
  const std::vector<Counted>& counted() const { return counted_; }
  bool empty() const { return terms_.empty() && alternatives_.empty() && counted_.empty(); }

 private:
  friend class ConstraintParser;
  // A feature, or a parenthesised group of them, and how it is joined to what stands left of it.
  struct Term {
    bool joined_by_or = false;
    std::string feature;
    std::vector<Term> group;  // one level
  };
  static bool evaluate(const std::vector<Term>& terms, const std::vector<std::string>& features);

  std::vector<Term> terms_;
  std::vector<std::string> alternatives_;
  std::vector<Counted> counted_;
};

}  // namespace sched
