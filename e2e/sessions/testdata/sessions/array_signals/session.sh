# Signals for the steps of single tasks of an array, of some and of all. Tasks that wait hear none. The
# exit code is not shown: that of Slurm 22.05 says after minutes that the job cannot be altered.
cat > step.sh <<'S'
#!/bin/bash
trap 'touch usr1_$SLURM_ARRAY_TASK_ID' USR1
trap 'touch usr2_$SLURM_ARRAY_TASK_ID' USR2
trap 'touch cont_$SLURM_ARRAY_TASK_ID' CONT
touch up_$SLURM_ARRAY_TASK_ID
while ! [ -e stop ]; do sleep 0.1; done
S
cat > job.sh <<'S'
#!/bin/bash
srun -n1 ./step.sh
S
chmod +x step.sh job.sh
is_there() { for file; do while ! [ -e $file ]; do sleep 0.1; done; done; }
id=$(sbatch --parsable --array=0-3%2 -n1 --mem=10 -o /dev/null job.sh)
is_there up_0 up_1
sleep 0.5
scancel -s USR1 ${id}_0
is_there usr1_0
scancel -s USR1 ${id}_3
scancel -s USR1 ${id}_9; echo "does not exist: $?"
scancel -s USR2 ${id}_[0,1]
is_there usr2_0 usr2_1
scancel -s CONT $id
is_there cont_0 cont_1
ls usr* cont*
touch stop
settle
scancel -s USR1 ${id}_0; echo "has ended: $?"
ls usr* cont*
