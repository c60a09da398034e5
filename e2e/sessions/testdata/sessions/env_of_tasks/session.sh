# All that a task sees of Slurm, but for what is about its daemons.
cat > j.sh <<'X'
#!/bin/bash
drop='^SLURM_(CONF|NODE_ALIASES|PRIO_PROCESS|WORKING_CLUSTER|SRUN_COMM_.*|STEP_LAUNCHER_PORT|CPU_BIND.*|JOB_CPUS_PER_NODE_PACK_GROUP_0|TMPDIR)='
env | grep '^SLURM' | grep -vE "$drop" | sed -E 's/(PID|HOST|CLUSTER_NAME|IPADDR)=.+/\1=set/' | sort > script_$1
srun bash -c "env | grep '^SLURM' | grep -vE '$drop' | sed -E 's/(PID|HOST|CLUSTER_NAME|IPADDR)=.+/\1=set/' | sort > task_$1_\$SLURM_PROCID"
X
sbatch -W -o /dev/null j.sh plain > /dev/null
sbatch -W -o /dev/null -N2 -n4 -c2 --mem=500 -J name j.sh full > /dev/null
sbatch -W -o /dev/null -N2 --ntasks-per-node=2 -m cyclic j.sh cyclic > /dev/null
sbatch -W -o /dev/null --mem=0 -n2 --export=PATH,A=1 j.sh list > /dev/null
