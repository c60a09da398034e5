# A script shows and requeues its own job. KUBECONFIG is unset: nothing of it needs a way to the cluster.
# cluster: {conf: {JobRequeue: 1}}
cat > show.sh <<'X'
#!/bin/bash
#SBATCH -J inside -N2 -n3 -p long
unset KUBECONFIG
scontrol show job $SLURM_JOB_ID | grep -oE '\b(JobId|JobName|UserId|JobState|Restarts|BatchFlag|ExitCode|Partition|NodeList|BatchHost|NumNodes|NumCPUs|NumTasks|CPUs/Task|MinMemoryCPU)=[^ ]*' | grep -v 'eqNodeList\|xcNodeList'
scontrol -o show job=$SLURM_JOB_ID | wc -l
scontrol show jobid $SLURM_JOB_ID | head -n1
X
sbatch -W -o shown show.sh
cat > again.sh <<'X'
#!/bin/bash
unset KUBECONFIG
trap 'echo "TERM in run ${SLURM_RESTART_COUNT:-0}"; exit 0' TERM
echo "run ${SLURM_RESTART_COUNT:-0}"
scontrol requeue $SLURM_JOB_ID; echo "rc $?"
sleep 30 & wait $!
echo "never here"
X
sbatch --requeue -o again again.sh
sbatch --requeue -o step --wrap 'unset KUBECONFIG; srun bash -c "trap \"echo step ends\" TERM; scontrol requeue \$SLURM_JOB_ID; echo rc \$?; sleep 30 & wait; true"; echo "srun $?"'
sleep 6
squeue -h -o '%i %T %r'
scancel 1002 1003
sbatch -W --no-requeue -o not --wrap 'unset KUBECONFIG; scontrol requeue $SLURM_JOB_ID 2> /dev/null; echo "rc $?"'
settle 60
cat shown; grep -v '^slurmstepd' again; cat not
