# A script that cancels its own job, a step, and one that is canceled while a step runs.
sbatch -o o1 --wrap='trap "echo term" TERM; echo before; scancel $SLURM_JOB_ID; sleep 5'; settle; grep -v '^slurmstepd' o1
sbatch -o o2 --wrap='srun sleep 30 & sleep 1; scancel $SLURM_JOB_ID.0; wait $!; echo "step $?"; srun echo next'; settle; grep -v '^slurmstepd\|^srun' o2
squeue -h -t all -o '%T' | sort | uniq -c
scancel 9999; echo $?; scancel abc; echo $?
