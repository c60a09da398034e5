# What scontrol refuses, and how it ends; how jobs are named.
sbatch -J a -H -t 5 --wrap true >/dev/null
sbatch -J r -n1 -t 5 -o /dev/null --wrap 'sleep 60' >/dev/null
sleep 4
run() { echo "== $*"; "$@" 2>/dev/null; echo "-> $?"; }
state() { squeue -h -o '%i %r %t' -S i -j 1001; }
run scontrol show job 7777
run scontrol show job abc
run scontrol show node n9
run scontrol show partition nope
run scontrol show
run scontrol show bogus
run scontrol bogus
run scontrol hold
run scontrol hold 7777
run scontrol hold abc
run scontrol release 7777
run scontrol release 1002
run scontrol uhold name=a
state
run scontrol uhold jobname=a
run scontrol uhold jobid=1001
run scontrol uhold name=nope
state
run scontrol requeue 7777
run scontrol requeue 1001
run scontrol suspend 1001
run scontrol suspend 7777
run scontrol resume 1002
run scontrol update JobId=1001
run scontrol update JobId=1001 Bogus=1
run scontrol update JobId=7777 Comment=x
run scontrol update JobId=1001 TimeLimit=bogus
run scontrol update JobId=1001 Partition=nope
run scontrol update JobId=1001 NumNodes=2 NumTasks=2
run scontrol update JobId=1002 NumNodes=3
run scontrol update JobId=1001 Priority=abc
run scontrol update JobId=1001 Nice=50
run scontrol update job 1001 Nice=60
run scontrol update job=1001 nice=70
run scontrol update JobName=a Comment=byname
run scontrol update Nothing=1
run scontrol update
scontrol -o show job 1001 | tr ' ' '\n' | grep -E '^(JobId|NumNodes|Nice|Comment|Requeue|TimeLimit)='
run scontrol show hostnames
run scontrol show hostnames 'n[1-2,5]'
run scontrol show hostlist n3,n1,n2
run scontrol show hostlist n1,n3,n2,m7,n08,n09,n4
run scontrol show hostlist n1,n2,n2,n1
run scontrol show hostlist x,y,n1
run scontrol show hostlistsorted n3,n1,n2
run scontrol show hostlistsorted n1,n3,n2,m7,n08,n09,n4
run scontrol update NodeName=n9 State=DRAIN Reason=x
run scontrol update NodeName=n1 State=DRAIN
run scontrol update NodeName=n1 State=BOGUS
run scontrol update NodeName=n3 State=RESUME
run scontrol update NodeName=n3 State=DRAIN Reason=x
run scontrol update NodeName=n3 State=RESUME
run scontrol update PartitionName=nope State=DOWN
run scontrol update PartitionName=long State=BOGUS
scancel 1001 1002
settle
run scontrol hold 1001
run scontrol release 1001
