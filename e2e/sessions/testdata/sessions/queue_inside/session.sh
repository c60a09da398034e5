# What a script asks about its own job.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -J inside -N2 -n3 -t 30 -p long --comment=hello
squeue -h -j $SLURM_JOB_ID -o '%j|%P|%T|%t|%D|%C|%l|%N|%u|%r|%m'
squeue -h -n inside -o '%j %t'
squeue -h --me -o '%j' | sort
scontrol show job $SLURM_JOB_ID | grep -oE '(JobName|Partition|JobState|NumNodes|NumCPUs|NumTasks|TimeLimit|NodeList|BatchHost|Comment|Requeue|Restarts|BatchFlag|MinMemoryCPU|CPUs/Task)=[^ ]*'
nodes=($(scontrol show hostnames $SLURM_JOB_NODELIST)); echo "${nodes[0]} ${#nodes[@]}"
scontrol show hostnames | tail -n1
head=${nodes[0]}; srun -N1 -n1 -w $head bash -c 'echo $SLURMD_NODENAME'
srun -N1 -n1 -w ${nodes[1]} bash -c 'echo $SLURMD_NODENAME'
for n in ${nodes[@]}; do srun -N1 -n1 -w $n bash -c 'echo at $SLURMD_NODENAME'; done
X
sbatch -W -o o j.sh > /dev/null; grep -v '^srun' o
