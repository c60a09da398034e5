# scontrol update: the size of a job and of its nodes, and what is refused.
sbatch -H -J a -n2 -t 10 -o /dev/null --wrap true >/dev/null
sbatch -J r -n2 -t 10 -o /dev/null --wrap 'sleep 60' >/dev/null
while [ -z "$(squeue -h -t R)" ]; do sleep 0.2; done
show() { scontrol show job $1 | grep -oE '(NumTasks|CPUs/Task|MinCPUsNode|TimeMin)=\S*' | tr '\n' ' '; squeue -h -j $1 -o '%z %d'; }
u() { echo "== $*"; scontrol update "$@" 2>/dev/null; echo "-> $?"; }
show 1001
u jobid=1001 MinCPUs=3; show 1001
u jobid=1001 MinCPUsNode=2; show 1001
u jobid=1001 NumTasks=3; show 1001
u jobid=1001 CPUs/Task=2
u jobid=1001 CPUsPerTask=2; show 1001
u jobid=1001 NtasksPerNode=2
u jobid=1001 TasksPerNode=1; show 1001
u jobid=1001 MinTmpDiskNode=10; show 1001
u jobid=1001 MinTmpDisk=20; show 1001
u jobid=1001 ReqNodes=3
squeue -h -j 1001 -o %D
u jobid=1001 MinNodes=2
u jobid=1001 ReqSockets=1
u jobid=1001 ReqCores=2
u jobid=1001 ReqThreads=1; show 1001
u jobid=1001 TimeMin=5; show 1001
u jobid=1001 ReqCPUs=2
u jobid=1001 NumCPUs=0
u jobid=1001 NumCPUs=x
u jobid=1001 CPUsPerTask=x
u jobid=1001 NumTasks=x
u jobid=1001 MinMemory=200
u jobid=1001 ReservationName=nope
u jobid=1001 BurstBuffer=x
u jobid=1001 SystemComment=x
u jobid=1001 Clusters=x
u jobid=1001 Container=x
u jobid=1002 NumTasks=1
u jobid=1002 MinCPUsNode=1
u jobid=1002 CPUsPerTask=1
u jobid=1002 NumNodes=2
show 1002
scancel 1001 1002
settle
