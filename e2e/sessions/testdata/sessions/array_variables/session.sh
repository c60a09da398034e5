# What tasks of arrays know.
cat > j.sh <<'X'
#!/bin/bash
echo "$SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT min $SLURM_ARRAY_TASK_MIN max $SLURM_ARRAY_TASK_MAX step $SLURM_ARRAY_TASK_STEP $SLURM_JOB_NAME"
srun bash -c 'echo "task $SLURM_ARRAY_TASK_ID rank $SLURM_PROCID"'
X
for a in 0-1 1,7 2-8:3 5 0-3%1 '1-2,9'; do sbatch -W -a $a -o 'a_%a' j.sh > /dev/null; echo "$a: $?"; for f in $(ls a_* | sort -V); do cat $f; done; rm a_*; done
sbatch -W -a 1-3 -o /dev/null --wrap='exit $SLURM_ARRAY_TASK_ID' > /dev/null; echo "worst $?"
for a in x 1- 3-1 1-2:0 -1; do sbatch -a "$a" --wrap=true > /dev/null 2>&1; echo "$a: $?"; done
settle
