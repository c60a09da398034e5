-- A database as the version before columns of what runs have used made it, with a run that has
-- ended and one that has not. store_test.cc opens it.
CREATE TABLE record (id INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL,
  jobUID TEXT NOT NULL,
  restart INTEGER,
  task INTEGER,
  jobID INTEGER,
  arrayID INTEGER,
  namespace TEXT NOT NULL,
  object TEXT NOT NULL,
  name TEXT NOT NULL,
  user TEXT NOT NULL,
  account TEXT NOT NULL,
  qos TEXT NOT NULL,
  partition TEXT NOT NULL,
  nodes INTEGER,
  tasks INTEGER,
  tasksPerNode INTEGER,
  cpusPerTask INTEGER,
  memoryPerCPU INTEGER,
  memoryPerNode INTEGER,
  timeLimit INTEGER,
  devices TEXT NOT NULL,
  licenses TEXT NOT NULL,
  constraints TEXT NOT NULL,
  priority INTEGER,
  isHeld INTEGER,
  isScript INTEGER,
  workDir TEXT NOT NULL,
  comment TEXT NOT NULL,
  hostlist TEXT NOT NULL,
  allocatedNodes INTEGER,
  allocatedCPUs INTEGER,
  allocatedMemory INTEGER,
  submitTime INTEGER,
  eligibleTime INTEGER,
  startTime INTEGER,
  endTime INTEGER,
  elapsed INTEGER,
  elapsedAsOf INTEGER,
  suspended INTEGER,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  exitCode INTEGER,
  preemptedBy TEXT NOT NULL);
CREATE UNIQUE INDEX record_key ON record (cluster, jobUID, ifnull(task, -1), restart);
CREATE INDEX record_end ON record (ifnull(endTime, 9223372036854775807));
CREATE INDEX record_user ON record (user, ifnull(endTime, 9223372036854775807));
CREATE INDEX record_namespace ON record (namespace, ifnull(endTime, 9223372036854775807));
CREATE INDEX record_job ON record (jobID);
CREATE INDEX record_array ON record (arrayID) WHERE arrayID IS NOT NULL;
CREATE TABLE about (since INTEGER NOT NULL);
CREATE VIEW job AS SELECT
  cluster, jobID, arrayID, task, restart, jobUID, namespace, object, name,
  CASE user WHEN '' THEN namespace ELSE user END AS user, account, qos, partition, state, exitCode,
  reason, preemptedBy, nodes AS askedNodes,
  ifnull(tasks, nodes * ifnull(tasksPerNode, 1)) * ifnull(cpusPerTask, 1) AS askedCPUs,
  allocatedNodes, allocatedCPUs, allocatedMemory, devices, licenses, hostlist,
  datetime(submitTime / 1000000, 'unixepoch') AS submitTime,
  datetime(eligibleTime / 1000000, 'unixepoch') AS eligibleTime,
  datetime(startTime / 1000000, 'unixepoch') AS startTime,
  datetime(endTime / 1000000, 'unixepoch') AS endTime,
  timeLimit / 1000000 AS timeLimitSeconds, elapsed / 1000000 AS elapsedSeconds,
  suspended / 1000000 AS suspendedSeconds,
  elapsed / 1000000 * allocatedCPUs AS cpuSeconds, priority, comment
FROM record;
INSERT INTO record (cluster, jobUID, restart, task, jobID, arrayID, namespace, object, name, user,
account, qos, partition, nodes, tasks, tasksPerNode, cpusPerTask, memoryPerCPU, memoryPerNode,
timeLimit, devices, licenses, constraints, priority, isHeld, isScript, workDir, comment, hostlist,
allocatedNodes, allocatedCPUs, allocatedMemory, submitTime, eligibleTime, startTime, endTime,
elapsed, elapsedAsOf, suspended, state, reason, exitCode, preemptedBy)
VALUES ('kubegang', 'uid-old', 0, NULL, 1, NULL, 'team-a', 'old', 'old', '', '', '', '', 1, NULL,
NULL, NULL, NULL, NULL, NULL, '', '', '', 0, 0, 1, '', '', 'n1', 1, 4, 0, 1700000000000000,
1700000000000000, 1700000010000000, 1700000050000000, 40000000, NULL, 0, 'Completed', '', 0, '');
INSERT INTO record (cluster, jobUID, restart, task, jobID, arrayID, namespace, object, name, user,
account, qos, partition, nodes, tasks, tasksPerNode, cpusPerTask, memoryPerCPU, memoryPerNode,
timeLimit, devices, licenses, constraints, priority, isHeld, isScript, workDir, comment, hostlist,
allocatedNodes, allocatedCPUs, allocatedMemory, submitTime, eligibleTime, startTime, endTime,
elapsed, elapsedAsOf, suspended, state, reason, exitCode, preemptedBy)
VALUES ('kubegang', 'uid-a', 0, NULL, 2, NULL, 'team-a', 'a', 'a', '', '', '', '', 1, NULL, NULL,
NULL, NULL, NULL, NULL, '', '', '', 0, 0, 1, '', '', 'n1', 1, 4, 0, 1700000000000000,
1700000000000000, 1700000010000000, NULL, 0, NULL, 0, 'Running', '', NULL, '');
INSERT INTO about VALUES (1700000000000000);
PRAGMA user_version = 1;
