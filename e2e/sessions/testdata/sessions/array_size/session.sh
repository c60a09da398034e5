# cluster: {conf: {MaxArraySize: 11}}
# Numbers of tasks are below MaxArraySize.
cat > job.sh <<'S'
#!/bin/bash
touch ran_$SLURM_ARRAY_TASK_ID
S
sbatch --array=0-11 -n1 --mem=10 -o /dev/null job.sh; echo "one too many: $?"
sbatch --array=11 -n1 --mem=10 -o /dev/null job.sh; echo "one too high: $?"
sbatch --array=1-4000000:50 -n1 --mem=10 -o /dev/null job.sh; echo "far too high: $?"
sbatch --parsable --array=0-10:5 -n1 --mem=10 -o /dev/null job.sh
scontrol show config | grep MaxArraySize | tr -s ' '
settle
ls ran_*
