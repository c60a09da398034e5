#include "slurm/conf_actions.h"

#include <algorithm>
#include <array>

namespace slurm {
namespace {

// The list is of slurm.conf(5) and of its older versions, without the keys that change which job
// runs where. Among them are those of power saving: in Kubernetes nodes come and go by the cluster
// autoscaler.
// clang-format off
constexpr std::array<std::string_view, 186> kForeign = {
    "AccountingStorageBackupHost", "AccountingStorageExternalHost", "AccountingStorageHost",
    "AccountingStorageLoc", "AccountingStorageParameters", "AccountingStoragePass",
    "AccountingStoragePort", "AccountingStorageTRES", "AccountingStorageType",
    "AccountingStorageUser", "AccountingStoreFlags", "AccountingStoreJobComment",
    "AcctGatherEnergyType", "AcctGatherFilesystemType", "AcctGatherInfinibandType",
    "AcctGatherInterconnectType", "AcctGatherNodeFreq", "AcctGatherProfileType",
    "AuthAltParameters", "AuthAltTypes", "AuthInfo", "AuthType", "BackupAddr", "BackupController",
    "BatchStartTimeout", "BcastExclude", "BcastParameters", "CacheGroups", "CheckpointType",
    "CliFilterPlugins", "ClusterName", "CommunicationParameters", "ControlAddr", "ControlMachine",
    "CpuBind", "CpuFreqDef", "CpuFreqGovernors", "CredType", "CryptoType", "DebugFlags",
    "DefaultStorageHost", "DefaultStorageLoc", "DefaultStoragePass", "DefaultStoragePort",
    "DefaultStorageType", "DefaultStorageUser", "DisableRootJobs", "EioTimeout", "Epilog",
    "EpilogMsgTime", "EpilogSlurmctld", "EpilogTimeout", "ExtSensorsFreq", "ExtSensorsType",
    "FastSchedule", "FederationParameters", "FirstJobId", "FrontEndName", "GetEnvTimeout",
    "GpuFreqDef", "GroupUpdateForce", "GroupUpdateTime", "HashPlugin", "HealthCheckInterval",
    "HealthCheckNodeState", "HealthCheckProgram", "Hidden", "InactiveLimit",
    "InteractiveStepOptions", "JobAcctGatherFrequency", "JobAcctGatherParams",
    "JobAcctGatherType", "JobCheckpointDir", "JobCompHost", "JobCompLoc", "JobCompParams",
    "JobCompPass", "JobCompPassScript", "JobCompPort", "JobCompType", "JobCompUser",
    "JobContainerType", "JobCredentialPrivateKey", "JobCredentialPublicCertificate",
    "JobFileAppend", "KeepAliveTime", "KillOnBadExit", "LaunchParameters", "LaunchType",
    "LogTimeFormat", "MailDomain", "MailProg", "MaxDBDMsgs", "MaxJobId", "MaxNodeCount",
    "MaxStepCount", "MaxTasksPerNode", "MemLimitEnforce", "MinJobAge", "MpiDefault", "MpiParams",
    "MsgAggregationParams", "NodeFeaturesPlugins", "PluginDir", "PlugStackConfig",
    "PowerDownOnIdle", "PowerParameters", "PowerPlugin", "PrEpParameters", "PrEpPlugins",
    "PrivateData", "ProctrackType", "Prolog", "PrologEpilogTimeout", "PrologFlags",
    "PrologSlurmctld", "PrologTimeout", "PropagatePrioProcess", "PropagateResourceLimits",
    "PropagateResourceLimitsExcept", "RebootProgram", "ReconfigFlags", "ResumeFailProgram",
    "ResumeProgram", "ResumeRate", "ResumeTimeout", "ReturnToService", "RoutePlugin",
    "SallocDefaultCommand", "SbcastParameters", "SchedulerAuth", "SchedulerPort",
    "SchedulerRootFilter", "ScronParameters", "SlurmctldAddr", "SlurmctldDebug", "SlurmctldHost",
    "SlurmctldLogFile", "SlurmctldParameters", "SlurmctldPidFile", "SlurmctldPlugstack",
    "SlurmctldPort", "SlurmctldPrimaryOffProg", "SlurmctldPrimaryOnProg", "SlurmctldSyslogDebug",
    "SlurmctldTimeout", "SlurmdDebug", "SlurmdLogFile", "SlurmdParameters", "SlurmdPidFile",
    "SlurmdPort", "SlurmdSpoolDir", "SlurmdSyslogDebug", "SlurmdTimeout", "SlurmdUser",
    "SlurmSchedLogFile", "SlurmSchedLogLevel", "SlurmUser", "SrunEpilog", "SrunPortRange",
    "SrunProlog", "StateSaveLocation", "SuspendExcNodes", "SuspendExcParts", "SuspendExcStates",
    "SuspendProgram", "SuspendRate", "SuspendTime", "SuspendTimeout", "SwitchParameters",
    "SwitchType", "TaskEpilog", "TaskPluginParam", "TaskProlog", "TCPTimeout", "TLSParameters",
    "TLSType", "TmpFS", "TrackWCKey", "TreeWidth", "UnkillableStepProgram",
    "UnkillableStepTimeout", "UsePAM", "VSizeFactor", "WaitTime", "X11Parameters"};
// clang-format on

}  // namespace

// Judges by a part of the name, since files of other versions and other programs have keys of their
// own.
bool is_secret_key(std::string_view key) {
  for (const std::string_view part : {"pass", "secret", "token", "credential", "auth"}) {
    const auto found =
        std::search(key.begin(), key.end(), part.begin(), part.end(), [](char a, char b) {
          return same_word({&a, 1}, {&b, 1});
        });
    if (found != key.end()) return true;
  }
  return false;
}

// Makes one sentence for all features that Slurm has and kubegang does not, so that users can
// distinguish them from mistakes and know what to do.
base::Error not_supported(const std::string& what) {
  return base::invalid_argument(what + ": not supported yet; leave it out");
}

// The message lists the allowed words, so that a misspelling can be mended without the manual.
base::Error unknown_word(std::string_view what, std::string_view word,
                         std::span<const std::string_view> allowed) {
  std::string message = std::string{what} + " " + in_quotes(word) + ": unknown; allowed are ";
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (i != 0) message += i + 1 == allowed.size() ? " and " : ", ";
    message += allowed[i];
  }
  return base::invalid_argument(message);
}

// Splits at the first "=": a value may have one itself.
std::pair<std::string_view, std::string_view> split_option(std::string_view option) {
  const std::size_t equals = option.find('=');
  if (equals == std::string_view::npos) return {option, {}};
  return {option.substr(0, equals), option.substr(equals + 1)};
}

// Reads the modes of the cluster, partitions and QOS. It refuses the combinations that are wrong at
// all three levels; the callers refuse what is wrong at one level (GANG of a partition, OFF of a
// QOS). ON is the name that SUSPEND had in old versions (C19).
base::Result<PreemptModes> parse_preempt_modes(std::string_view what, std::string_view text) {
  using sched::PreemptMode;
  constexpr std::array<std::pair<std::string_view, PreemptMode>, 5> kModes = {
      {{"OFF", PreemptMode::kOff},
       {"CANCEL", PreemptMode::kCancel},
       {"REQUEUE", PreemptMode::kRequeue},
       {"SUSPEND", PreemptMode::kSuspend},
       {"ON", PreemptMode::kSuspend}}};
  const std::string begin = std::string{what} + " " + in_quotes(text) + ": ";
  PreemptModes modes;
  for (const std::string& word : split(text, ',')) {
    std::optional<PreemptMode> mode;
    for (const auto& [name, value] : kModes) {
      if (same_word(name, word)) mode = value;
    }
    if (mode) {
      if (modes.mode) {  // two modes in one list (C4)
        return base::invalid_argument(begin + "say one of OFF, CANCEL, REQUEUE and SUSPEND");
      }
      modes.mode = mode;
    } else if (same_word(word, "GANG")) {
      modes.gang = true;
    } else if (same_word(word, "WITHIN")) {
      modes.within = true;
    } else if (same_word(word, "PRIORITY")) {
      modes.priority = true;
    } else if (same_word(word, "CHECKPOINT")) {  // of older versions (C20)
      return base::invalid_argument(begin +
                                    "CHECKPOINT was removed from Slurm; say CANCEL or REQUEUE");
    } else if (!same_word(word, "cluster")) {  // "as the cluster's" = nothing given
      return unknown_word(
          what, word,
          {"OFF", "CANCEL", "REQUEUE", "SUSPEND", "GANG", "WITHIN", "PRIORITY"});  // (C19)
    }
  }
  // OFF says that nothing is suspended, GANG that jobs are (C2).
  if (modes.gang && modes.mode == PreemptMode::kOff) {
    return base::invalid_argument(begin +
                                  "OFF and GANG exclude each other; GANG alone only slices");
  }
  // Sharing is the gang's matter; these two are about preemption alone (C5).
  if (modes.gang && (modes.within || modes.priority)) {
    return base::invalid_argument(begin + "GANG excludes " +
                                  (modes.within ? "WITHIN" : "PRIORITY") + "; leave one out");
  }
  return modes;
}

// Zero and UNLIMITED take back what a DEFAULT line has set. Zero is also Slurm's default: no limit,
// or all memory of a node (1.1).
base::Status set_memory_limit(std::optional<sched::MemoryMiB>& field,
                              const std::optional<sched::MemoryMiB>& other, std::string_view key,
                              std::string_view value) {
  field.reset();
  if (same_word(value, "UNLIMITED")) return {};
  const base::Result<sched::MemoryMiB> read = parse_memory(key, value);
  if (!read) return read.error();
  if (read->value() == 0) return {};
  if (other) {  // the same limit per CPU and per node (C16)
    return base::invalid_argument(std::string{key} +
                                  ": the same limit is given per CPU and per node; say one");
  }
  field = *read;
  return {};
}

// A key that is in no list is refused and not skipped, so an administrator learns which of the
// settings do nothing here.
bool is_foreign_key(std::string_view key) {
  for (const std::string_view foreign : kForeign) {
    if (same_word(foreign, key)) return true;
  }
  return false;
}

}  // namespace slurm
