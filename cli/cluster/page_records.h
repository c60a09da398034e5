// The page's view of the time before it began: which job ran where, as records have it, asked
// with the reader's own rights.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/cluster/records.h"
#include "cli/cluster/session.h"

namespace cli {

struct PageRecordsQuestion {
  RecordQuery query{};
  std::string ns{};  // "": all
  std::string next{};
};

// Reads what page_records() takes. kInvalidArgument names the field. Pure.
base::Result<PageRecordsQuestion> read_page_records_question(std::string_view text);

// Returns a page of the runs that were there in a time, as {"since":µs,"next":"…","runs":[…]}; each
// run is {"uid","restart","task" (of an array),"job"}, with a job as on the board (page_job).
// `text` is a JSON object: "from" and "until" in µs, "ns" (absent: all namespaces), "jobs" (numbers
// of jobs or arrays; absent: all), "next" as the page before has said it. Runs without an end or
// without nodes are left out: the board has the former. kNotFound: there are no records;
// kPermissionDenied: the reader may not list those.
base::Result<std::string> page_records(const Session& session, std::string_view text);

}  // namespace cli
