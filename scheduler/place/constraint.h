// Constraint: what --constraint asks of the nodes' features (4.2.3, 4.2.4). The grammar: features
// joined by & and |, evaluated from left to right without precedence; parentheses, one level;
// feature*n counts nodes; [a|b] means that all nodes come from the same alternative.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "scheduler/model/node_set.h"

namespace sched {

class Constraint {
 public:
  // Reads an expression; an empty one matches everything. kInvalidArgument says where it is wrong.
  static base::Result<Constraint> parse(std::string_view expression);

  // Returns true if a node with these features may be used at all, brackets and counts apart.
  bool matches(const std::vector<std::string>& features) const;
  // Does the same for many nodes at once: those out of `all` that match. `nodes_with(feature)`
  // returns the nodes that have it. Cost: O(nodes / 64) for each feature of the expression.
  template <typename NodesWith>
  NodeSet matching(const NodeSet& all, const NodesWith& nodes_with) const {
    return terms_.empty() ? all : evaluate(terms_, nodes_with) & all;
  }

  // [a|b]: the alternatives of which all nodes must be one. Empty = no brackets.
  std::size_t alternatives() const { return alternatives_.size(); }
  const std::string& alternative(std::size_t index) const { return alternatives_[index]; }

  // feature*n: n nodes of them are needed. Such features filter nothing by themselves.
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
  // REQUIRES: at least one term.
  template <typename NodesWith>
  static NodeSet evaluate(const std::vector<Term>& terms, const NodesWith& nodes_with) {
    NodeSet value;
    for (const Term& term : terms) {
      NodeSet holds =
          term.group.empty() ? nodes_with(term.feature) : evaluate(term.group, nodes_with);
      if (&term == &terms.front()) {
        value = std::move(holds);
      } else if (term.joined_by_or) {
        value |= holds;
      } else {
        value &= holds;
      }
    }
    return value;
  }

  std::vector<Term> terms_;
  std::vector<std::string> alternatives_;
  std::vector<Counted> counted_;
};

}  // namespace sched
