// Reads what kubegang-records has stored of jobs, through the API server, which decides what a user
// may see.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/cluster/session.h"
#include "records/record.h"

namespace cli {

// The time that a report is about.
struct TimeWindow {
  base::Instant from{};
  base::Instant until{};
};

struct RecordQuery {
  TimeWindow window{};
  std::string user{};                // "" = all; with the records that name no user
  std::vector<std::int64_t> jobs{};  // numbers of jobs or arrays; empty = all
};

struct RecordedJobs {
  std::vector<records::Record> records;
  std::optional<base::Instant> since{};  // absent: the cluster keeps no records
};

// A part of an answer, for those who show it bit by bit.
struct RecordPage {
  std::vector<records::Record> records;
  base::Instant since{};  // when records begin
  std::string next{};     // asks for the page after it; "": it is the last one
};

// Returns a page of namespace `ns`, "" = all; `next` comes from the page before. kNotFound: the
// cluster keeps no records; kPermissionDenied: the user may not list those.
base::Result<RecordPage> read_record_page(const Session& session, const std::string& ns,
                                          const RecordQuery& query, const std::string& next = "");

// Returns records of all namespaces, or of the session's own if the user may not read the rest;
// none in a cluster without records. Fails if records exist and cannot be read.
base::Result<RecordedJobs> read_records(const Session& session, const RecordQuery& query);

}  // namespace cli
